//! Which grants share a client, and where authorities come from.
//!
//! What clients do on the wire is tested through the egress.

use std::sync::Arc;

use reqwest::Url;

use super::*;
use crate::grants::HttpGrant;
use crate::net::testing::TestServer;
use crate::net::tls::client_identity::testing::{TestIdentity, with_identity};

fn grant(host: &str) -> HttpGrant {
    HttpGrant {
        host: host.into(),
        ..HttpGrant::default()
    }
}

fn problem(grant: &HttpGrant) -> String {
    HttpClients::default()
        .client("test", 64, grant, 3)
        .err()
        .unwrap()
        .to_string()
}

#[test]
fn equal_grants_share_a_client_and_others_do_not() {
    let clients = HttpClients::default();
    let client = |grant: &HttpGrant| {
        clients
            .client("test", 64, grant, 0)
            .unwrap_or_else(|problem| panic!("{problem}"))
    };
    let first = client(&grant("a.example"));
    assert!(Arc::ptr_eq(
        &first,
        &client(&HttpGrant {
            methods: vec!["GET".into()],
            ..grant("b.example")
        })
    ));
    for other in [
        HttpGrant {
            allow_loopback: true,
            ..grant("a.example")
        },
        HttpGrant {
            allow_link_local: true,
            ..grant("a.example")
        },
        HttpGrant {
            proxy: Some("http://proxy:3128".into()),
            ..grant("a.example")
        },
        HttpGrant {
            connect_timeout_seconds: 1,
            ..grant("a.example")
        },
        HttpGrant {
            thumbprints: vec!["0f".repeat(32)],
            ..grant("a.example")
        },
        with_identity(grant("a.example"), &TestIdentity::new("one").files()),
    ] {
        assert!(!Arc::ptr_eq(&first, &client(&other)), "{other:?}");
    }
}

#[test]
fn providers_never_share_a_client() {
    let clients = HttpClients::default();
    let of = |provider| clients.client(provider, 64, &grant("a.example"), 0).ok().unwrap();
    assert!(Arc::ptr_eq(&of("one"), &of("one")));
    assert!(!Arc::ptr_eq(&of("one"), &of("other")));
}

#[test]
fn connection_window_has_room_for_all_unread_responses() {
    let one = u64::from(STREAM_WINDOW);
    for requests in [1, 64, 4000] {
        let window = u64::from(connection_window(requests));
        assert!(window > u64::from(requests) * one, "{requests}: {window}");
    }
    assert_eq!(connection_window(u32::MAX), LARGEST_WINDOW);
}

#[test]
fn a_client_keeps_connections_to_few_hosts() {
    let made = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = Arc::clone(&made);
    let make: Make = Box::new(move || {
        counted.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        reqwest::Client::builder()
            .tls_backend_preconfigured(tls(None).unwrap())
            .build()
            .map_err(|_| BuildFailed)
    });
    let mut connections = Connections::new(make).ok().unwrap();
    for number in 0..=MOST_HOSTS * 3 {
        for _ in 0..2 {
            connections.to(&Url::parse(&format!("https://h{number}.example/")).unwrap());
            assert!(connections.hosts.len() <= MOST_HOSTS);
        }
    }
    assert_eq!(made.load(std::sync::atomic::Ordering::SeqCst), 4);
}

#[test]
fn unused_client_is_dropped() {
    let clients = HttpClients::default();
    drop(clients.client("test", 64, &grant("a.example"), 0));
    let _other = clients.client(
        "test",
        64,
        &HttpGrant {
            allow_loopback: true,
            ..grant("a.example")
        },
        0,
    );
    assert_eq!(clients.0.live.lock().len(), 1);
}

#[tokio::test]
async fn a_renewed_bundle_of_authorities_gives_another_client() {
    let (_server, file) = TestServer::start_tls().await;
    let clients = HttpClients::default();
    let private = HttpGrant {
        ca: Some(file.path().into()),
        ..grant("a.example")
    };
    let client = || {
        clients
            .client("test", 64, &private, 0)
            .unwrap_or_else(|problem| panic!("{problem}"))
    };
    let first = client();
    assert!(Arc::ptr_eq(&first, &client()));
    let (_server, renewed) = TestServer::start_tls().await;
    std::fs::copy(renewed.path(), file.path()).unwrap();
    assert!(!Arc::ptr_eq(&first, &client()));
}

#[test]
fn renewed_client_certificate_gives_another_client() {
    let files = TestIdentity::new("old").files();
    let (clients, grant) = (HttpClients::default(), with_identity(grant("a.example"), &files));
    let client = || {
        clients
            .client("test", 64, &grant, 0)
            .unwrap_or_else(|problem| panic!("{problem}"))
    };
    let first = client();
    assert!(Arc::ptr_eq(&first, &client()));
    files.renew(&TestIdentity::new("new"));
    let renewed = client();
    assert!(!Arc::ptr_eq(&first, &renewed));
    assert!(first.identity().is_some() && first.identity() != renewed.identity());
}

#[test]
fn a_bundle_that_is_none_is_refused_with_place_file_and_fix() {
    let missing = problem(&HttpGrant {
        ca: Some("/nowhere/ca.pem".into()),
        ..grant("a.example")
    });
    assert!(
        missing.starts_with("http[3].ca: \"/nowhere/ca.pem\" cannot be read"),
        "{missing}"
    );
    assert!(missing.ends_with("or correct the path"), "{missing}");
    for (content, wrong) in [
        ("", "contains no certificate"),
        ("hello", "contains no certificate"),
        (
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            "contains a certificate that cannot be used",
        ),
        (
            "-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n",
            "is not PEM",
        ),
    ] {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), content).unwrap();
        let text = problem(&HttpGrant {
            ca: Some(file.path().into()),
            ..grant("a.example")
        });
        assert!(text.contains(wrong), "{content:?}: {text}");
    }
}
