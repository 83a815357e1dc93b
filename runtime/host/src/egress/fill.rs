//! Fills placeholders in one request, or refuses it.

use http::{HeaderMap, HeaderValue, Uri, header};

use crate::egress::Stopped;
use crate::egress::refusal::{Refusal, RefusalReason};
use crate::egress::request_body::{BUFFER_LIMIT, Collected, RequestBody};
use crate::net::destination::Destination;
use crate::secrets::keys::Keyring;
use crate::secrets::placeholders::{FillError, Filled, Filling, Placeholders};

/// Fills in the secrets of one request.
pub(super) struct Fill<'a> {
    placeholders: &'a Placeholders,
    to: &'a Destination,
    filling: Filling<'a>,
}

impl<'a> Fill<'a> {
    pub fn new(placeholders: &'a Placeholders, keyring: &'a Keyring, to: &'a Destination) -> Self {
        Self {
            placeholders,
            to,
            filling: Filling::new(placeholders, keyring, to),
        }
    }

    /// Refuses a URL with a placeholder in it.
    pub fn leave_out_of(&self, url: &Uri) -> Result<(), Stopped> {
        if self.placeholders.any_in(url.to_string().as_bytes()) {
            let why = "its URL contains a placeholder for a secret; URLs are logged by servers and proxies, so placeholders are filled \
                       only in headers and bodies";
            return Err(self.refuse(why, None));
        }
        Ok(())
    }

    fn refuse(&self, why: impl std::fmt::Display, yaml: Option<String>) -> Stopped {
        let message = format!("a request to {} is refused: {why}", self.to);
        let (reason, destination) = (RefusalReason::Placeholder, Some(self.to.clone()));
        Refusal {
            reason,
            destination,
            message,
            yaml,
        }
        .into()
    }

    fn text(&mut self, text: &[u8]) -> Result<Option<Filled>, Stopped> {
        self.filling.fill(text).map_err(|error| {
            let yaml = match &error {
                FillError::Withheld(withheld) => Some(withheld.entry.clone()),
                FillError::TooMany | FillError::TooLarge => None,
            };
            self.refuse(error, yaml)
        })
    }

    /// Fills header values and marks them as sensitive. Drops `host`, which belongs to the URL.
    pub fn headers(&mut self, mut headers: HeaderMap) -> Result<HeaderMap, Stopped> {
        headers.remove(header::HOST);
        for (name, value) in &mut headers {
            let Some(filled) = self.text(value.as_bytes())? else {
                continue;
            };
            let unfit = format!("a secret for the header {name} contains a line break or another control character");
            *value = HeaderValue::from_bytes(&filled).map_err(|_| self.refuse(unfit, None))?;
            value.set_sensitive(true);
        }
        Ok(headers)
    }

    /// Fills a body, of which no more than [`BUFFER_LIMIT`] was read.
    pub fn body(&mut self, body: Collected, headers: &mut HeaderMap) -> Result<RequestBody, Stopped> {
        match body {
            Collected::Whole(bytes, trailers) => {
                headers.remove(header::CONTENT_LENGTH);
                Ok(match self.text(&bytes)? {
                    Some(filled) => RequestBody::filled(filled, trailers),
                    None => RequestBody::whole(bytes, trailers),
                })
            }
            Collected::Start(start, _) if self.placeholders.any_in(&start) => {
                let why = format!("it contains a placeholder for a secret and has more than {BUFFER_LIMIT} bytes");
                Err(self.refuse(why, None))
            }
            Collected::Start(start, rest) => Ok(RequestBody::streamed(start, rest, self.placeholders.clone())),
        }
    }
}
