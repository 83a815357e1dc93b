//! What a [`Gate`](crate::gate::Gate) does to a request instead of passing it on, or to its answer: the bad days of a server that cannot
//! make them itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::{Body, Bytes, to_bytes};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::stream;

/// A fault for requests of one kind. Clones count together.
#[derive(Debug, Clone)]
pub struct Fault {
    what: What,
    limit: usize,
    met: Arc<AtomicUsize>,
}

#[derive(Debug, Clone)]
enum What {
    /// An answer in place of the server's, which never sees the request.
    Answer(StatusCode, HeaderMap, Bytes),
    /// The beginning of the server's answer, as if it were all of it.
    Cut(usize),
    /// The beginning of the server's answer, and then the connection ends.
    Break(usize),
    /// The server's answer with each of these texts in place of another.
    Edit(&'static str, String),
}

impl Fault {
    /// Answers with this status, and the server never sees the request.
    pub fn status(status: StatusCode) -> Self {
        Self::new(What::Answer(status, HeaderMap::new(), Bytes::new()))
    }

    /// Lets the request have its effect, and of its answer only so many bytes through, as if they were all.
    pub fn cut(bytes: usize) -> Self {
        Self::new(What::Cut(bytes))
    }

    /// Lets the request have its effect, and breaks the connection after so many bytes of its answer.
    pub fn broken(bytes: usize) -> Self {
        Self::new(What::Break(bytes))
    }

    /// Lets the request have its effect, and puts a text in place of each of these in its answer: a server that is not done yet.
    pub fn edit(text: &'static str, instead: impl Into<String>) -> Self {
        Self::new(What::Edit(text, instead.into()))
    }

    fn new(what: What) -> Self {
        Self {
            what,
            limit: usize::MAX,
            met: Arc::default(),
        }
    }

    /// With this body, of this type.
    ///
    /// # Panics
    ///
    /// When the type is no header value.
    #[must_use]
    pub fn body(self, content_type: &str, body: impl Into<Bytes>) -> Self {
        let mut fault = self.header("content-type", content_type);
        if let What::Answer(_, _, text) = &mut fault.what {
            *text = body.into();
        }
        fault
    }

    /// With this header, such as `retry-after`.
    ///
    /// # Panics
    ///
    /// When name or value cannot be those of a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        if let What::Answer(_, headers, _) = &mut self.what {
            let name = HeaderName::from_bytes(name.as_bytes()).expect("the name of a header");
            headers.insert(name, HeaderValue::from_str(value).expect("the value of a header"));
        }
        self
    }

    /// Only for so many requests; the others pass.
    #[must_use]
    pub fn times(self, limit: usize) -> Self {
        Self { limit, ..self }
    }

    /// How many requests it has met.
    pub fn met(&self) -> usize {
        self.met.load(Ordering::SeqCst)
    }

    /// Whether one more request meets it.
    pub(crate) fn meet(&self) -> bool {
        let one_more = |met: usize| (met < self.limit).then(|| met + 1);
        self.met
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_more)
            .is_ok()
    }

    /// The answer of the faulty server; `passed` is how the real one answers.
    pub(crate) async fn answer(self, passed: impl Future<Output = Response>) -> Response {
        let (bytes, whole) = match self.what {
            What::Answer(status, headers, body) => return (status, headers, body).into_response(),
            What::Edit(text, instead) => return edited(passed.await, text, &instead).await,
            What::Cut(bytes) => (bytes, true),
            What::Break(bytes) => (bytes, false),
        };
        let (mut parts, body) = passed.await.into_parts();
        let body = to_bytes(body, usize::MAX).await.unwrap_or_default();
        let begin = body.slice(..bytes.min(body.len()));
        // A length says how much there should have been; without one, the end of the connection would look like the end of the body.
        parts.headers.remove(header::TRANSFER_ENCODING);
        let length = if whole {
            begin.len()
        } else {
            body.len().max(begin.len() + 1)
        };
        parts.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
        let body = if whole {
            Body::from(begin)
        } else {
            Body::from_stream(stream::iter([
                Ok(begin),
                Err(std::io::Error::other("broken on purpose")),
            ]))
        };
        Response::from_parts(parts, body)
    }
}

async fn edited(answer: Response, text: &str, instead: &str) -> Response {
    let (mut parts, body) = answer.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap_or_default();
    let body = String::from_utf8_lossy(&body).replace(text, instead);
    parts.headers.remove(header::TRANSFER_ENCODING);
    parts
        .headers
        .insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
    Response::from_parts(parts, Body::from(body))
}
