//! The decision, without any network.

use http::Uri;
use proptest::prelude::*;
use reqwest::Url;

use crate::egress::plan::*;
use crate::egress::refusal::{Refusal, RefusalReason};
use crate::grants::Grants;
use crate::net::destination::Destination;

fn grants(yaml: &str) -> Grants {
    let grants: Grants = serde_saphyr::from_str(yaml).unwrap();
    grants.validate().unwrap();
    grants
}

fn rules(grants: &Grants) -> Vec<Rule> {
    grants
        .http
        .iter()
        .enumerate()
        .filter_map(|(at, grant)| Rule::new(grant, at))
        .collect()
}

fn target_of(url: &str) -> Result<Destination, Refusal> {
    Ok(target(&url.parse().unwrap())?.1)
}

/// What is decided about a request.
fn decided(yaml: &str, method: &str, url: &str) -> Result<usize, Refusal> {
    decide(&rules(&grants(yaml)), &target_of(url)?, method).map(|rule| rule.at)
}

/// Adds the YAML of a refusal to the grants, as an operator would, and decides again.
fn decided_after_pasting(yaml: &str, method: &str, url: &str, refusal: &Refusal) -> Result<usize, Refusal> {
    let entry = refusal.yaml.as_deref().unwrap();
    assert!(
        refusal.message.ends_with(&format!("add to grants.http: {entry}")),
        "{}",
        refusal.message
    );
    decided(&format!("{yaml}\n{entry}\n"), method, url)
}

#[test]
fn a_granted_request_passes() {
    let yaml = "http:\n- {host: api.example.com}\n- {scheme: http, host: '*.lan', port: 8080, methods: [GET]}";
    assert_eq!(decided(yaml, "DELETE", "https://api.example.com/v1?x=y"), Ok(0));
    assert_eq!(decided(yaml, "GET", "https://API.example.com.:443/"), Ok(0));
    assert_eq!(decided(yaml, "GET", "http://a.b.lan:8080/"), Ok(1));
}

#[test]
fn connected_url_names_the_host_as_compared() {
    for (asked, used) in [
        ("https://API.Example.com./a?b=c", "https://api.example.com/a?b=c"),
        ("http://0x7f.1:8080/", "http://127.0.0.1:8080/"),
    ] {
        let (url, to) = target(&asked.parse().unwrap()).unwrap();
        assert_eq!(url.as_str(), used);
        assert_eq!(url.host_str().unwrap(), to.host.to_string());
    }
}

#[test]
fn ungranted_is_refused_with_reason_and_passes_after_paste() {
    let yaml = "http:\n- {host: api.example.com, methods: [GET]}\n- {host: '*.wild.example', port: 8443}";
    for (method, url, reason) in [
        ("GET", "https://other.example.com/", RefusalReason::Host),
        ("GET", "https://wild.example:8443/", RefusalReason::Host),
        ("GET", "https://10.1.2.3/", RefusalReason::Host),
        ("GET", "http://[fd00::1]:8080/", RefusalReason::Host),
        ("GET", "https://api.example.com:8443/", RefusalReason::Port),
        ("GET", "http://api.example.com/", RefusalReason::Port),
        ("GET", "http://api.example.com:443/", RefusalReason::Scheme),
        ("DELETE", "https://api.example.com/", RefusalReason::Method),
        ("PURGE", "https://a.wild.example:8443/", RefusalReason::Method),
        ("GET", "http://127.0.0.1:8080/", RefusalReason::Host),
        ("GET", "http://169.254.169.254/latest", RefusalReason::Host),
        ("GET", "http://[::ffff:127.0.0.1]/", RefusalReason::Host),
    ] {
        let refusal = decided(yaml, method, url).unwrap_err();
        assert_eq!(refusal.reason, reason, "{method} {url}");
        let again = decided_after_pasting(yaml, method, url, &refusal);
        assert!(again.is_ok(), "{method} {url}: {}", refusal.message);
        let other = if method == "GET" { "PUT" } else { "OPTIONS" };
        assert!(
            decided_after_pasting(yaml, other, url, &refusal).is_err(),
            "no more than was asked for"
        );
    }
}

#[test]
fn a_literal_address_of_this_machine_needs_its_flag() {
    let yaml = "http:\n- {scheme: http, host: 127.0.0.1}\n- {scheme: http, host: 169.254.169.254, allowLoopback: true}";
    for url in ["http://127.0.0.1/", "http://169.254.169.254/"] {
        let refusal = decided(yaml, "GET", url).unwrap_err();
        assert_eq!(refusal.reason, RefusalReason::Address);
        assert_eq!(
            decided_after_pasting(yaml, "GET", url, &refusal),
            Ok(2),
            "{}",
            refusal.message
        );
    }
}

#[test]
fn an_address_in_disguise_is_the_address() {
    let yaml = "http:\n- {scheme: http, host: example.com}";
    for url in [
        "http://2130706433/",
        "http://0x7f.1/",
        "http://0177.0.0.1/",
        "http://127.1/",
    ] {
        let refusal = decided(yaml, "GET", url).unwrap_err();
        assert!(
            refusal.message.contains("http://127.0.0.1 "),
            "{url}: {}",
            refusal.message
        );
        assert!(refusal.yaml.unwrap().contains("allowLoopback: true"));
    }
}

#[test]
fn what_can_never_be_granted_is_refused_without_yaml() {
    let yaml =
        "http:\n- {scheme: http, host: 0.0.0.0, allowLoopback: true, allowLinkLocal: true}\n- {host: api.example.com}";
    for (method, url) in [
        ("GET", "http://0.0.0.0/"),
        ("GET", "https://224.0.0.1/"),
        ("CONNECT", "https://api.example.com/"),
    ] {
        let refusal = decided(yaml, method, url).unwrap_err();
        assert_eq!(refusal.yaml, None, "{method} {url}");
        assert!(
            refusal.message.ends_with("it can never be granted"),
            "{}",
            refusal.message
        );
    }
}

#[test]
fn broadest_grant_wins_else_the_first() {
    let yaml = "http:\n- {host: a.example}\n- {host: '*.example'}\n- {host: a.example, allowLoopback: true}";
    assert_eq!(decided(yaml, "GET", "https://a.example/"), Ok(2));
    assert_eq!(decided(yaml, "GET", "https://b.example/"), Ok(1));
    assert_eq!(
        decided(
            "http:\n- {host: a.example}\n- {host: a.example}",
            "GET",
            "https://a.example/"
        ),
        Ok(0)
    );
}

#[test]
fn a_url_with_credentials_or_without_a_real_host_is_refused() {
    for url in [
        "https://user:password@api.example.com/",
        "https://api.example.com@evil.example/",
        "/relative",
        "https://exa$mple.com/",
        "https://a&b.example/",
        "ftp://api.example.com/",
    ] {
        let refusal = target_of(url).unwrap_err();
        assert_eq!(refusal.reason, RefusalReason::Url, "{url}");
        assert!(!refusal.message.contains("password@"), "{}", refusal.message);
    }
}

#[test]
fn what_a_provider_makes_up_does_not_get_into_the_yaml() {
    let refusal = decided("http: []", "X!}", "https://api.example.com/").unwrap_err();
    assert_eq!(refusal.yaml, None);
    assert!(!refusal.message.contains("X!}"), "{}", refusal.message);
}

#[test]
fn pasted_entry_keeps_authority_and_proxy() {
    let yaml = "http:\n- {host: api.example.com, methods: [GET], ca: /ca.pem, proxy: 'http://proxy:3128'}";
    let refusal = decided(yaml, "PUT", "https://api.example.com/").unwrap_err();
    assert_eq!(
        refusal.yaml.as_deref(),
        Some("- {host: api.example.com, methods: [PUT], ca: /ca.pem, proxy: \"http://proxy:3128\"}")
    );
}

#[test]
fn pasted_entry_keeps_client_certificate_at_the_same_port() {
    let yaml = "http:\n- {host: api.example.com, methods: [GET], clientCertificate: /c.pem, clientKey: /c.key}";
    let refusal = decided(yaml, "PUT", "https://api.example.com/").unwrap_err();
    assert_eq!(
        refusal.yaml.as_deref(),
        Some("- {host: api.example.com, methods: [PUT], clientCertificate: /c.pem, clientKey: /c.key}")
    );
    for other in ["https://api.example.com:8443/", "http://api.example.com:443/"] {
        let yaml = decided(yaml, "GET", other).unwrap_err().yaml.unwrap();
        assert!(!yaml.contains("client"), "{yaml}");
    }
}

/// Texts in which hosts, users, ports and paths run into each other.
fn odd_url() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "http",
        "https",
        "://",
        ":",
        "/",
        "//",
        "\\",
        "@",
        "?",
        "#",
        ".",
        "%2e",
        "%40",
        "%00",
        "[",
        "]",
        "::1",
        "0x7f.1",
        "2130706433",
        "127.0.0.1",
        "api.example.com",
        "API.example.com.",
        "evil.example",
        "user:secret",
        ":443",
        ":8443",
        ":0",
        "\u{3002}",
        "\u{ff0e}",
        "\u{200d}",
        "xn--",
        "a b",
        "169.254.169.254",
        "::ffff:127.0.0.1",
        "é",
        "*",
        "{{secret:x}}",
    ]);
    let pieces = prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat());
    prop_oneof![
        pieces.clone(),
        pieces.clone().prop_map(|rest| format!("https://api.example.com{rest}")),
        pieces.prop_map(|host| format!("https://{host}/path?query")),
        any::<String>(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn what_is_connected_to_is_what_was_compared(text in odd_url()) {
        let Ok(uri) = text.parse::<Uri>() else { return Ok(()) };
        let Ok((url, to)) = target(&uri) else { return Ok(()) };
        let host = url.host_str().unwrap().to_owned();
        prop_assert_eq!(&host, &to.host.to_string());
        prop_assert_eq!((url.scheme(), url.port_or_known_default()), (to.scheme.as_str(), Some(to.port)));
        prop_assert!(url.username().is_empty() && url.password().is_none());
        // The client reads the URL once more.
        let again: Url = url.as_str().parse().unwrap();
        prop_assert_eq!(again.host_str(), Some(host.as_str()));
        let rules = rules(&grants("http: [{host: api.example.com}]"));
        if decide(&rules, &to, "GET").is_ok() {
            prop_assert_eq!((host.as_str(), to.port, url.scheme()), ("api.example.com", 443, "https"));
        }
    }
}
