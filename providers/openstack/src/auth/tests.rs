//! Every method of authentication, tokens that expire, catalogs that lack something.

use cloudwit_guest_sdk::testing::{FakeAnswer, FakeHost, placeholder};
use serde_json::{Value, json};

use super::*;
use crate::OpenStack;
use crate::api::Endpoint;
use crate::recorded::{GLOBAL, Stage, answer, file, json as recorded};

const URL: &str = "[Global]\nauth-url = http://keystone.test/v3/\n";

/// What is sent to Keystone with these keys of `[Global]`, and the secrets that are requested.
fn sent(keys: &str) -> (Value, Vec<String>) {
    let stage = Stage::bare(&format!("{URL}{keys}"));
    assert_eq!(stage.host.check::<OpenStack>(), [], "{keys}");
    stage.provider().api.session().unwrap();
    let secrets = stage.host.describe::<OpenStack>().secrets;
    let body = stage.host.requests()[0].json();
    (
        body["auth"].clone(),
        secrets.into_iter().map(|secret| secret.name).collect(),
    )
}

#[test]
fn a_password_stays_with_the_host_unless_it_stands_in_the_text() {
    let user = "username = u\ndomain-name = D\ntenant-name = p\n";
    let expected = |password: &str| {
        json!({"identity": {"methods": ["password"], "password": {"user": {
            "name": "u", "domain": {"name": "D"}, "password": password}}},
            "scope": {"project": {"name": "p", "domain": {"name": "D"}}}})
    };
    assert_eq!(
        sent(user),
        (
            expected(&placeholder("password", Encoding::Json)),
            vec!["password".into()]
        )
    );
    assert_eq!(
        sent(&format!("{user}password = \"a {{{{x}}}} \\\"b\"\n")),
        (expected("a {{x}} \"b"), vec![])
    );
}

#[test]
fn ids_need_no_domains_and_domains_may_differ() {
    let (body, _) = sent("user-id = u-1\ntenant-id = p-1\n");
    assert_eq!(
        body["identity"]["password"]["user"],
        json!({"id": "u-1", "password": placeholder("password", Encoding::Json)})
    );
    assert_eq!(body["scope"], json!({"project": {"id": "p-1"}}));
    let (body, _) =
        sent("username = u\nuser-domain-id = ud\ntenant-name = p\ntenant-domain-name = PD\ndomain-id = d\n");
    assert_eq!(body["identity"]["password"]["user"]["domain"], json!({"id": "ud"}));
    assert_eq!(body["scope"]["project"]["domain"], json!({"name": "PD"}));
}

#[test]
fn an_application_credential_has_its_project_already() {
    let (body, secrets) = sent("application-credential-id = ac-1\ntenant-id = p-1\n");
    assert_eq!(
        body,
        json!({"identity": {"methods": ["application_credential"], "application_credential": {
            "id": "ac-1", "secret": placeholder("application-credential-secret", Encoding::Json)}}})
    );
    assert_eq!(secrets, ["application-credential-secret"]);
    let (body, secrets) =
        sent("application-credential-name = ci\nusername = u\ndomain-id = d\napplication-credential-secret = s\n");
    assert_eq!(
        body["identity"]["application_credential"],
        json!({"name": "ci", "user": {"name": "u", "domain": {"id": "d"}}, "secret": "s"})
    );
    assert!(secrets.is_empty());
}

#[test]
fn a_trust_is_the_scope_and_the_trustee_acts() {
    let (body, secrets) = sent("trust-id = t-1\ntrustee-id = u-2\ntenant-id = p-1\n");
    assert_eq!(body["identity"]["password"]["user"]["id"], "u-2");
    assert_eq!(
        (body["scope"].clone(), secrets),
        (json!({"OS-TRUST:trust": {"id": "t-1"}}), vec!["password".into()])
    );
    let (body, _) = sent("trust-id = t-1\ntrustee-id = u-2\ntrustee-password = pw\n");
    assert_eq!(body["identity"]["password"]["user"]["password"], "pw");
}

#[test]
fn a_token_is_in_the_text_or_with_the_host() {
    let (body, secrets) = sent("token = abc\n");
    assert_eq!(
        (body, secrets.len()),
        (json!({"identity": {"methods": ["token"], "token": {"id": "abc"}}}), 0)
    );
    let (body, secrets) = sent("token = \n");
    assert_eq!(body["identity"]["token"]["id"], placeholder("token", Encoding::Json));
    assert_eq!(secrets, ["token"]);
}

#[test]
fn missing_login_settings_are_reported_together() {
    let told = |keys: &str| -> Vec<String> {
        let host = FakeHost::new();
        host.config(format!("{URL}{keys}"));
        host.check::<OpenStack>()
            .into_iter()
            .map(|problem| problem.at)
            .collect()
    };
    assert_eq!(told(""), ["global"]);
    assert_eq!(told("username = u\n"), ["global.domain-name", "global.tenant-id"]);
    assert_eq!(told("user-id = u\ntenant-name = p\n"), ["global.tenant-domain-name"]);
    assert_eq!(told("application-credential-name = a\n"), ["global.username"]);
    assert_eq!(told("trust-id = t\n"), ["global.username"]);
}

#[test]
fn one_login_serves_calls_until_the_token_nears_expiry() {
    let stage = Stage::new("").always("GET", "nova.test", || answer(file!("servers_empty")));
    let ask = || stage.provider().api.get(Endpoint::Compute, "/servers").send().map(drop);
    assert_eq!((ask(), ask()), (Ok(()), Ok(())));
    assert_eq!(stage.logins(), 1);
    let requests = stage.sent("GET", "nova.test");
    assert_eq!(requests[0].url, "http://nova.test/v2.1/servers");
    assert_eq!(requests[0].header("x-auth-token"), Some("token-1"));
    assert_eq!(requests[0].header("x-openstack-nova-api-version"), Some("2.47"));
    // The recorded token lives an hour. The host's clock is in November 2025, Keystone's in 2026: only the difference counts.
    stage.host.now(1_763_700_000 + 3600 - 301);
    assert_eq!((ask(), stage.logins()), (Ok(()), 1));
    stage.host.now(1_763_700_000 + 3600 - 299);
    assert_eq!((ask(), stage.logins()), (Ok(()), 2));
}

#[test]
fn a_token_refused_in_mid_call_is_renewed_once() {
    let stage = Stage::new("")
        .once("GET", "nova.test", || answer(file!("token_refused_by_nova")))
        .always("GET", "nova.test", || answer(file!("servers_empty")));
    let ask = || stage.provider().api.get(Endpoint::Compute, "/servers").send().map(drop);
    assert_eq!((ask(), stage.logins(), stage.calls().len()), (Ok(()), 2, 2));
    let stage = stage.always("GET", "nova.test", || answer(file!("token_refused_by_nova")));
    let ask = || stage.provider().api.get(Endpoint::Compute, "/servers").send().map(drop);
    assert!(
        matches!(ask(), Err(Failure { kind: FailureKind::Denied, message: text, .. }) if text.contains("requires authentication"))
    );
    assert_eq!(
        (stage.logins(), stage.calls().len()),
        (3, 4),
        "it is not tried for ever"
    );
}

#[test]
fn refused_credentials_show_keystones_words_without_secrets() {
    let stage =
        Stage::new("password = canary-7391\n").always("POST", "keystone", || answer(file!("credentials_refused")));
    let failure = stage.provider().api.session().unwrap_err();
    assert_eq!(
        failure,
        Failure::denied(
            "authenticating: POST http://keystone.test/v3/auth/tokens: 401 Unauthorized: The request you have made requires authentication."
        )
        .with_code("401")
    );
}

#[test]
fn deleted_credential_is_denied_not_absent() {
    let stage = Stage::new("").always("POST", "keystone", || answer(file!("credential_deleted")));
    let failure = stage.provider().api.session().unwrap_err();
    assert!(
        matches!(&failure, Failure { kind: FailureKind::Denied, message: text, .. } if text.contains("404") && text.contains("Could not find Application Credential")),
        "{failure:?}"
    );
}

#[test]
fn cut_or_tokenless_keystone_answer_is_no_token() {
    for (headers, body, word) in [
        (&[][..], "{\"token\": {}}", "X-Subject-Token"),
        (
            &[("x-subject-token", "t")][..],
            "{\"token\": {\"catalog\": [",
            "EOF while parsing",
        ),
        (&[("x-subject-token", "t")][..], "{}", "\"token\""),
    ] {
        let stage = Stage::new("").always("POST", "keystone", move || FakeAnswer::new(201, headers, body));
        let failure = stage.provider().api.session().unwrap_err();
        assert!(
            matches!(&failure, Failure { kind: FailureKind::Unavailable, message: text, .. } if text.contains(word)),
            "{failure:?}"
        );
    }
}

#[test]
fn endpoints_are_those_of_interface_and_region() {
    let token = recorded(file!("token"));
    let text = token.to_string();
    let json = serde_json::from_str::<Value>(&text).unwrap();
    let body = json.get("token").unwrap();
    let catalog = Catalog::read(body, "public", Some("RegionOne"));
    assert_eq!(catalog.url(Endpoint::Compute), Ok("http://nova.test/v2.1"));
    assert_eq!(catalog.url(Endpoint::Network), Ok("http://neutron.test"));
    assert_eq!(catalog.url(Endpoint::LoadBalancer), Ok("http://octavia.test"));
    let Err(Failure {
        kind: FailureKind::Invalid,
        message: text,
        ..
    }) = catalog.url(Endpoint::KeyManager)
    else {
        panic!()
    };
    assert!(text.contains("key-manager"), "{text}");
    for (interface, region, words) in [("private", None, "private"), ("public", Some("Nowhere"), "Nowhere")] {
        let Err(Failure {
            kind: FailureKind::Invalid,
            message: text,
            ..
        }) = Catalog::read(body, interface, region).url(Endpoint::Compute).map(drop)
        else {
            panic!()
        };
        assert!(text.contains(words) && text.contains("public in RegionOne"), "{text}");
    }
}

#[test]
fn several_regions_need_the_key_region() {
    let place = |region: &str| json!({"interface": "public", "region_id": region, "url": "http://nova.test/v2.1/"});
    let text = json!({"catalog": [{"type": "compute", "endpoints": [place("a"), place("b")]}]}).to_string();
    let body = serde_json::from_str::<Value>(&text).unwrap();
    let url = |region| {
        Catalog::read(&body, "public", region)
            .url(Endpoint::Compute)
            .map(String::from)
    };
    assert_eq!(url(Some("b")), Ok("http://nova.test/v2.1".into()));
    assert!(
        matches!(url(None), Err(Failure { kind: FailureKind::Invalid, message: text, .. }) if text.contains("a, b") && text.contains("region in [Global]"))
    );
}

#[test]
fn versions_at_the_end_of_endpoints_make_no_difference() {
    for (kind, url, endpoint) in [
        ("network", "https://n.test/v2.0/", Endpoint::Network),
        ("network", "https://n.test", Endpoint::Network),
        ("load-balancer", "https://n.test/v2.0", Endpoint::LoadBalancer),
        ("key-manager", "https://n.test/v1", Endpoint::KeyManager),
    ] {
        let place = json!({"interface": "public", "region": "r", "url": url});
        let text = json!({"catalog": [{"type": kind, "endpoints": [place]}]}).to_string();
        let catalog = Catalog::read(&serde_json::from_str::<Value>(&text).unwrap(), "public", None);
        assert_eq!(catalog.url(endpoint), Ok("https://n.test"), "{url}");
    }
}

#[test]
fn nothing_shows_the_token() {
    let stage = Stage::bare(GLOBAL);
    let session = stage.provider().api.session().unwrap();
    assert!(session.token == "token-1" && !format!("{session:?}").contains("token-1"));
}
