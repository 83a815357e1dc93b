//! What is issued, what is filled, and what never is.

use std::path::PathBuf;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::grants::{Grants, SecretGrant, SecretUse};
use crate::net::destination::{Destination, Host, Scheme};
use crate::secrets::encoding::Encoding;
use crate::secrets::keys::{KeyError, Keyring};

fn to(host: &str) -> Destination {
    Destination {
        scheme: Scheme::Https,
        host: Host::parse(host).unwrap(),
        port: 443,
    }
}

/// A ring with these secrets, each bound to `api.example.com`.
fn ring(secrets: &[(&str, &[u8])]) -> Keyring {
    let dir = tempfile::tempdir().unwrap();
    let grants: Vec<SecretGrant> = secrets
        .iter()
        .map(|(name, secret)| {
            let file = dir.path().join(name);
            // One line break at the end of the file would not belong to the secret.
            let end: &[u8] = if secret.ends_with(b"\n") { b"\n" } else { b"" };
            std::fs::write(&file, [*secret, end].concat()).unwrap();
            let (hosts, uses) = (vec!["api.example.com".to_owned()], vec![SecretUse::Placeholder]);
            SecretGrant {
                name: (*name).to_owned(),
                file,
                hosts,
                uses,
            }
        })
        .collect();
    Keyring::load(&grants).unwrap()
}

/// A call, and the secrets of its provider.
struct Call {
    issued: Placeholders,
    ring: Keyring,
}

impl Call {
    fn with(secrets: &[(&str, &[u8])]) -> Self {
        Self {
            issued: Placeholders::default(),
            ring: ring(secrets),
        }
    }

    fn asks(&self, stands_for: StandsFor) -> Result<String, KeyError> {
        self.issued.issue(stands_for, &self.ring, &["api.example.com".into()])
    }

    fn placeholder(&self, name: &str, encoding: Encoding) -> String {
        self.asks(StandsFor::Secret(name.into(), encoding)).unwrap()
    }

    /// What one text of a request to `api.example.com` becomes.
    fn fills(&self, text: &[u8]) -> Result<Option<Filled>, FillError> {
        Filling::new(&self.issued, &self.ring, &to("api.example.com")).fill(text)
    }

    fn sends(&self, text: &str) -> String {
        let filled = self.fills(text.as_bytes()).unwrap();
        filled.map_or(text.to_owned(), |filled| String::from_utf8(filled.to_vec()).unwrap())
    }
}

#[test]
fn a_placeholder_survives_json_forms_xml_and_urls_unchanged() {
    let call = Call::with(&[("p", b"x")]);
    let text = call.placeholder("p", Encoding::Plain);
    assert_eq!(text.len(), LENGTH);
    for encoding in [Encoding::Json, Encoding::Form, Encoding::Xml] {
        let mut escaped = Vec::new();
        encoding.write(text.as_bytes(), &mut escaped);
        assert_eq!(escaped, text.as_bytes(), "{encoding:?}");
    }
    assert_eq!(
        text.to_ascii_lowercase(),
        text,
        "the host of a URL is written in lower case"
    );
}

#[test]
fn placeholders_are_filled_as_requested() {
    let call = Call::with(&[("u", b"Aladdin"), ("p", b"open \"sesame\"")]);
    let plain = call.placeholder("p", Encoding::Plain);
    let json = call.placeholder("p", Encoding::Json);
    let basic = call.asks(StandsFor::Basic("u".into(), "p".into())).unwrap();
    assert_eq!(
        call.sends(&format!("<{plain}|{json}{basic}>")),
        "<open \"sesame\"|open \\\"sesame\\\"Basic QWxhZGRpbjpvcGVuICJzZXNhbWUi>"
    );
}

#[test]
fn asking_for_the_same_again_gives_the_same_and_calls_differ() {
    let (one, other) = (Call::with(&[("p", b"x")]), Call::with(&[("p", b"x")]));
    let first = one.placeholder("p", Encoding::Plain);
    assert_eq!(one.placeholder("p", Encoding::Plain), first);
    assert_ne!(one.placeholder("p", Encoding::Json), first);
    assert_ne!(other.placeholder("p", Encoding::Plain), first);
}

#[test]
fn a_call_gets_64_placeholders_and_then_none() {
    let names: Vec<String> = (0..=MOST_PER_CALL).map(|number| format!("s{number}")).collect();
    let secrets: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), b"x".as_slice())).collect();
    let call = Call::with(&secrets);
    for name in &names[..MOST_PER_CALL] {
        call.placeholder(name, Encoding::Plain);
    }
    let error = call.asks(StandsFor::Secret(names[MOST_PER_CALL].clone(), Encoding::Plain));
    assert!(matches!(error, Err(KeyError::Unusable(text)) if text.contains("more than 64 placeholders")));
    call.placeholder(&names[0], Encoding::Plain);
}

#[test]
fn an_unknown_secret_is_refused_with_a_line_that_grants_it() {
    let call = Call::with(&[]);
    let error = call.asks(StandsFor::Basic("u".into(), "p".into())).unwrap_err();
    let KeyError::NotGranted(text) = &error else {
        panic!("{error:?}")
    };
    let yaml = &text[text.find("- {").unwrap()..];
    let grants: Grants = serde_saphyr::from_str(&format!("secrets:\n{yaml}")).unwrap();
    let expected = SecretGrant {
        name: "u".into(),
        file: PathBuf::from("/etc/cloudwit/secrets/u"),
        hosts: vec!["api.example.com".into()],
        uses: vec![SecretUse::Placeholder],
    };
    assert_eq!(grants.secrets, [expected]);
}

#[test]
fn a_secret_that_cannot_be_written_so_is_refused_by_name_only() {
    let call = Call::with(&[("p", b"\xffcanary"), ("u", b"can:ary")]);
    for stands_for in [
        StandsFor::Secret("p".into(), Encoding::Json),
        StandsFor::Secret("p".into(), Encoding::Xml),
        StandsFor::Basic("u".into(), "p".into()),
    ] {
        let error = call.asks(stands_for).unwrap_err().to_string();
        assert!(
            error.contains("cannot be written") && !error.contains("canary"),
            "{error}"
        );
    }
}

#[test]
fn other_destination_gets_no_secret_but_the_binding_line() {
    let call = Call::with(&[("p", b"canary")]);
    let text = call.placeholder("p", Encoding::Plain);
    let there = to("evil.example.com");
    let error = Filling::new(&call.issued, &call.ring, &there).fill(text.as_bytes());
    let Err(FillError::Withheld(withheld)) = error else {
        panic!("{error:?}")
    };
    assert!(withheld.entry.contains("hosts: [api.example.com, evil.example.com]"));
}

#[test]
fn a_secret_that_contains_a_placeholder_is_not_filled_again() {
    let call = Call::with(&[("a", b"x"), ("b", b"SECRET")]);
    let b = call.placeholder("b", Encoding::Plain);
    let ring = ring(&[("a", b.as_bytes()), ("b", b"SECRET")]);
    let call = Call { ring, ..call };
    let a = call.placeholder("a", Encoding::Plain);
    assert_eq!(call.sends(&format!("{a} {b}")), format!("{b} SECRET"));
}

#[test]
fn the_old_form_and_foreign_placeholders_are_sent_as_they_are() {
    let (call, earlier) = (Call::with(&[("p", b"canary")]), Call::with(&[("p", b"canary")]));
    let old = earlier.placeholder("p", Encoding::Plain);
    let mine = call.placeholder("p", Encoding::Plain);
    for text in [
        "{{secret:p}}",
        "{{basic:p:p}}",
        PREFIX,
        &old,
        &mine[..LENGTH - 1],
        &mine.to_ascii_uppercase(),
        &mine.replace('-', "%2D"),
    ] {
        assert_eq!(call.sends(text), text);
    }
    assert_eq!(
        call.sends(&format!("{PREFIX}{mine}{PREFIX}")),
        format!("{PREFIX}canary{PREFIX}")
    );
}

#[test]
fn sixteen_places_of_a_request_are_filled_and_not_one_more() {
    let call = Call::with(&[("p", b"x")]);
    let text = call.placeholder("p", Encoding::Plain);
    let there = to("api.example.com");
    let mut filling = Filling::new(&call.issued, &call.ring, &there);
    let half = text.repeat(MOST_PER_REQUEST / 2);
    assert!(filling.fill(half.as_bytes()).is_ok(), "a header");
    assert!(filling.fill(half.as_bytes()).is_ok(), "the body");
    assert_eq!(filling.fill(text.as_bytes()), Err(FillError::TooMany));
    // A body of a million bytes of them is refused at the 17th.
    let error = call.fills(text.repeat(20_000).as_bytes());
    assert_eq!(error, Err(FillError::TooMany));
}

#[test]
fn oversized_request_is_refused_before_filling() {
    let large = vec![b'"'; 100 << 10];
    let call = Call::with(&[("large", &large)]);
    // 600 KiB in XML.
    let text = call.placeholder("large", Encoding::Xml);
    assert_eq!(call.fills(text.as_bytes()).unwrap().unwrap().len(), 600 << 10);
    assert_eq!(call.fills(text.repeat(2).as_bytes()), Err(FillError::TooLarge));
}

#[test]
fn size_refusal_does_not_reveal_short_secrets_length() {
    let refused = |secret: &[u8]| {
        let call = Call::with(&[("p", secret)]);
        let text = call.placeholder("p", Encoding::Plain);
        let fits = |padding: usize| call.fills((text.clone() + &"x".repeat(padding)).as_bytes()).is_ok();
        // The first size that is refused.
        let (mut fitting, mut over) = (0, FILLED_LIMIT);
        while over - fitting > 1 {
            let middle = usize::midpoint(fitting, over);
            *(if fits(middle) { &mut fitting } else { &mut over }) = middle;
        }
        over
    };
    assert_eq!(refused(b"x"), refused(&[b'x'; 4_096]));
}

/// Pieces of a text: foreign ones, and the number of a placeholder.
#[derive(Debug, Clone)]
enum Piece {
    Foreign(Vec<u8>),
    Issued(usize),
}

fn piece() -> impl Strategy<Value = Piece> {
    let lookalike = "(cloudwit-placeholder-)?[0-9a-f]{0,34}(\\{\\{secret:a\\}\\})?";
    prop_oneof![
        vec(any::<u8>(), 0..40).prop_map(Piece::Foreign),
        lookalike.prop_map(|text: String| Piece::Foreign(text.into_bytes())),
        (0..4_usize).prop_map(Piece::Issued),
    ]
}

proptest! {
    #[test]
    fn secrets_stand_at_issued_texts_and_nowhere_else(
        pieces in vec(piece(), 0..24),
        secrets in [vec(any::<u8>(), 1..80), vec(any::<u8>(), 1..80)],
    ) {
        let call = Call::with(&[("a", &secrets[0]), ("b", &secrets[1])]);
        let forms = [("a", Encoding::Plain), ("a", Encoding::Base64), ("b", Encoding::Form), ("b", Encoding::Plain)];
        let issued = forms.map(|(name, encoding)| call.placeholder(name, encoding));
        let (mut text, mut expected, mut places) = (Vec::new(), Vec::new(), 0);
        for piece in &pieces {
            match piece {
                Piece::Foreign(bytes) => {
                    text.extend(bytes);
                    expected.extend(bytes);
                }
                Piece::Issued(number) => {
                    let (name, encoding) = forms[*number];
                    places += 1;
                    text.extend(issued[*number].as_bytes());
                    encoding.write(&secrets[usize::from(name == "b")], &mut expected);
                }
            }
        }
        match call.fills(&text) {
            Err(error) => prop_assert!(error == FillError::TooMany && places > MOST_PER_REQUEST),
            Ok(None) => prop_assert!(places == 0 && text == expected),
            Ok(Some(filled)) => {
                prop_assert!((1..=MOST_PER_REQUEST).contains(&places));
                prop_assert_eq!(filled.capacity(), filled.len(), "allocated once, at its size");
                prop_assert_eq!(&*filled, &expected);
            }
        }
    }

    #[test]
    fn a_call_fills_nothing_that_another_one_issued(before: Vec<u8>, after: Vec<u8>) {
        let (one, other) = (Call::with(&[("p", b"canary")]), Call::with(&[("p", b"canary")]));
        other.placeholder("p", Encoding::Plain);
        let text = [&before, one.placeholder("p", Encoding::Plain).as_bytes(), &after].concat();
        prop_assert!(other.fills(&text).unwrap().is_none());
        prop_assert!(!other.issued.any_in(&text) && one.issued.any_in(&text));
    }

    #[test]
    fn the_size_check_is_exact_to_the_step(lengths in vec(1..200_000_usize, 1..6), padding in 0..FILLED_LIMIT) {
        let secrets: Vec<Vec<u8>> = lengths.iter().map(|length| vec![b'x'; *length]).collect();
        let names = ["a", "b", "c", "d", "e"];
        let named: Vec<(&str, &[u8])> = names.into_iter().zip(secrets.iter().map(Vec::as_slice)).collect();
        let call = Call::with(&named);
        let mut text = "p".repeat(padding);
        for (name, _) in &named {
            text += &call.placeholder(name, Encoding::Plain);
        }
        let counted = text.len() + lengths.iter().map(|length| length.next_multiple_of(STEP)).sum::<usize>();
        let filled = call.fills(text.as_bytes());
        prop_assert_eq!(filled.is_ok(), counted <= FILLED_LIMIT);
        if let Ok(Some(filled)) = filled {
            prop_assert_eq!(filled.len(), padding + lengths.iter().sum::<usize>());
        }
    }
}
