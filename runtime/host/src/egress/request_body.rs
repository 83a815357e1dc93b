//! Body of a request on its way from the guest to the client.
//!
//! Up to [`BUFFER_LIMIT`] it is collected, so that placeholders in it can be filled and its length is known. What is larger is passed
//! on as it comes, and only watched: a placeholder in it would reach the cloud unfilled, so it breaks the request off.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use parking_lot::Mutex;
use wasmtime_wasi_http::{Error, WasiBody};

use crate::secrets::placeholders::{Filled, LENGTH, Placeholders};

/// Largest body in which placeholders are filled.
pub const BUFFER_LIMIT: usize = 1 << 20;

/// What was read of a body so far.
pub enum Collected {
    /// All of it. The second is what stands behind it: trailers.
    Whole(Bytes, Option<http::HeaderMap>),
    /// The first part of a body that is over the limit, and the rest.
    Start(Bytes, WasiBody),
}

impl Collected {
    /// What was read.
    pub fn start(&self) -> &[u8] {
        match self {
            Self::Whole(start, _) | Self::Start(start, _) => start,
        }
    }
}

/// The most that a body may take in memory while it is collected and filled, in bytes: nothing where its length says so, else the limit.
pub fn most(headers: &http::HeaderMap, body: &WasiBody) -> u64 {
    let written = headers.get(http::header::CONTENT_LENGTH);
    let empty = body.is_end_stream() || written.is_some_and(|length| length == "0");
    if empty { 0 } else { BUFFER_LIMIT as u64 }
}

/// Reads until the body ends or is over the limit.
pub async fn collect(mut body: WasiBody) -> Result<Collected, Error> {
    let mut start = BytesMut::new();
    let mut trailers = None;
    while let Some(frame) = body.frame().await {
        match frame?.into_data() {
            Ok(data) => start.extend_from_slice(&data),
            Err(frame) => trailers = frame.into_trailers().ok(),
        }
        if start.len() > BUFFER_LIMIT {
            return Ok(Collected::Start(start.freeze(), body));
        }
    }
    Ok(Collected::Whole(start.freeze(), trailers))
}

/// The body the client sends. `Sync`, as the client requires, without a lock ever being taken.
pub struct RequestBody {
    ahead: VecDeque<Frame<Bytes>>,
    rest: Option<Mutex<Watched>>,
}

impl RequestBody {
    /// A whole body whose placeholders are filled; wiped after it was sent.
    pub fn filled(body: Filled, trailers: Option<http::HeaderMap>) -> Self {
        Self::whole(Bytes::from_owner(body), trailers)
    }

    /// A whole body.
    pub fn whole(body: Bytes, trailers: Option<http::HeaderMap>) -> Self {
        let data = (!body.is_empty()).then(|| Frame::data(body));
        Self {
            ahead: data.into_iter().chain(trailers.map(Frame::trailers)).collect(),
            rest: None,
        }
    }

    /// The bytes that are collected and not sent yet.
    pub fn in_memory(&self) -> u64 {
        self.size_hint().lower()
    }

    /// A start that contains none of the call's placeholders, and the rest.
    pub fn streamed(start: Bytes, rest: WasiBody, issued: Placeholders) -> Self {
        let seen = start[start.len().saturating_sub(LENGTH - 1)..].to_vec();
        let watched = Watched {
            body: rest,
            issued,
            seen,
        };
        Self {
            ahead: VecDeque::from([Frame::data(start)]),
            rest: Some(Mutex::new(watched)),
        }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        if let Some(frame) = self.ahead.pop_front() {
            return Poll::Ready(Some(Ok(frame)));
        }
        match &mut self.rest {
            None => Poll::Ready(None),
            Some(rest) => rest.get_mut().poll(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ahead.is_empty() && self.rest.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        let ahead = self
            .ahead
            .iter()
            .filter_map(Frame::data_ref)
            .map(|data| data.len() as u64)
            .sum();
        let mut hint = SizeHint::new();
        hint.set_lower(ahead);
        if self.rest.is_none() {
            hint.set_upper(ahead);
        }
        hint
    }
}

/// A body in which there may be no placeholder of the call, however it is cut into pieces.
struct Watched {
    body: WasiBody,
    issued: Placeholders,
    /// The last bytes that passed, one less than a placeholder has.
    seen: Vec<u8>,
}

impl Watched {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if let Some(Ok(frame)) = &frame
            && let Some(data) = frame.data_ref()
            && self.ends_in(data)
        {
            return Poll::Ready(Some(Err(Error::HttpRequestBodySize(Some(BUFFER_LIMIT as u64)))));
        }
        Poll::Ready(frame)
    }

    fn ends_in(&mut self, data: &[u8]) -> bool {
        let head = &data[..data.len().min(LENGTH - 1)];
        self.seen.extend_from_slice(head);
        let found = self.issued.any_in(&self.seen) || self.issued.any_in(data);
        if data.len() >= LENGTH - 1 {
            self.seen.clear();
            self.seen.extend_from_slice(&data[data.len() - (LENGTH - 1)..]);
        } else {
            self.seen.drain(..self.seen.len().saturating_sub(LENGTH - 1));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secrets::encoding::Encoding;
    use crate::secrets::placeholders::StandsFor;
    use futures::stream;
    use http_body_util::StreamBody;

    /// The placeholders of a call, and one of them.
    fn issued() -> (Placeholders, Vec<u8>) {
        let issued = Placeholders::default();
        let text = issued.insert(StandsFor::Secret("password".into(), Encoding::Plain));
        (issued, text.unwrap().into_bytes())
    }

    fn body(chunks: Vec<Vec<u8>>) -> WasiBody {
        let frames = chunks.into_iter().map(|chunk| Ok(Frame::data(Bytes::from(chunk))));
        StreamBody::new(stream::iter(frames)).boxed_unsync()
    }

    #[tokio::test]
    async fn body_up_to_the_limit_is_collected_and_its_length_is_known() {
        let chunks = vec![vec![b'a'; BUFFER_LIMIT - 1], vec![b'b']];
        let Collected::Whole(bytes, None) = collect(body(chunks)).await.unwrap() else {
            panic!("not whole")
        };
        assert_eq!(bytes.len(), BUFFER_LIMIT);
        assert_eq!(
            RequestBody::whole(bytes, None).size_hint().exact(),
            Some(BUFFER_LIMIT as u64)
        );
    }

    #[tokio::test]
    async fn a_larger_body_passes_unchanged() {
        let chunks = vec![
            vec![b'a'; BUFFER_LIMIT],
            vec![b'b'; 5],
            vec![b'c'; BUFFER_LIMIT],
            issued().1,
        ];
        let expected = chunks.concat();
        let Collected::Start(start, rest) = collect(body(chunks)).await.unwrap() else {
            panic!("not split")
        };
        let sent = RequestBody::streamed(start, rest, issued().0);
        assert_eq!(sent.size_hint().exact(), None);
        assert_eq!(sent.collect().await.unwrap().to_bytes(), expected);
    }

    #[tokio::test]
    async fn placeholder_beyond_limit_aborts_request_however_split() {
        let (issued, placeholder) = issued();
        let text = [b"x".as_slice(), &placeholder].concat();
        for cut in 1..text.len() {
            for again in [cut, cut + 1, cut + LENGTH / 2, text.len()] {
                let again = again.min(text.len());
                let chunks = vec![
                    vec![b'a'; BUFFER_LIMIT + 1],
                    text[..cut].to_vec(),
                    text[cut..again].to_vec(),
                    text[again..].to_vec(),
                ];
                let Collected::Start(start, rest) = collect(body(chunks)).await.unwrap() else {
                    panic!("not split")
                };
                let sent = RequestBody::streamed(start, rest, issued.clone());
                let error = sent.collect().await.unwrap_err();
                assert!(matches!(error, Error::HttpRequestBodySize(Some(_))), "{cut} {again}");
            }
        }
    }

    #[tokio::test]
    async fn a_placeholder_across_the_limit_is_found_too() {
        let mut start = vec![b'a'; BUFFER_LIMIT - 3];
        let (issued, placeholder) = issued();
        start.extend(&placeholder[..5]);
        let chunks = vec![start, placeholder[5..].to_vec()];
        let Collected::Start(start, rest) = collect(body(chunks)).await.unwrap() else {
            panic!("not split")
        };
        assert!(!issued.any_in(&start));
        assert!(RequestBody::streamed(start, rest, issued).collect().await.is_err());
    }
}
