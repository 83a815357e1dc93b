//! SOAP of vSphere's services (vim25, vSAN, policies): one call, its answer or its fault.
//!
//! A fault comes with status 500; its kind is in the `type` of what is inside of `detail`. Names are compared without prefixes:
//! which ones there are differs between servers.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::xml::{Element, escape};

/// The oldest version of the API that is still supported; used until the server has reported its own.
pub const FIRST_VERSION: &str = "6.5";

/// The cookie of a session.
const COOKIE: &str = "vmware_soap_session=";

/// A managed object, such as `VirtualMachine` `vm-12`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reference {
    /// Its type.
    pub kind: String,
    /// Its id, unique on its server.
    pub value: String,
}

impl Reference {
    /// One of this type.
    pub fn new(kind: &str, value: &str) -> Self {
        Self {
            kind: kind.into(),
            value: value.into(),
        }
    }

    /// What an element refers to; none when it is empty.
    pub fn of(element: &Element) -> Option<Self> {
        let value = element.own_text();
        (!value.is_empty()).then(|| Self::new(element.attribute("type").unwrap_or_default(), value))
    }

    /// As an element of this name.
    pub fn write(&self, name: &str) -> String {
        let (kind, value) = (escape(&self.kind), escape(&self.value));
        format!("<{name} type=\"{kind}\">{value}</{name}>")
    }
}

/// A service of the server, and how it is called.
#[derive(Debug, Clone, Copy)]
pub struct Service<'a> {
    /// Path of its endpoint.
    pub path: &'a str,
    /// Namespace of its methods, without `urn:`.
    pub namespace: &'a str,
    /// Namespace and version of what it is to answer in, without `urn:`.
    pub action: &'a str,
    /// A session of vim25 for the header: services without a login of their own take it from there.
    pub session: Option<&'a str>,
    /// Whether a call may be made once more when its answer is broken: not where it begins something that is not to be begun twice.
    pub again: bool,
}

/// The server's fault instead of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Its type, such as `NotAuthenticated`.
    pub kind: String,
    /// The object it is about.
    pub object: Option<Reference>,
    /// Free text.
    pub message: String,
}

/// Why a call has no answer.
#[derive(Debug)]
pub enum CallError {
    /// The server refused.
    Fault(Fault),
    /// There was no answer, or none that is one.
    Failure(Failure),
}

impl From<Failure> for CallError {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl CallError {
    /// Whether the session is over. vCenter reports so, or does not find an object that lives in a session.
    pub fn is_end_of_session(&self) -> bool {
        let Self::Fault(fault) = self else { return false };
        let in_session = |object: &Reference| object.kind.ends_with("View") || object.kind == "PropertyCollector";
        fault.kind == "NotAuthenticated"
            || (fault.kind == "ManagedObjectNotFound" && fault.object.as_ref().is_some_and(in_session))
    }
}

/// The case decides when the host tries again.
impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        let fault = match error {
            CallError::Failure(failure) => return failure,
            CallError::Fault(fault) => fault,
        };
        let text = format!("{}: {}", fault.kind, fault.message);
        let kind = match fault.kind.as_str() {
            "InvalidLogin" | "NotAuthenticated" | "NoPermission" | "PasswordExpired" => FailureKind::Denied,
            "ManagedObjectNotFound" => FailureKind::NotFound,
            "RequestCanceled" | "HostCommunication" | "HostNotReachable" => FailureKind::Unavailable,
            _ => FailureKind::Other,
        };
        Self::new(kind, text).with_code(&fault.kind)
    }
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    envelope: Element,
    /// The session's cookie, when one was given.
    pub cookie: Option<String>,
}

impl Answer {
    /// The values that the method returns: none, one, or a list.
    pub fn values(&self) -> impl Iterator<Item = &Element> {
        let content = content(&self.envelope);
        content.into_iter().flat_map(|content| content.children("returnval"))
    }

    /// The first of them.
    pub fn value(&self) -> Option<&Element> {
        self.values().next()
    }

    /// What the value refers to.
    pub fn reference(&self) -> Option<Reference> {
        self.value().and_then(Reference::of)
    }
}

/// What is inside of the SOAP body.
fn content(envelope: &Element) -> Option<&Element> {
    envelope.child("Body").and_then(|body| body.elements().next())
}

/// The client of one server.
#[derive(Debug)]
pub struct Soap {
    http: Http,
    attempts: u32,
}

impl Soap {
    /// For the server at this URL. A call whose answer is broken is made so often in all.
    pub fn new(http: Http, url: &str, attempts: u32) -> Self {
        Self {
            http: http.base(url),
            attempts,
        }
    }

    /// Calls `method` of `this` with these parameters as XML.
    ///
    /// # Errors
    /// The fault, or why there is no answer.
    pub fn call(
        &self,
        version: &str,
        cookie: Option<&str>,
        method: &str,
        this: &Reference,
        parameters: &str,
    ) -> Result<Answer, CallError> {
        let service = Service {
            path: "/sdk",
            namespace: "vim25",
            action: &["vim25/", version].concat(),
            session: None,
            again: true,
        };
        self.call_service(&service, cookie, method, this, parameters)
    }

    /// The same of another service.
    ///
    /// # Errors
    /// The fault, or why there is no answer.
    pub fn call_service(
        &self,
        service: &Service<'_>,
        cookie: Option<&str>,
        method: &str,
        this: &Reference,
        parameters: &str,
    ) -> Result<Answer, CallError> {
        let header = service.session.map(|session| {
            let session = escape(session);
            format!("<Header><vcSessionCookie>{session}</vcSessionCookie></Header>")
        });
        let body = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Envelope xmlns=\"http://schemas.xmlsoap.org/soap/envelope/\" \
             xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\">{}<Body><{method} xmlns=\"urn:{}\">{}{parameters}</{method}></Body></Envelope>",
            header.unwrap_or_default(),
            service.namespace,
            this.write("_this")
        );
        let mut attempt = 1;
        loop {
            match self.once(service, cookie, &body) {
                Err(Once::Again(failure)) if service.again && attempt < self.attempts => {
                    debug!(method = method, "asked once again: {}", failure.message());
                    attempt += 1;
                }
                Err(Once::Again(failure) | Once::Final(CallError::Failure(failure))) => {
                    return Err(failure.context(method).into());
                }
                Err(Once::Final(error)) => return Err(error),
                Ok(answer) => return Ok(answer),
            }
        }
    }

    /// A document of the server.
    ///
    /// # Errors
    /// Why there is none.
    pub fn document(&self, path: &str) -> Result<Element, Failure> {
        self.http.get(path).send()?.xml()
    }

    fn once(&self, service: &Service<'_>, cookie: Option<&str>, body: &str) -> Result<Answer, Once> {
        let mut request = self
            .http
            .post(service.path)
            .header("soapaction", format!("urn:{}", service.action))
            .body("text/xml; charset=utf-8", body);
        if let Some(cookie) = cookie {
            request = request.header("cookie", cookie);
        }
        let response = request.send_any().map_err(|failure| Once::Final(failure.into()))?;
        let fault = response.status == 500;
        // A gateway before the server has its own format of errors.
        if !fault && response.status != 200 {
            return Err(match response.success() {
                Err(
                    failure @ Failure {
                        kind: FailureKind::Unavailable,
                        ..
                    },
                ) => Once::Again(failure),
                Err(failure) => Once::Final(failure.into()),
                Ok(_) => Once::Final(Failure::other("this is no answer of vSphere").into()),
            });
        }
        let cookies = response
            .headers
            .iter()
            .filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"));
        let mut cookies = cookies.filter_map(|(_, value)| value.split(';').next());
        // Proxies add cookies of their own.
        let cookie = cookies.find(|cookie| cookie.starts_with(COOKIE)).map(String::from);
        let envelope = response.xml().map_err(Once::Again)?;
        match content(&envelope) {
            Some(content) if content.name == "Fault" => Err(Once::Final(CallError::Fault(read_fault(content)))),
            Some(_) if !fault => Ok(Answer { envelope, cookie }),
            _ => Err(Once::Again(Failure::unavailable(
                "the answer is no SOAP, as if it came from something else",
            ))),
        }
    }
}

/// Whether a retry makes sense.
enum Once {
    Again(Failure),
    Final(CallError),
}

/// The type of a fault in `xsi:type`, without its namespace.
pub fn type_of(element: &Element) -> Option<&str> {
    element.attribute("type").and_then(|kind| kind.rsplit(':').next())
}

fn read_fault(fault: &Element) -> Fault {
    let detail = fault.child("detail").and_then(|detail| detail.elements().next());
    let kind = detail.map(|detail| match type_of(detail) {
        Some(kind) => kind,
        None => detail.name.strip_suffix("Fault").unwrap_or(&detail.name),
    });
    let object = detail.and_then(|detail| detail.child("obj").or_else(|| detail.child("object")));
    Fault {
        kind: kind.unwrap_or("a fault").into(),
        object: object.and_then(Reference::of),
        message: fault.text("faultstring").unwrap_or_default().into(),
    }
}

#[cfg(test)]
mod tests;
