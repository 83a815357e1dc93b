//! One signed request, and the clock it is signed by.
//!
//! AWS refuses signatures that are more than five minutes off. The host's clock is used until an answer's `Date` shows another time; the
//! difference is then kept in the state, for all calls.

use cloudwit_guest_sdk::form::{CONTENT_TYPE, Form};
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::state::Keep;
use cloudwit_guest_sdk::time::amz_date;
use cloudwit_guest_sdk::xml::Element;

use crate::api::endpoints::Endpoint;
use crate::api::error::AwsError;
use crate::auth::Credential;
use crate::auth::signature::{Scope, Signable, authorization};

/// Key of the clock's difference in the state: seconds to add to the host's clock.
const OFFSET: &str = "clock-offset";

/// Differences up to this are no reason to try again: the signature was not refused for them.
const TOLERANCE: u64 = 60;

/// Sends forms.
#[derive(Debug)]
pub struct Sender {
    pub(crate) context: Context,
    http: Http,
}

impl Sender {
    /// With the world outside.
    pub fn new(context: Context) -> Self {
        // A thousand instances may take AWS long on a bad day: as long as the call lasts.
        let http = context.http().timeout(context.time_left());
        Self { context, http }
    }

    /// Sends a form and reads the answer; once again where the clock was wrong. `action` is only for messages.
    ///
    /// # Errors
    /// With AWS's code, and the failure for it.
    pub fn ask(
        &self,
        endpoint: &Endpoint,
        action: &str,
        form: &Form,
        headers: &[(&'static str, &str)],
        credential: Option<&Credential>,
    ) -> Result<Element, AwsError> {
        let once = || {
            let response = self.send(endpoint, form, headers, credential);
            AwsError::check(action, response.map_err(|failure| failure.context(action))?)
        };
        match once() {
            Err(error) if credential.is_some() && error.may_be_skew() && self.learn_time(&error) => once(),
            answer => answer,
        }
    }

    /// Sends a form once, signed unless there is no credential. Any answer is a success, whatever its status.
    ///
    /// # Errors
    /// `denied` when a destination or secret is not granted, `unavailable` when there was no answer.
    fn send(
        &self,
        endpoint: &Endpoint,
        form: &Form,
        headers: &[(&'static str, &str)],
        credential: Option<&Credential>,
    ) -> Result<Response, Failure> {
        let (authority, path) = authority_and_path(&endpoint.url);
        let url = format!("{}{}", endpoint.url, if path == "/" { "/" } else { "" });
        // Spaces as AWS's own SDKs write them in forms. An encoded form has no other `%20`.
        let body = form.encode().replace("%20", "+");
        let mut request = self.http.post(&url).body(CONTENT_TYPE, body.as_str());
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let Some(credential) = credential else {
            return request.send_any();
        };
        let time = amz_date(self.now());
        let mut signed = vec![
            ("content-type", CONTENT_TYPE),
            ("host", authority),
            ("x-amz-date", time.as_str()),
        ];
        signed.extend_from_slice(headers);
        request = request.header("x-amz-date", time.clone());
        if let Some(token) = credential.session_token() {
            signed.push(("x-amz-security-token", token));
            request = request.header("x-amz-security-token", token);
        }
        let scope = Scope {
            time: &time,
            region: &endpoint.region,
            service: &endpoint.name,
        };
        let signable = Signable {
            method: "POST",
            path,
            query: "",
            headers: signed,
            body: body.as_bytes(),
        };
        let key = credential.signing_key(&self.context)?;
        let id = credential.access_key_id(&self.context)?;
        let header = authorization(self.context.keys(), &id, key, scope, &signable)?;
        request.header("authorization", header).send_any()
    }

    /// The time as AWS has it, as far as that is known.
    fn now(&self) -> u64 {
        let offset = self.offset();
        self.context.now().saturating_add_signed(offset)
    }

    fn offset(&self) -> i64 {
        let kept = self.context.state().get::<String>(OFFSET);
        kept.and_then(|kept| kept.value.parse().ok()).unwrap_or_default()
    }

    /// Takes the time from a refusal. Whether it differs from the one that was signed with, so that a retry makes sense.
    fn learn_time(&self, refusal: &AwsError) -> bool {
        let Some(theirs) = refusal.date else { return false };
        if theirs.abs_diff(self.now()) <= TOLERANCE {
            return false;
        }
        let ours = self.context.now();
        let offset = i64::try_from(theirs).unwrap_or(i64::MAX) - i64::try_from(ours).unwrap_or(i64::MAX);
        warn!(
            seconds = offset,
            "the clock here differs from AWS's, requests are signed with AWS's time; put the clock right"
        );
        self.context
            .state()
            .put(OFFSET, &offset.to_string(), Keep::WHILE_LOADED);
        true
    }
}

/// The host as the header of this name has it, which is without the scheme's own port, and the path.
fn authority_and_path(url: &str) -> (&str, &str) {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let (authority, path) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, "/"),
    };
    let port = if scheme == "https" { ":443" } else { ":80" };
    (authority.strip_suffix(port).unwrap_or(authority), path)
}
