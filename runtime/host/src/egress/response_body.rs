//! Body of a response: streamed at the pace of the guest, up to a limit.

use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Sleep, sleep};
use wasmtime_wasi_http::Error;

use crate::egress::in_flight::Place;
use crate::net::http_error;

/// The body the guest reads.
pub struct ResponseBody {
    inner: reqwest::Body,
    left: u64,
    limit: u64,
    between: Duration,
    /// Runs while the server is waited for, not while the guest computes.
    timer: Option<Pin<Box<Sleep>>>,
    /// Left at the end of the body, or with it.
    place: Option<Place>,
}

impl ResponseBody {
    /// Fails at once when the server announces more than `limit` bytes, else as soon as there are more. `between` is the longest wait
    /// for each piece.
    pub fn new(inner: reqwest::Body, limit: u64, between: Duration) -> Result<Self, Error> {
        match inner.size_hint().lower() {
            announced if announced > limit => Err(Error::HttpResponseBodySize(Some(announced))),
            _ => Ok(Self {
                inner,
                left: limit,
                limit,
                between,
                timer: None,
                place: None,
            }),
        }
    }

    /// Keeps the place of its request as long as there is something to read.
    pub fn holding(mut self, place: Place) -> Self {
        self.place = (!self.inner.is_end_stream()).then_some(place);
        self
    }

    fn poll_timer(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let between = self.between;
        self.timer
            .get_or_insert_with(|| Box::pin(sleep(between)))
            .as_mut()
            .poll(cx)
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let this = &mut *self;
        let Poll::Ready(frame) = Pin::new(&mut this.inner).poll_frame(cx) else {
            ready!(this.poll_timer(cx));
            return Poll::Ready(Some(Err(Error::ConnectionReadTimeout)));
        };
        this.timer = None;
        let frame = match frame {
            None => {
                this.place = None;
                return Poll::Ready(None);
            }
            Some(Err(error)) => return Poll::Ready(Some(Err(http_error::in_body(&error)))),
            Some(Ok(frame)) => frame,
        };
        let bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
        match this.left.checked_sub(bytes) {
            Some(left) => this.left = left,
            None => return Poll::Ready(Some(Err(Error::HttpResponseBodySize(Some(this.limit))))),
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::{StreamExt as _, stream};
    use http_body_util::BodyExt as _;
    use tokio::time::Instant;

    fn endless() -> reqwest::Body {
        reqwest::Body::wrap_stream(stream::repeat_with(|| {
            Ok::<_, std::io::Error>(Bytes::from_static(&[0; 1000]))
        }))
    }

    #[tokio::test]
    async fn a_body_over_the_limit_is_cut_off() {
        let body = ResponseBody::new(endless(), 2500, Duration::from_secs(1)).unwrap();
        let frames: Vec<_> = body.into_data_stream().take(3).collect().await;
        assert!(frames[0].is_ok() && frames[1].is_ok());
        assert!(matches!(frames[2], Err(Error::HttpResponseBodySize(Some(2500)))));
    }

    #[tokio::test]
    async fn a_body_that_announces_too_much_is_not_even_begun() {
        let body = reqwest::Body::from(vec![0; 10]);
        assert!(matches!(
            ResponseBody::new(body, 9, Duration::from_secs(1)),
            Err(Error::HttpResponseBodySize(Some(10)))
        ));
    }

    #[tokio::test]
    async fn a_body_of_exactly_the_limit_passes() {
        let body = ResponseBody::new(reqwest::Body::from(vec![7; 10]), 10, Duration::from_secs(1)).unwrap();
        assert_eq!(body.collect().await.unwrap().to_bytes().len(), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_falls_silent_is_given_up() {
        let silent = stream::once(async { Ok::<_, std::io::Error>(Bytes::from_static(b"a")) }).chain(stream::pending());
        let mut body = ResponseBody::new(reqwest::Body::wrap_stream(silent), 10, Duration::from_secs(5)).unwrap();
        assert!(body.frame().await.unwrap().is_ok());
        let start = Instant::now();
        assert!(matches!(body.frame().await.unwrap(), Err(Error::ConnectionReadTimeout)));
        assert_eq!(start.elapsed(), Duration::from_secs(5));
    }
}
