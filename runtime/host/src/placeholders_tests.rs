//! Every placeholder, every escape, and what is refused.

use super::*;
use crate::destination::{Host, Scheme};
use crate::grants::{SecretGrant, SecretUse};

fn to(host: &str) -> Destination {
    Destination {
        scheme: Scheme::Https,
        host: Host::parse(host).unwrap(),
        port: 443,
    }
}

/// Fills the text in a request to `api.example.com`, to which all of the secrets are bound.
fn filled(text: &str, secrets: &[(&str, &[u8])]) -> Result<Option<Vec<u8>>, PlaceholderError> {
    let dir = tempfile::tempdir().unwrap();
    let grants: Vec<SecretGrant> = secrets
        .iter()
        .map(|(name, secret)| {
            let file = dir.path().join(name);
            std::fs::write(&file, secret).unwrap();
            let (hosts, uses) = (vec!["api.example.com".to_owned()], vec![SecretUse::Placeholder]);
            SecretGrant {
                name: (*name).to_owned(),
                file,
                hosts,
                uses,
            }
        })
        .collect();
    let ring = Keyring::load(&grants).unwrap();
    Ok(fill(text.as_bytes(), &ring, &to("api.example.com"))?.map(|filled| filled.to_vec()))
}

fn text(text: &str, secrets: &[(&str, &[u8])]) -> String {
    String::from_utf8(filled(text, secrets).unwrap().unwrap()).unwrap()
}

#[test]
fn a_text_without_placeholder_is_left_alone() {
    for plain in [
        "",
        "{",
        "{{",
        "{{secret}}",
        "{{ secret:a }}",
        "{{token:a}}",
        "{\"a\":{\"b\":1}}",
    ] {
        assert_eq!(filled(plain, &[]), Ok(None), "{plain}");
    }
}

#[test]
fn every_escape_is_that_of_its_place() {
    let secret: &[(&str, &[u8])] = &[("p", "a\"b\\c&d<e>f'g +/=%~\né".as_bytes())];
    assert_eq!(text("{{secret:p}}", secret), "a\"b\\c&d<e>f'g +/=%~\né");
    assert_eq!(text("{{secret:p|base64}}", secret), "YSJiXGMmZDxlPmYnZyArLz0lfgrDqQ==");
    assert_eq!(text("{{secret:p|json}}", secret), "a\\\"b\\\\c&d<e>f'g +/=%~\\u000Aé");
    assert_eq!(
        text("{{secret:p|form}}", secret),
        "a%22b%5Cc%26d%3Ce%3Ef%27g%20%2B%2F%3D%25~%0A%C3%A9"
    );
    assert_eq!(
        text("{{secret:p|xml}}", secret),
        "a&quot;b\\c&amp;d&lt;e&gt;f&#39;g +/=%~&#10;é"
    );
}

#[test]
fn a_json_string_with_any_secret_reads_back_as_the_secret() {
    let secret: String = (0..0x80_u8).map(char::from).chain("é漢🦀".chars()).collect();
    // A line break at the end of the file would not belong to the secret.
    let json = text("{\"password\":\"{{secret:p|json}}\"}", &[("p", secret.as_bytes())]);
    let read: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(read["password"], secret);
}

#[test]
fn basic_makes_the_value_of_the_header_of_rfc_7617() {
    let secrets: &[(&str, &[u8])] = &[("u", b"Aladdin"), ("p", b"open sesame")];
    assert_eq!(text("{{basic:u:p}}", secrets), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
    let error = filled("{{basic:u:p}}", &[("u", b"a:b"), ("p", b"x")]).unwrap_err();
    assert!(error.to_string().contains("contains a colon"), "{error}");
}

#[test]
fn several_are_filled_and_what_was_filled_in_is_not_looked_at_again() {
    let secrets: &[(&str, &[u8])] = &[("a", b"{{secret:b}}"), ("b", b"B")];
    assert_eq!(
        text("<{{secret:a}}|{{secret:b}}{{secret:b}}>", secrets),
        "<{{secret:b}}|BB>"
    );
}

#[test]
fn a_malformed_placeholder_is_refused_and_not_sent() {
    for bad in [
        "{{secret:}}",
        "{{secret:a",
        "{{secret:a}",
        "{{secret:a b}}",
        "{{secret:a|rot13}}",
        "{{secret:a|json|xml}}",
        "{{basic:a}}",
        "{{basic:a:b:c}}",
        "{{basic::}}",
        "fine {{secret:a}} {{secret:",
    ] {
        assert_eq!(filled(bad, &[("a", b"x")]), Err(PlaceholderError::Malformed), "{bad}");
    }
    let long = format!("{{{{secret:{}}}}}", "a".repeat(LONGEST));
    assert_eq!(filled(&long, &[]), Err(PlaceholderError::Malformed));
}

#[test]
fn a_secret_that_cannot_stand_there_is_refused_by_name_only() {
    for (escape, secret) in [
        ("json", b"\xffcanary".as_slice()),
        ("xml", b"\xffcanary"),
        ("xml", b"\x01canary"),
    ] {
        let error = filled(&format!("{{{{secret:p|{escape}}}}}"), &[("p", secret)]).unwrap_err();
        assert!(matches!(&error, PlaceholderError::Unfit { name, .. } if name == "p"));
        assert!(!error.to_string().contains("canary"));
    }
    assert_eq!(filled("{{secret:p|form}}", &[("p", b"\xff")]).unwrap().unwrap(), b"%FF");
}

#[test]
fn an_unknown_secret_is_refused_with_the_line_that_grants_it() {
    let error = filled("{{secret:p}}", &[]).unwrap_err();
    let PlaceholderError::Withheld(withheld) = &error else {
        panic!("{error}")
    };
    assert!(error.to_string().contains(&withheld.entry));
    assert!(
        withheld
            .entry
            .ends_with("hosts: [api.example.com], uses: [placeholder]}"),
        "{}",
        withheld.entry
    );
}

#[test]
fn urls_with_placeholders_are_recognised_in_any_spelling() {
    for url in [
        "/a?b={{secret:p}}",
        "/a?b=%7B%7Bsecret:p%7D%7D",
        "/%7b{SECRET%3Ap",
        "/{{basic:u:p}}",
    ] {
        assert!(in_url(url), "{url}");
    }
    assert!(!in_url("/a?b={{c}}&secret:p"));
}

#[test]
fn a_defused_text_has_no_placeholder_and_is_otherwise_the_same() {
    assert_eq!(
        defused("a {{secret:p|json}}{{{basic:u:p}}"),
        "a { {secret:p|json}}{{ {basic:u:p}}"
    );
    for text in ["{{secret:{{secret:p}}", "{{{{secret:p}}", "{{secret:{{basic:u:p}}"] {
        assert!(!begins_in(defused(text).as_bytes()), "{text}");
    }
    assert_eq!(
        defused("{\"a\":{\"b\":\"{{ .Values.x }}\"}}"),
        "{\"a\":{\"b\":\"{{ .Values.x }}\"}}"
    );
}
