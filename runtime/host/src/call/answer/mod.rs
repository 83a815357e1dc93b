//! Checks of answers, the same for all versions of the contract.
//!
//! The converters pass everything a guest says through here before it becomes a word of the model. Three kinds of text are distinguished:
//!
//! - **Messages** are for people. They are cut, secrets in them are replaced, control characters go: [`Screen::shown`].
//! - **Names** identify something or are written to an object as they are: ids, labels, zones, host names, annotations. They are never changed. One that
//!   is too long or contains a secret is [`InvalidResponse`]: a provider id with a mark in it would be another machine's.
//! - **Tokens** go back to the guest and are shown to no one; only their length counts.
//!
//! InvalidResponse costs the smallest thing it is part of. Of a list of Nodes or route changes it is the one item: a failure [`Failure::InvalidResponse`] that
//! names the field. An odd route in a list is left out. Everywhere else it is the call: a provider fault, and nothing of the answer is used.

pub(crate) mod limits;

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use cloudwit_model::{Address, AddressKind, Endpoint, Failure, IpMode, NodeRef, Presence};
use ipnet::IpNet;

use crate::secrets::redact::Redactor;

/// What is wrong with an invalid response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InvalidResponse(pub String);

pub(crate) type Checked<T> = Result<T, InvalidResponse>;

/// Bounds of `failure.retry-after` (`wit/v0.1/common.wit`).
const RETRY_AFTER: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(3600));

/// When a call is continued that says `pending` without a time.
pub(crate) const DEFAULT_PENDING: Duration = Duration::from_secs(5);

/// So much of a text that is wrong is shown.
const QUOTED: usize = 128;

/// Takes texts of a guest over: within their limits, and without secrets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Screen<'a>(pub &'a Redactor);

impl Screen<'_> {
    /// A text for people: one line, cut before secrets are looked for.
    pub fn shown(&self, text: &str, most: usize) -> String {
        let clean = self.0.redact_of_guest(shortened(text, most));
        // Marks may be longer than what they hide.
        shortened(&clean, most).replace(char::is_control, " ")
    }

    /// The text of a failure.
    pub fn message(&self, text: &str) -> String {
        self.shown(text, limits::MESSAGE)
    }

    /// A text that is used as it is and may be empty.
    pub fn value(&self, what: fmt::Arguments<'_>, text: String, most: usize) -> Checked<String> {
        if text.len() > most {
            return Err(InvalidResponse(format!(
                "{what} has {} bytes, at most {most} are allowed",
                text.len()
            )));
        }
        match self.0.betrayed(&text) {
            None => Ok(text),
            Some(secret) => Err(InvalidResponse(format!("{what} contains the secret {secret:?}"))),
        }
    }

    /// The same, not empty.
    pub fn name(&self, what: fmt::Arguments<'_>, text: String, most: usize) -> Checked<String> {
        if text.is_empty() {
            return Err(InvalidResponse(format!("{what} is empty")));
        }
        self.value(what, text, most)
    }

    /// The same where there may be none; guests often write the empty text for it.
    pub fn optional(&self, what: fmt::Arguments<'_>, text: Option<String>, most: usize) -> Checked<Option<String>> {
        optional(text).map(|text| self.value(what, text, most)).transpose()
    }

    /// An address of a machine, of the form of its kind.
    pub fn address(&self, whose: fmt::Arguments<'_>, kind: AddressKind, value: String) -> Checked<Address> {
        let what = format_args!("the {} of {whose}", kind.as_str());
        let value = if kind.is_ip() {
            ip(what, &value)?;
            value
        } else {
            self.name(what, value, limits::HOST_NAME)?
        };
        Ok(Address { kind, value })
    }

    /// Where a load balancer is reached, by name. The API server refuses an IP address in this place.
    pub fn name_endpoint(&self, text: String) -> Checked<Endpoint> {
        let text = self.name(format_args!("an ingress host name"), text, limits::HOST_NAME)?;
        if text.parse::<IpAddr>().is_ok() {
            return Err(InvalidResponse(format!(
                "an ingress host name is {text:?}, which is an IP address"
            )));
        }
        Ok(Endpoint::Hostname(text))
    }

    /// A short text without blanks, such as a name, a version or a prefix: it appears in every log line.
    pub fn word(&self, what: fmt::Arguments<'_>, text: String) -> Checked<String> {
        let most = limits::WORD;
        if text.is_empty() || text.len() > most || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            let shown = quoted(&text);
            return Err(InvalidResponse(format!(
                "{what} is {shown}; it needs 1 to {most} visible ASCII characters"
            )));
        }
        self.value(what, text, most)
    }

    /// What is left of an item that is invalid.
    pub fn invalid(&self, invalid: &InvalidResponse) -> Failure {
        Failure::InvalidResponse(self.message(&invalid.0))
    }
}

/// A list answer has to have the length of the list of the request.
pub(crate) fn same_length(what: &str, asked: usize, answered: usize) -> Checked<()> {
    if asked == answered {
        return Ok(());
    }
    Err(InvalidResponse(format!(
        "{what} has {answered} answers for {asked} items"
    )))
}

/// A list that is not longer than it may be.
pub(crate) fn at_most<T>(what: fmt::Arguments<'_>, list: &[T], most: usize) -> Checked<()> {
    if list.len() <= most {
        return Ok(());
    }
    Err(InvalidResponse(format!(
        "{what} has {} entries, at most {most} are allowed",
        list.len()
    )))
}

/// An optional text; guests often write the empty one for none.
pub(crate) fn optional(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

/// An IP address without prefix length.
pub(crate) fn ip(what: fmt::Arguments<'_>, text: &str) -> Checked<IpAddr> {
    text.parse()
        .map_err(|_| InvalidResponse(format!("{what} is {}, which is not an IP address", quoted(text))))
}

/// A range such as `10.0.0.0/24`.
pub(crate) fn cidr(what: fmt::Arguments<'_>, text: String) -> Checked<String> {
    if text.len() <= limits::CIDR && text.parse::<IpNet>().is_ok() {
        return Ok(text);
    }
    Err(InvalidResponse(format!(
        "{what} is {}, which is not a CIDR",
        quoted(&text)
    )))
}

/// Where a load balancer is reached.
pub(crate) fn ip_endpoint(text: &str, mode: IpMode) -> Checked<Endpoint> {
    Ok(Endpoint::Ip(ip(format_args!("an ingress address"), text)?, mode))
}

/// Time of the next call, moved into its bounds.
pub(crate) fn retry_after(milliseconds: u32) -> Duration {
    Duration::from_millis(milliseconds.into()).clamp(RETRY_AFTER.0, RETRY_AFTER.1)
}

/// The token of a pending answer.
pub(crate) fn token(token: String) -> Checked<String> {
    let most = limits::TOKEN;
    if token.len() <= most {
        return Ok(token);
    }
    Err(InvalidResponse(format!(
        "the token of a pending answer has {} bytes, at most {most} are kept",
        token.len()
    )))
}

/// The presence, unless its machine has an id that the provider does not give out: `spec.providerID` is written once, and a Node with an id of
/// nobody's is left alone for ever. A provider that declares no prefixes may give out any, and the id that a Node has is none of its giving.
pub(crate) fn own_id(prefixes: &[String], node: &NodeRef, presence: Presence) -> Checked<Presence> {
    let Some(instance) = presence.instance() else {
        return Ok(presence);
    };
    let id = &instance.provider_id;
    let own = prefixes.iter().any(|prefix| id.starts_with(prefix.as_str()));
    if own || prefixes.is_empty() || node.provider_id.as_ref() == Some(id) {
        return Ok(presence);
    }
    Err(InvalidResponse(format!(
        "the provider id of node {:?} is {}, which begins with no prefix that the provider declares ({})",
        node.name,
        quoted(id),
        prefixes.join(", ")
    )))
}

/// A text that is wrong, for a message.
pub(crate) fn quoted(text: &str) -> String {
    format!("{:?}", shortened(text, QUOTED))
}

/// The text, at most `most` bytes of it. Does not look at what is cut off.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    const CUT: &str = "…";
    if text.len() <= most {
        return text.to_owned();
    }
    format!(
        "{}{CUT}",
        &text[..text.floor_char_boundary(most.saturating_sub(CUT.len()))]
    )
}

#[cfg(test)]
mod tests;
