//! Limits on responses of an API server: bytes, bytes of a watch line, time.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body::{Body, Frame, SizeHint};
use thiserror::Error;
use tokio::time::{Instant, Sleep, sleep_until};
use tower::BoxError;

/// How long a request that is no watch may take, with its body. The API server itself gives up after as long (`--request-timeout`).
pub const REQUEST_LIMIT: Duration = Duration::from_secs(60);

/// How long a watch may be silent. The API server ends each after 290 s, which the client requests, and sends bookmarks before.
pub const WATCH_SILENCE: Duration = Duration::from_secs(330);

/// Bytes of a response that is no watch: a page of 500 objects of 128 KiB each.
pub const RESPONSE_BYTES: usize = 64 << 20;

/// Bytes of one line of a watch, which holds one object. etcd takes objects of 1.5 MiB; as JSON they are longer.
pub const WATCH_LINE_BYTES: usize = 8 << 20;

/// Why a response was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ResponseCut {
    /// Too large.
    #[error("the response of the API server has more than {RESPONSE_BYTES} bytes")]
    Bytes,
    /// A line of a watch is too long.
    #[error("a line of a watch has more than {WATCH_LINE_BYTES} bytes")]
    Line,
    /// Too slow.
    #[error("no complete response of the API server within {} s", REQUEST_LIMIT.as_secs())]
    Time,
    /// A watch without a word.
    #[error("nothing came on a watch for {} s", WATCH_SILENCE.as_secs())]
    Silence,
}

/// Whether a request is a watch.
pub fn is_watch<B>(request: &Request<B>) -> bool {
    let mut pairs = request.uri().query().unwrap_or_default().split('&');
    pairs.any(|pair| matches!(pair, "watch=true" | "watch=1"))
}

/// What is reported of a response that ended: its bytes.
type OnEnd = Box<dyn FnOnce(usize) + Send>;

/// The body of a response, cut at its limits.
pub struct LimitedBody<B> {
    inner: B,
    watch: bool,
    /// Bytes so far; in a watch those of the line that has not ended.
    bytes: usize,
    timer: Pin<Box<Sleep>>,
    on_end: Option<OnEnd>,
    cut: bool,
}

impl<B> LimitedBody<B> {
    /// The body of a response to a request that was sent at `sent`. `on_end` gets the bytes of one that is no watch.
    pub fn new(inner: B, watch: bool, sent: Instant, on_end: OnEnd) -> Self {
        let until = if watch {
            Instant::now() + WATCH_SILENCE
        } else {
            sent + REQUEST_LIMIT
        };
        Self {
            inner,
            watch,
            bytes: 0,
            timer: Box::pin(sleep_until(until)),
            on_end: Some(on_end),
            cut: false,
        }
    }

    fn count(&mut self, data: &[u8]) -> Result<(), ResponseCut> {
        if !self.watch {
            self.bytes = self.bytes.saturating_add(data.len());
            return if self.bytes > RESPONSE_BYTES {
                Err(ResponseCut::Bytes)
            } else {
                Ok(())
            };
        }
        self.timer.as_mut().reset(Instant::now() + WATCH_SILENCE);
        for (at, part) in data.split(|byte| *byte == b'\n').enumerate() {
            self.bytes = if at == 0 {
                self.bytes.saturating_add(part.len())
            } else {
                part.len()
            };
            if self.bytes > WATCH_LINE_BYTES {
                return Err(ResponseCut::Line);
            }
        }
        Ok(())
    }
}

impl<B> Body for LimitedBody<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        if this.cut {
            return Poll::Ready(None);
        }
        if this.timer.as_mut().poll(context).is_ready() {
            this.cut = true;
            let why = if this.watch {
                ResponseCut::Silence
            } else {
                ResponseCut::Time
            };
            return Poll::Ready(Some(Err(why.into())));
        }
        let frame = match ready!(Pin::new(&mut this.inner).poll_frame(context)) {
            Some(Ok(frame)) => frame,
            Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
            None => {
                if let Some(on_end) = this.on_end.take().filter(|_| !this.watch) {
                    on_end(this.bytes);
                }
                return Poll::Ready(None);
            }
        };
        if let Some(Err(cut)) = frame.data_ref().map(|data| this.count(data)) {
            this.cut = true;
            return Poll::Ready(Some(Err(cut.into())));
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests;
