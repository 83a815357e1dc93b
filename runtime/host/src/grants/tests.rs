//! Reading grants, and finding what is wrong with them.

use proptest::prelude::*;

use super::*;
use crate::grants::yaml;
use crate::net::destination::HostPattern;

fn grants(yaml: &str) -> Grants {
    serde_saphyr::from_str(yaml).unwrap()
}

#[test]
fn what_is_left_out_has_the_documented_default() {
    let grants = grants("http: [{host: api.example.com}]");
    let http = &grants.http[0];
    assert_eq!((http.scheme, http.port(), http.methods.len()), (Scheme::Https, 443, 6));
    assert!(!http.allow_loopback && !http.allow_link_local);
    assert_eq!(http.max_response_bytes, 64 << 20);
    assert_eq!(grants.state.max_bytes, 1 << 20);
    assert!(!grants.cluster.nodes && !grants.cluster.services);
    assert_eq!(grants.validate(), Ok(()));
}

#[test]
fn a_full_entry_is_read() {
    let grants = grants(
        "http:\n- {scheme: http, host: 10.0.0.1, port: 8080, methods: [GET], allowLoopback: true, allowLinkLocal: true,\n   \
         proxy: 'http://proxy:3128', connectTimeoutSeconds: 1, responseTimeoutSeconds: 2, maxResponseBytes: 3,
   \
         requestsPerSecond: 2.5, burst: 7}\n\
         secrets:\n- {name: password, file: /p, hosts: ['10.0.0.1:8080'], uses: [placeholder, hmac, sign, reveal]}\n\
         cluster: {nodes: true}\nstate: {maxBytes: 10}",
    );
    assert_eq!(grants.validate(), Ok(()));
    assert_eq!(grants.http[0].connect_timeout(), Duration::from_secs(1));
    assert_eq!(
        (grants.http[0].requests_per_second, grants.http[0].burst()),
        (Some(2.5), 7)
    );
    assert_eq!(grants.secrets[0].uses.len(), 4);
}

#[test]
fn an_unknown_key_is_an_error() {
    assert!(serde_saphyr::from_str::<Grants>("http: [{hots: a}]").is_err());
    assert!(serde_saphyr::from_str::<Grants>("htpp: []").is_err());
}

#[test]
fn all_mistakes_are_found_at_once_each_with_place_value_and_fix() {
    let grants = grants(
        "http:\n- {host: 'https://a', port: 0, methods: [get, CONNECT], proxy: 'http://user:hunter2@proxy', maxResponseBytes: 0}\n\
         - {scheme: http, ca: /ca.pem}\n\
         secrets:\n- {name: 'a b', uses: []}\n- {name: p, file: /p, uses: [placeholder]}\n\
         - {name: p, file: /p, hosts: ['b.example', 'x y'], uses: [placeholder]}\n\
         - {name: q, file: /q, hosts: ['b.example'], uses: [hmac]}",
    );
    let problems = grants.validate().unwrap_err();
    let paths: Vec<&str> = problems.iter().map(|problem| problem.path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "http[0].host",
            "http[0].port",
            "http[0].methods[0]",
            "http[0].methods[1]",
            "http[0].proxy",
            "http[0].maxResponseBytes",
            "http[1].host",
            "http[1].ca",
            "secrets[0].name",
            "secrets[0].file",
            "secrets[0].uses",
            "secrets[1].hosts",
            "secrets[2].name",
            "secrets[2].hosts[0]",
            "secrets[2].hosts[1]",
            "secrets[3].hosts",
            "secrets[3].hosts[0]",
        ]
    );
    assert!(
        problems
            .iter()
            .all(|problem| !problem.fix.is_empty() && !problem.wrong.is_empty())
    );
    let text = GrantError(problems).to_string();
    assert!(
        text.contains("grants.http[0].host: \"https://a\" is not a valid host; write"),
        "{text}"
    );
    assert!(!text.contains("hunter2"), "{text}");
}

#[test]
fn secret_of_volumes_has_no_file_and_a_key_for_a_name() {
    let http = "http: [{host: a.example}]\nsecrets:\n";
    let good = grants(&format!(
        "{http}- {{name: volume/pass.phrase, hosts: [a.example], uses: [placeholder]}}\n- {{name: volume/key, uses: [sign]}}"
    ));
    assert_eq!(good.validate(), Ok(()));
    assert_eq!(good.secrets[0].volume_key(), Some("pass.phrase"));
    let longest = format!("volume/{}", "k".repeat(121));
    assert!(is_secret_name(&longest) && !is_secret_name(&format!("{longest}k")));
    let odd = grants(&format!(
        "{http}- {{name: volume/key, file: /k, uses: [hmac]}}\n- {{name: volume/, uses: [hmac]}}\n- {{name: volume/a/b, uses: [hmac]}}\n\
         - {{name: other/key, file: /k, uses: [hmac]}}"
    ));
    let problems = odd.validate().unwrap_err();
    let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let begins = [
        "secrets[0].file: \"/k\" has no effect, since this secret comes with requests about volumes; remove it",
        "secrets[1].name: \"volume/\" is not a valid name; use",
        "secrets[2].name: \"volume/a/b\" is not a valid name; use",
        "secrets[3].name: \"other/key\" is not a valid name; use",
    ];
    assert_eq!(texts.len(), begins.len(), "{texts:#?}");
    for (text, begin) in texts.iter().zip(begins) {
        assert!(text.starts_with(begin), "{text} is not {begin}");
    }
}

#[test]
fn invalid_or_conflicting_thumbprints_are_reported() {
    let print = "0f".repeat(20);
    let grants = grants(&format!(
        "http:\n- {{host: a.example, thumbprints: [AA:BB, '{print}']}}\n- {{host: b.example, ca: /ca.pem, thumbprints: ['{print}']}}\n\
         - {{host: c.example, scheme: http, thumbprints: ['{print}']}}\n\
         - {{host: d.example, proxy: 'https://proxy', thumbprints: ['{print}']}}\n\
         - {{host: e.example, proxy: 'http://proxy', thumbprints: ['{print}']}}",
    ));
    let problems = grants.validate().unwrap_err();
    let paths: Vec<&str> = problems.iter().map(|problem| problem.path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "http[0].thumbprints[0]",
            "http[1].thumbprints",
            "http[2].thumbprints",
            "http[3].thumbprints"
        ]
    );
}

#[test]
fn client_certificate_needs_its_key_in_another_file_and_tls_to_the_host() {
    let grants = grants(
        "http:\n- {host: a.example, clientCertificate: /c.pem}\n- {host: b.example, clientKey: /k.pem}\n\
         - {host: c.example, clientCertificate: /c.pem, clientKey: /c.pem}\n\
         - {host: d.example, scheme: http, clientCertificate: /c.pem, clientKey: /k.pem}\n\
         - {host: e.example, proxy: 'https://proxy', clientCertificate: /c.pem, clientKey: /k.pem}\n\
         - {host: f.example, clientCertificate: '', clientKey: ''}\n\
         - {host: g.example, proxy: 'http://proxy', clientCertificate: /c.pem, clientKey: /k.pem}",
    );
    let problems = grants.validate().unwrap_err();
    let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let begins = [
        "http[0].clientKey: is missing beside clientCertificate; name",
        "http[1].clientCertificate: is missing beside clientKey; name",
        "http[2].clientKey: \"/c.pem\" is the file of clientCertificate too; put",
        "http[3].clientCertificate: \"/c.pem\" has no effect with scheme http; remove",
        "http[4].clientCertificate: \"/c.pem\" would be presented to the proxy too; use",
        "http[5].clientCertificate: is empty; write",
        "http[5].clientKey: is empty; write",
    ];
    assert_eq!(texts.len(), begins.len(), "{texts:#?}");
    for (text, begin) in texts.iter().zip(begins) {
        assert!(text.starts_with(begin), "{text} is not {begin}");
    }
}

#[test]
fn budget_that_is_invalid_is_reported() {
    let grants = grants(
        "http:\n- {host: a.example, requestsPerSecond: 0}\n- {host: b.example, requestsPerSecond: .nan}\n\
         - {host: c.example, requestsPerSecond: 5, burst: 0}\n- {host: d.example, burst: 5}\n\
         - {host: e.example, requestsPerSecond: 0.2}",
    );
    let paths: Vec<String> = grants
        .validate()
        .unwrap_err()
        .into_iter()
        .map(|problem| problem.path)
        .collect();
    assert_eq!(
        paths,
        [
            "http[0].requestsPerSecond",
            "http[1].requestsPerSecond",
            "http[2].burst",
            "http[3].burst"
        ]
    );
    assert_eq!(grants.http[4].burst(), 1);
}

/// An entry, right or wrong.
fn entry() -> impl Strategy<Value = HttpGrant> {
    let host = prop_oneof![
        "[a-z*.-]{0,12}",
        "[a-z]{1,5}\\.example",
        Just("*.example.com".to_owned()),
        Just("fd00::1".to_owned()),
        any::<String>(),
    ];
    let methods = prop::collection::vec(prop_oneof!["GET|PUT|PROPFIND", "[A-Za-z ]{0,5}"], 0..3);
    let flags = any::<(bool, bool, bool)>();
    (
        host,
        prop::option::of(any::<u16>()),
        methods,
        flags,
        prop::option::of(any::<f64>()),
    )
        .prop_map(
            |(host, port, methods, (plain, allow_loopback, allow_link_local), requests_per_second)| HttpGrant {
                host,
                port,
                methods,
                scheme: if plain { Scheme::Http } else { Scheme::Https },
                allow_loopback,
                allow_link_local,
                requests_per_second,
                ..HttpGrant::default()
            },
        )
}

proptest! {
    #[test]
    fn valid_grants_name_hosts_and_survive_being_written(http in prop::collection::vec(entry(), 0..4)) {
        let grants = Grants { http, ..Grants::default() };
        if grants.validate().is_ok() {
            for grant in &grants.http {
                prop_assert!(HostPattern::parse(&grant.host).is_some());
                let text = format!("http:\n{}\n", yaml::http_entry(grant));
                let read: Grants = serde_saphyr::from_str(&text).unwrap();
                prop_assert_eq!(&read.http[0].host, &grant.host);
                prop_assert_eq!(read.http[0].port(), grant.port());
                prop_assert_eq!(read.http[0].scheme, grant.scheme);
                prop_assert_eq!(read.http[0].allow_link_local, grant.allow_link_local);
                prop_assert_eq!(read.validate(), Ok(()));
            }
        }
    }

    #[test]
    fn no_text_makes_reading_grants_panic(text in "[a-z:{}\\[\\], '\"\n*&!|>-]{0,60}") {
        if let Ok(grants) = serde_saphyr::from_str::<Grants>(&text) {
            let _ = grants.validate();
        }
    }
}
