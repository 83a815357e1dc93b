//! The requests of a test: what is expected, what comes back, and what was sent.
//!
//! Answers recorded from a real server are text files of the provider, with lines about how they were recorded before them; [`recorded`] takes these off:
//!
//! ```
//! # use cloudwit_guest_sdk::{Failure, form::Form, testing::{FakeHost, recorded}};
//! # const FILE: &str = "# moto 5.2.5: DescribeZones\n<Zones><item>a</item></Zones>"; // include_str!("../recorded/zones.xml")
//! let host = FakeHost::new();
//! host.expect("POST", "https://ec2.test/")
//!     .with_form(&[("Action", "DescribeZones"), ("Version", "2016-11-15")])
//!     .answers_xml(200, recorded(FILE));
//!
//! let form = Form::new().field("Action", "DescribeZones").field("Version", "2016-11-15");
//! let answer = host.context().http().post("https://ec2.test/").form(&form).send()?.xml()?;
//! assert_eq!(answer.text("item"), Some("a"));
//! assert_eq!(host.requests()[0].field("Action").as_deref(), Some("DescribeZones"));
//! # Ok::<(), Failure>(())
//! ```

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::time::Duration;

use serde_json::Value;

use crate::http::{Answer, Request, TransportError, TransportErrorKind};
use crate::testing::sent::SentRequest;
use crate::testing::{FakeHost, granted, world};

/// All requests of the current thread: those expected and those made.
pub(crate) struct Requests {
    expected: VecDeque<Expected>,
    server: Option<Server>,
    sent: Vec<SentRequest>,
}

type Server = Box<dyn FnMut(&SentRequest) -> FakeAnswer>;

impl Requests {
    pub(crate) const fn new() -> Self {
        Self {
            expected: VecDeque::new(),
            server: None,
            sent: Vec::new(),
        }
    }

    /// # Panics
    /// When one that was expected was not made.
    pub(crate) fn insist_on_all(&self) {
        if let Some(next) = self.expected.front() {
            panic!(
                "{} expected request(s) were not made, first: {} {}",
                self.expected.len(),
                next.method,
                next.url
            );
        }
    }
}

impl FakeHost {
    /// The next request has to be this one: method and whole URL with its query. Continue with the answer.
    pub fn expect(&self, method: &str, url: &str) -> Expectation<'_> {
        Expectation {
            expected: Expected {
                method: method.into(),
                url: url.into(),
                headers: Vec::new(),
                body: Body::Any,
                after: Duration::ZERO,
                answer: FakeAnswer::breaks(),
            },
            _host: PhantomData,
        }
    }

    /// From here on answers every request for which none is expected: a small cloud of the test's own, for what takes many requests.
    pub fn serve(&self, server: impl FnMut(&SentRequest) -> FakeAnswer + 'static) -> &Self {
        world(|world| world.requests.server = Some(Box::new(server)));
        self
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<SentRequest> {
        world(|world| world.requests.sent.clone())
    }
}

/// What comes back.
#[derive(Debug, Clone)]
pub struct FakeAnswer(Result<Answer, TransportError>);

impl FakeAnswer {
    /// An answer with these headers and text.
    pub fn new(status: u16, headers: &[(&str, &str)], body: &str) -> Self {
        Self::bytes(status, headers, body.as_bytes())
    }

    /// An answer with these headers and bytes: one cut within a letter, or no text at all.
    pub fn bytes(status: u16, headers: &[(&str, &str)], body: &[u8]) -> Self {
        let headers = headers.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        Self(Ok(Answer {
            status,
            headers: headers.collect(),
            body: body.into(),
        }))
    }

    /// An answer in JSON.
    pub fn json(status: u16, body: &Value) -> Self {
        Self::new(status, &[("content-type", "application/json")], &body.to_string())
    }

    /// An answer in XML.
    pub fn xml(status: u16, body: &str) -> Self {
        Self::new(status, &[("content-type", "text/xml")], body)
    }

    /// None: the host refuses, since the destination is not granted.
    pub fn refused() -> Self {
        no_answer(TransportErrorKind::Denied, "the host refused the request")
    }

    /// None: the connection breaks.
    pub fn breaks() -> Self {
        no_answer(TransportErrorKind::Unreachable, "the connection broke")
    }
}

fn no_answer(kind: TransportErrorKind, message: &'static str) -> FakeAnswer {
    FakeAnswer(Err(TransportError {
        kind,
        message: message.into(),
    }))
}

struct Expected {
    method: String,
    url: String,
    headers: Vec<(String, String)>,
    body: Body,
    after: Duration,
    answer: FakeAnswer,
}

/// What a body has to be.
enum Body {
    Any,
    Json(Value),
    Text(String),
    /// Exactly these fields, in whatever order.
    Form(Vec<(String, String)>),
    /// At least these.
    Fields(Vec<(String, String)>),
}

/// An expected request; complete with what comes back.
#[must_use = "say what comes back"]
pub struct Expectation<'a> {
    expected: Expected,
    _host: PhantomData<&'a FakeHost>,
}

impl Expectation<'_> {
    /// It also has to carry this header.
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.expected.headers.push((name.into(), value.into()));
        self
    }

    /// It also has to carry this JSON.
    pub fn with_json(mut self, body: Value) -> Self {
        self.expected.body = Body::Json(body);
        self
    }

    /// It also has to carry exactly this text.
    pub fn with_text(mut self, body: &str) -> Self {
        self.expected.body = Body::Text(body.into());
        self
    }

    /// It also has to carry a form of exactly these fields, in whatever order.
    pub fn with_form(mut self, fields: &[(&str, &str)]) -> Self {
        self.expected.body = Body::Form(owned(fields));
        self
    }

    /// It also has to carry a form that has these fields among others.
    pub fn with_fields(mut self, fields: &[(&str, &str)]) -> Self {
        self.expected.body = Body::Fields(owned(fields));
        self
    }

    /// What comes back does so after this time: one that is longer than the request's timeout is no answer. No time passes.
    pub fn after(mut self, duration: Duration) -> Self {
        self.expected.after = duration;
        self
    }

    /// Comes back with JSON.
    pub fn answers(self, status: u16, body: Value) {
        self.gives(FakeAnswer::json(status, &body));
    }

    /// Comes back with XML.
    pub fn answers_xml(self, status: u16, body: &str) {
        self.gives(FakeAnswer::xml(status, body));
    }

    /// Comes back with these headers (`Set-Cookie`, `X-Subject-Token`, `Content-Type`) and text.
    pub fn answers_with(self, status: u16, headers: &[(&str, &str)], body: &str) {
        self.gives(FakeAnswer::new(status, headers, body));
    }

    /// Is refused by the host: the destination is not granted.
    pub fn is_refused(self) {
        self.gives(FakeAnswer::refused());
    }

    /// Gets no answer: the connection breaks.
    pub fn breaks(self) {
        self.gives(FakeAnswer::breaks());
    }

    /// Comes back with this.
    pub fn gives(mut self, answer: FakeAnswer) {
        self.expected.answer = answer;
        world(|world| world.requests.expected.push_back(self.expected));
    }
}

/// The text of a recorded file without the lines at its beginning that start with `#` and describe how it was recorded.
pub fn recorded(file: &str) -> &str {
    let mut text = file;
    while let Some((_, rest)) = text.split_once('\n').filter(|_| text.starts_with('#')) {
        text = rest;
    }
    text
}

/// Answers a request: by the next expectation, else by the test's server.
///
/// # Panics
/// When it is another one than expected, with both; when its destination is not granted.
pub(crate) fn answer(request: &Request, body: &[u8]) -> Result<Answer, TransportError> {
    let headers = request
        .headers
        .iter()
        .map(|(name, value)| (name.clone().into_owned(), value.clone()));
    let sent = SentRequest {
        method: request.method.into(),
        url: request.url.clone(),
        headers: headers.collect(),
        body: body.to_vec(),
    };
    granted::insist_on_request(&sent);
    let (next, server) = world(|world| {
        let requests = &mut world.requests;
        requests.sent.push(sent.clone());
        let next = requests.expected.pop_front();
        let server = if next.is_none() { requests.server.take() } else { None };
        (next, server)
    });
    let (after, answer) = match (next, server) {
        (Some(next), _) => {
            next.insist_on(&sent);
            (next.after, next.answer)
        }
        // The server itself may call the host, so it is not in the world meanwhile.
        (None, Some(mut server)) => {
            let answer = server(&sent);
            world(|world| {
                world.requests.server.get_or_insert(server);
            });
            (Duration::ZERO, answer)
        }
        (None, None) => panic!("unexpected request, no further one is expected:\n{sent}"),
    };
    match answer.0 {
        _ if after > request.timeout => no_answer(TransportErrorKind::Unreachable, "no answer in time").0,
        Ok(answer) if answer.body.len() > request.limit => Err(TransportError::too_large(request.limit)),
        answer => answer,
    }
}

impl Expected {
    fn insist_on(&self, sent: &SentRequest) {
        assert!(
            self.method == sent.method && self.url == sent.url,
            "unexpected request:\n{sent}\nexpected:\n  {} {}",
            self.method,
            self.url
        );
        for (name, value) in &self.headers {
            let found = sent.header(name);
            assert!(
                found == Some(value),
                "header {name} is {found:?}, expected {value:?}:\n{sent}"
            );
        }
        let form = sent.form();
        match &self.body {
            Body::Any => {}
            Body::Json(expected) => {
                let found: Option<Value> = serde_json::from_slice(&sent.body).ok();
                let same = found.as_ref() == Some(expected);
                assert!(same, "unexpected body:\n{sent}\nexpected:\n  with {expected}");
            }
            Body::Text(expected) => {
                let same = sent.body == expected.as_bytes();
                assert!(same, "unexpected body:\n{sent}\nexpected:\n  with {expected}");
            }
            Body::Form(expected) | Body::Fields(expected) => {
                let missing: Vec<_> = expected.iter().filter(|field| !form.contains(field)).collect();
                assert!(
                    missing.is_empty(),
                    "fields are missing: {missing:?}, there are {form:?}"
                );
                let exact = matches!(self.body, Body::Form(_));
                let over: Vec<_> = form.iter().filter(|field| exact && !expected.contains(field)).collect();
                assert!(over.is_empty(), "fields too many: {over:?}, expected only {expected:?}");
            }
        }
    }
}

fn owned(fields: &[(&str, &str)]) -> Vec<(String, String)> {
    fields
        .iter()
        .map(|(name, value)| ((*name).into(), (*value).into()))
        .collect()
}

#[cfg(test)]
mod tests;
