//! The host's side of the boundary.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::OnceLock;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use cloudwit_host::destination::{Destination, Host, Scheme};
use cloudwit_host::fuzzing;
use cloudwit_host::grants::{Grants, SecretGrant, SecretUse};
use cloudwit_host::keys::Keyring;
use cloudwit_host::resolver::special;

use crate::texts;

/// The secret that must not be seen.
const SECRET: &str = "K7#q/\"<v>&Zx\\0p9";

/// No eight bytes of the secret are left of a text around it, in whichever form it is in there.
pub fn redactor(data: &[u8]) {
    let (before, after) = texts(data);
    let hex: String = SECRET.bytes().map(|byte| format!("{byte:02x}")).collect();
    for form in [
        SECRET.to_owned(),
        STANDARD_NO_PAD.encode(SECRET),
        URL_SAFE_NO_PAD.encode(SECRET),
        hex.to_uppercase(),
        hex,
    ] {
        let text = fuzzing::redact(SECRET.as_bytes(), &format!("{before}{form}{after}"));
        // What the surroundings say by themselves is not the secret's.
        let alone = format!("{before} {after}");
        for place in form.as_bytes().windows(8) {
            let piece = String::from_utf8_lossy(place);
            assert!(
                !text.contains(&*piece) || alone.contains(&*piece),
                "{piece:?} of {form:?} is left in {text:?}"
            );
        }
    }
}

fn keyring() -> &'static Keyring {
    static KEYRING: OnceLock<Keyring> = OnceLock::new();
    KEYRING.get_or_init(|| {
        let file = tempfile::NamedTempFile::new().expect("a file can be made");
        std::fs::write(file.path(), SECRET).expect("a file can be written");
        let grant = SecretGrant {
            name: "token".into(),
            file: file.path().into(),
            hosts: vec!["granted.example.com".into()],
            uses: vec![SecretUse::Placeholder],
        };
        Keyring::load(&[grant]).expect("the secret is there")
    })
}

fn to(host: &str) -> Destination {
    Destination {
        scheme: Scheme::Https,
        host: Host::parse(host).expect("a host"),
        port: 443,
    }
}

/// A secret is filled in for its host alone, exactly where its placeholders stand, and a text without one stays as it is.
pub fn placeholders(data: &[u8]) {
    let parts: Vec<&[u8]> = data.split(|byte| *byte == 0).collect();
    let granted = fuzzing::fill(&parts, keyring(), &to("granted.example.com"));
    let other = fuzzing::fill(&parts, keyring(), &to("other.example.com"));
    match parts.len() {
        1 => assert_eq!((granted, other), (Ok(None), Ok(None))),
        // Sixteen places are the most that a request may have.
        2..=17 => {
            assert_eq!(granted, Ok(Some(parts.join(SECRET.as_bytes()))));
            assert!(other.is_err(), "the secret went to a host it is not bound to");
        }
        _ => assert!(granted.is_err() && other.is_err()),
    }
}

/// Where a request is taken to lead is where its URL leads for a reader by others.
pub fn target(data: &[u8]) {
    let (text, _) = texts(data);
    for uri in [
        text.clone(),
        format!("https://{text}"),
        format!("https://a.example.com{text}"),
    ] {
        let Some((url, destination)) = fuzzing::target(&uri) else {
            continue;
        };
        let read = url::Url::parse(&url).expect("what is sent is a URL");
        assert!(read.username().is_empty() && read.password().is_none(), "{url}");
        assert_eq!(read.port_or_known_default(), Some(destination.port), "{url}");
        let host = read.host_str().unwrap_or_default();
        assert_eq!(Host::parse(host), Some(destination.host.clone()), "{url}");
        // What is sent is read the same again, so a second reader sees no other host.
        assert_eq!(
            fuzzing::target(&url).map(|(_, again)| again),
            Some(destination),
            "{url}"
        );
    }
}

/// An IPv4 address is as special inside an IPv6 one as by itself.
pub fn special_addresses(data: &[u8]) {
    let Some(bytes) = data.first_chunk::<16>() else { return };
    let v6 = Ipv6Addr::from(*bytes);
    let kind = special(IpAddr::V6(v6));
    assert!(!v6.is_loopback() || kind.is_some());
    assert!(!v6.is_unicast_link_local() || kind.is_some());
    let [a, b, c, d, ..] = *bytes;
    let v4 = Ipv4Addr::new(a, b, c, d);
    let alone = special(IpAddr::V4(v4));
    assert!(!v4.is_loopback() || alone.is_some());
    let [high, low] = [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])];
    let mapped = v4.to_ipv6_mapped();
    let nat64 = Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low);
    let six_to_four = Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 0);
    for around in [mapped, nat64, six_to_four] {
        assert_eq!(special(IpAddr::V6(around)).is_some(), alone.is_some(), "{around}");
    }
}

/// Reading and checking grants ends, and what is valid has destinations that match themselves alone.
pub fn grants(data: &[u8]) {
    let (text, host) = texts(data);
    if let Ok(grants) = serde_saphyr::from_str::<Grants>(&text) {
        let _ = grants.validate();
    }
    for yaml in [
        format!("http:\n  - {{host: {text:?}}}\n"),
        format!("http:\n  - {{host: '*.{host}'}}\n"),
    ] {
        let Ok(grants) = serde_saphyr::from_str::<Grants>(&yaml) else {
            continue;
        };
        if grants.validate().is_ok() {
            let pattern = cloudwit_host::destination::HostPattern::parse(&grants.http[0].host)
                .expect("a valid host is a pattern");
            assert!(pattern.covers(&pattern) && pattern.overlaps(&pattern), "{yaml}");
            assert!(
                !pattern.matches(&Host::Name("localhost.invalid".into())) || yaml.contains("invalid"),
                "{yaml}"
            );
        }
    }
}

/// A wait is read or none; it is never nought.
pub fn retry_after(data: &[u8]) {
    let mut parts = data.splitn(2, |byte| *byte == 0);
    let [value, date] = [(); 2].map(|()| parts.next().unwrap_or_default());
    let wait = fuzzing::wait(value, date);
    assert!(wait.is_none_or(|wait| !wait.is_zero()));
    if let Ok(text) = std::str::from_utf8(value)
        && let Ok(seconds) = text.trim().parse::<u32>()
        && wait.is_some()
    {
        assert!(wait.is_some_and(|wait| wait.as_secs() <= seconds.into()), "{text}");
    }
}

/// Never more than the limit comes out of a packed component.
pub fn unpacking(data: &[u8]) {
    const LIMIT: u64 = 1 << 16;
    // The begin of a frame, so that random input comes further.
    for packed in [data.to_vec(), [&[0x28, 0xb5, 0x2f, 0xfd], data].concat()] {
        if let Some(bytes) = fuzzing::unpack(&packed, LIMIT) {
            assert!(bytes.len() as u64 <= LIMIT);
        }
    }
}

/// Code that its digest does not fit is never given out.
pub fn cache_header(data: &[u8]) {
    // Nobody guesses a SHA-256; what random bytes would be taken for code is a hole.
    let key = [7; 32];
    assert_eq!(fuzzing::cached(data, &key), None);
    assert_eq!(
        fuzzing::cached(&[b"cloudwit compiled code 2\n", data].concat(), &key),
        None
    );
    assert_eq!(
        fuzzing::cached(&[b"cloudwit compiled code 2\n", key.as_slice(), data].concat(), &key),
        None
    );
}

/// An answer is converted or refused, whatever its texts are; each Node gets one result.
pub fn conversions(data: &[u8]) {
    let texts: Vec<(String, String, String)> = data
        .split(|byte| *byte == b'\n')
        .map(|line| {
            let mut parts = line
                .split(|byte| *byte == 0)
                .map(|part| String::from_utf8_lossy(part).into_owned());
            let mut next = || parts.next().unwrap_or_default();
            (next(), next(), next())
        })
        .collect();
    if let Some(found) = fuzzing::lookup(&texts) {
        assert_eq!(found, texts.len());
    }
}
