use std::time::Duration;

use cloudwit_model::{AddressKind, IpMode, NodeRef, Presence};
use proptest::prelude::*;

use super::*;
use crate::call::answer::limits;
use crate::secrets::redact::Redactor;

const SECRET: &str = "canary-7391-secret";

fn redactor() -> Redactor {
    Redactor::new([("token", SECRET.as_bytes())])
}

#[test]
fn addresses_have_the_form_of_their_kind() {
    let redactor = redactor();
    let address = |kind, value: &str| Screen(&redactor).address(format_args!("node \"a\""), kind, value.to_owned());
    for (kind, value, good) in [
        (AddressKind::InternalIP, "10.0.0.1", true),
        (AddressKind::ExternalIP, "2001:db8::1", true),
        (AddressKind::InternalIP, "10.0.0.1/24", false),
        (AddressKind::InternalIP, "node-1", false),
        (AddressKind::ExternalIP, "", false),
        (AddressKind::Hostname, "node-1", true),
        (AddressKind::InternalDNS, "", false),
        (AddressKind::InternalDNS, SECRET, false),
        (AddressKind::Hostname, &"a".repeat(limits::HOST_NAME + 1), false),
    ] {
        assert_eq!(address(kind, value).is_ok(), good, "{kind:?} {value}");
    }
    let error = address(AddressKind::InternalIP, "x").unwrap_err();
    assert_eq!(
        error.0,
        "the InternalIP of node \"a\" is \"x\", which is not an IP address"
    );
}

#[test]
fn an_ingress_is_an_address_or_a_name_and_never_mixed_up() {
    let redactor = redactor();
    let name_endpoint = |text: &str| Screen(&redactor).name_endpoint(text.to_owned());
    assert!(ip_endpoint("192.0.2.1", IpMode::Vip).is_ok());
    assert!(ip_endpoint("lb.example.com", IpMode::Vip).is_err());
    assert!(name_endpoint("lb.example.com").is_ok());
    assert!(name_endpoint("192.0.2.1").is_err());
    assert!(name_endpoint("").is_err());
    assert!(name_endpoint(&format!("{SECRET}.example.com")).is_err());
}

#[test]
fn the_pause_of_a_pending_answer_stays_in_its_bounds() {
    assert_eq!(retry_after(0), Duration::from_millis(100));
    assert_eq!(retry_after(5000), Duration::from_secs(5));
    assert_eq!(retry_after(u32::MAX), Duration::from_secs(3600));
}

#[test]
fn tokens_and_messages_are_bounded() {
    let redactor = redactor();
    let message = |text: &str| Screen(&redactor).message(text);
    assert!(token("t".repeat(limits::TOKEN)).is_ok());
    assert!(token("t".repeat(limits::TOKEN + 1)).is_err());
    assert!(message(&"ä".repeat(limits::MESSAGE)).len() <= limits::MESSAGE);
    assert_eq!(message("short"), "short");
    assert_eq!(message("two\nlines\x1b"), "two lines ");
}

#[test]
fn a_secret_at_the_cut_of_a_message_is_hidden() {
    let redactor = redactor();
    for before in limits::MESSAGE - 30..limits::MESSAGE {
        let clean = Screen(&redactor).message(&format!("{}{SECRET}", "x".repeat(before)));
        assert!(!clean.contains(&SECRET[..8]), "{before}: {clean}");
    }
}

#[test]
fn a_name_with_a_secret_or_beyond_its_limit_is_nonsense() {
    let redactor = redactor();
    let name = |text: &str| Screen(&redactor).name(format_args!("the zone of node \"a\""), text.to_owned(), 20);
    assert_eq!(name("eu-1a"), Ok("eu-1a".to_owned()));
    for (text, problem) in [
        ("", "the zone of node \"a\" is empty"),
        (SECRET, "the zone of node \"a\" contains the secret \"token\""),
        (
            "eu-1a-eu-1a-eu-1a-eu-1a",
            "the zone of node \"a\" has 23 bytes, at most 20 are allowed",
        ),
    ] {
        assert_eq!(name(text).unwrap_err().0, problem);
    }
}

#[test]
fn a_word_can_stand_in_a_log_line() {
    let redactor = redactor();
    let word = |text: &str| Screen(&redactor).word(format_args!("x"), text.to_owned());
    for good in ["sim", "1.0.0-rc.1+build", "sim://"] {
        assert_eq!(word(good), Ok(good.into()));
    }
    for bad in ["", "a b", "a\n", "ä", SECRET, &"a".repeat(limits::WORD + 1)] {
        assert!(word(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn lengths_ranges_and_empty_texts_are_checked() {
    assert_eq!(same_length("lookup", 3, 3), Ok(()));
    assert_eq!(
        same_length("lookup", 3, 2).unwrap_err().0,
        "lookup has 2 answers for 3 items"
    );
    assert!(at_most(format_args!("x"), &[1, 2], 2).is_ok() && at_most(format_args!("x"), &[1, 2], 1).is_err());
    assert!(cidr(format_args!("a route"), "10.0.0.0/24".into()).is_ok());
    assert!(cidr(format_args!("a route"), "10.0.0.0".into()).is_err());
    assert_eq!(optional(Some(String::new())), None);
    assert_eq!(optional(Some("eu".into())), Some("eu".into()));
}

#[test]
fn id_outside_of_declared_prefixes_is_invalid() {
    let node = |id: Option<&str>| NodeRef {
        name: "a".into(),
        provider_id: id.map(Into::into),
        ..NodeRef::default()
    };
    let running = |id: &str| {
        Presence::Running(cloudwit_model::Instance {
            provider_id: id.into(),
            ..Default::default()
        })
    };
    let declared = ["sim://".to_owned(), "old-sim://".to_owned()];
    let checked = |has: Option<&str>, answered: &str| own_id(&declared, &node(has), running(answered));
    assert!(checked(None, "sim://1").is_ok() && checked(None, "old-sim://1").is_ok());
    let problem = checked(None, "other://1").unwrap_err().0;
    assert!(
        problem.contains("\"other://1\"") && problem.contains("sim://, old-sim://"),
        "{problem}"
    );
    assert!(checked(Some("sim://1"), "other://1").is_err());
    assert!(
        checked(Some("other://1"), "other://1").is_ok(),
        "the Node had it before"
    );
    assert!(own_id(&[], &node(None), running("other://1")).is_ok());
    let absent = Presence::Absent(cloudwit_model::Evidence::ById);
    assert_eq!(own_id(&declared, &node(None), absent.clone()), Ok(absent));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn shown_texts_are_one_short_line_without_secrets(
        before in "\\PC{0,40}|[a-z\n]{0,2100}",
        from in 0..10_usize,
        after in any::<String>(),
        most in 0..3000_usize,
    ) {
        let redactor = redactor();
        let shown = Screen(&redactor).shown(&format!("{before}{}{after}", &SECRET[from..]), most);
        prop_assert!(shown.len() <= most.max("…".len()));
        prop_assert!(!shown.contains(char::is_control));
        prop_assert!(!SECRET.as_bytes().windows(8).any(|piece| shown.as_bytes().windows(8).any(|here| here == piece)));
    }

    #[test]
    fn checks_of_any_text_end_with_an_answer(text in any::<String>(), most in 0..100_usize) {
        let redactor = redactor();
        let screen = Screen(&redactor);
        let what = || format_args!("it");
        let _ = (ip(what(), &text), cidr(what(), text.clone()), ip_endpoint(&text, IpMode::Vip), token(text.clone()));
        let _ = (screen.name_endpoint(text.clone()), screen.word(what(), text.clone()), quoted(&text));
        if let Ok(name) = screen.name(what(), text.clone(), most) {
            prop_assert!(name == text && !name.is_empty() && name.len() <= most);
        }
        prop_assert!(shortened(&text, most).len() <= most.max("…".len()));
    }
}
