//! What makes an answer nonsense, in one place for all versions of the contract.
//!
//! The converters call these on everything a guest says before it becomes a word of the model. What does not pass
//! makes the whole answer a provider fault that names what was wrong; nothing of it is used.

use std::net::IpAddr;
use std::time::Duration;

use cloudwit_model::{Address, AddressKind, Endpoint, IpMode};
use ipnet::IpNet;

/// An answer makes no sense; says what of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Nonsense(pub String);

pub(crate) type Checked<T> = Result<T, Nonsense>;

/// Longest token of a pending answer, in bytes (`wit/v0.1/types.wit`).
const TOKEN: usize = 4 << 10;

/// Bounds of `pending.after-ms` (`wit/v0.1/types.wit`).
const PENDING: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(3600));

/// Longest message of a failure, in bytes. It goes into Events and logs.
const MESSAGE: usize = 2 << 10;

/// Longest name, version or prefix, in bytes.
const WORD: usize = 128;

/// A list answer has to have the length of the list that was asked about.
pub(crate) fn same_length(what: &str, asked: usize, answered: usize) -> Checked<()> {
    if asked == answered {
        return Ok(());
    }
    Err(Nonsense(format!("{what} has {answered} answers for {asked} questions")))
}

/// A text that must not be empty.
pub(crate) fn present(what: &str, text: String) -> Checked<String> {
    if text.is_empty() {
        Err(Nonsense(format!("{what} is empty")))
    } else {
        Ok(text)
    }
}

/// An optional text; guests often write the empty one for none.
pub(crate) fn optional(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

/// An address of a machine, of the form its kind asks for.
pub(crate) fn address(whose: &str, kind: AddressKind, value: String) -> Checked<Address> {
    if kind.is_ip() {
        ip(&format!("the {} of {whose}", kind.as_str()), &value)?;
    } else if value.is_empty() {
        return Err(Nonsense(format!("the {} of {whose} is empty", kind.as_str())));
    }
    Ok(Address { kind, value })
}

/// An IP address without prefix length.
pub(crate) fn ip(what: &str, text: &str) -> Checked<IpAddr> {
    text.parse()
        .map_err(|_| Nonsense(format!("{what} is {text:?}, which is no IP address")))
}

/// A range such as `10.0.0.0/24`.
pub(crate) fn cidr(what: &str, text: String) -> Checked<String> {
    match text.parse::<IpNet>() {
        Ok(_) => Ok(text),
        Err(_) => Err(Nonsense(format!("{what} is {text:?}, which is no CIDR"))),
    }
}

/// Where a load balancer is reached.
pub(crate) fn ip_endpoint(text: &str, mode: IpMode) -> Checked<Endpoint> {
    Ok(Endpoint::Ip(ip("an ingress address", text)?, mode))
}

/// As [`ip_endpoint`], by name. The API server refuses an IP address in this place.
pub(crate) fn name_endpoint(text: String) -> Checked<Endpoint> {
    let text = present("an ingress host name", text)?;
    if text.parse::<IpAddr>().is_ok() {
        return Err(Nonsense(format!(
            "an ingress host name is {text:?}, which is an IP address"
        )));
    }
    Ok(Endpoint::Hostname(text))
}

/// When to ask again, moved into its bounds.
pub(crate) fn pending_after(milliseconds: u32) -> Duration {
    Duration::from_millis(milliseconds.into()).clamp(PENDING.0, PENDING.1)
}

/// The token of a pending answer.
pub(crate) fn token(token: String) -> Checked<String> {
    if token.len() <= TOKEN {
        return Ok(token);
    }
    Err(Nonsense(format!(
        "the token of a pending answer has {} bytes, at most {TOKEN} are kept",
        token.len()
    )))
}

/// The text of a failure: one line, not longer than is useful.
pub(crate) fn message(text: String) -> String {
    shortened(text, MESSAGE).replace(char::is_control, " ")
}

/// A short text without blanks, such as a name, a version or a prefix: it appears in every log line.
pub(crate) fn word(what: &str, text: String) -> Checked<String> {
    if !text.is_empty() && text.len() <= WORD && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(text);
    }
    let shown = shortened(text, WORD);
    Err(Nonsense(format!(
        "{what} is {shown:?}; it needs 1 to {WORD} visible ASCII characters"
    )))
}

/// The text, at most `most` bytes of it.
pub(crate) fn shortened(mut text: String, most: usize) -> String {
    const CUT: &str = "…";
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most - CUT.len()));
        text.push_str(CUT);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_the_form_of_their_kind() {
        for (kind, value, good) in [
            (AddressKind::InternalIP, "10.0.0.1", true),
            (AddressKind::ExternalIP, "2001:db8::1", true),
            (AddressKind::InternalIP, "10.0.0.1/24", false),
            (AddressKind::InternalIP, "node-1", false),
            (AddressKind::ExternalIP, "", false),
            (AddressKind::Hostname, "node-1", true),
            (AddressKind::InternalDNS, "", false),
        ] {
            assert_eq!(
                address("node \"a\"", kind, value.into()).is_ok(),
                good,
                "{kind:?} {value}"
            );
        }
        let error = address("node \"a\"", AddressKind::InternalIP, "x".into()).unwrap_err();
        assert_eq!(error.0, "the InternalIP of node \"a\" is \"x\", which is no IP address");
    }

    #[test]
    fn an_ingress_is_an_address_or_a_name_and_never_mixed_up() {
        assert!(ip_endpoint("192.0.2.1", IpMode::Vip).is_ok());
        assert!(ip_endpoint("lb.example.com", IpMode::Vip).is_err());
        assert!(name_endpoint("lb.example.com".into()).is_ok());
        assert!(name_endpoint("192.0.2.1".into()).is_err());
        assert!(name_endpoint(String::new()).is_err());
    }

    #[test]
    fn the_pause_of_a_pending_answer_stays_in_its_bounds() {
        assert_eq!(pending_after(0), Duration::from_millis(100));
        assert_eq!(pending_after(5000), Duration::from_secs(5));
        assert_eq!(pending_after(u32::MAX), Duration::from_secs(3600));
    }

    #[test]
    fn tokens_and_messages_are_bounded() {
        assert!(token("t".repeat(TOKEN)).is_ok());
        assert!(token("t".repeat(TOKEN + 1)).is_err());
        assert!(message("ä".repeat(MESSAGE)).len() <= MESSAGE);
        assert_eq!(message("short".into()), "short");
        assert_eq!(message("two\nlines\x1b".into()), "two lines ");
    }

    #[test]
    fn a_word_can_stand_in_a_log_line() {
        for good in ["sim", "1.0.0-rc.1+build", "sim://"] {
            assert_eq!(word("x", good.into()), Ok(good.into()));
        }
        for bad in ["", "a b", "a\n", "ä", &"a".repeat(WORD + 1)] {
            assert!(word("x", bad.into()).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn lengths_ranges_and_empty_texts_are_checked() {
        assert_eq!(same_length("lookup", 3, 3), Ok(()));
        assert_eq!(
            same_length("lookup", 3, 2).unwrap_err().0,
            "lookup has 2 answers for 3 questions"
        );
        assert!(cidr("a route", "10.0.0.0/24".into()).is_ok());
        assert!(cidr("a route", "10.0.0.0".into()).is_err());
        assert!(present("a name", String::new()).is_err());
        assert_eq!(optional(Some(String::new())), None);
        assert_eq!(optional(Some("eu".into())), Some("eu".into()));
    }
}
