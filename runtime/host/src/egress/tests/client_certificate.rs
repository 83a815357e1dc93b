//! Client certificates in real handshakes: which server is presented which certificate, and what becomes of refusals.

use rustls::version::{TLS12, TLS13};

use super::*;
use crate::net::tls::client_identity::testing::{IdentityFiles, Requested, RequestingServer, TestIdentity};

const ALL_VERSIONS: &[&rustls::SupportedProtocolVersion] = &[&TLS13, &TLS12];

fn identity_of(files: &IdentityFiles) -> String {
    let (certificate, key) = (files.certificate.display(), files.key.display());
    format!(", clientCertificate: '{certificate}', clientKey: '{key}'")
}

fn url(server: &RequestingServer) -> String {
    format!("https://localhost:{}/", server.port)
}

async fn answers(egress: &Arc<Egress>, server: &RequestingServer) {
    let response = send(egress, get(&url(server))).await;
    let response = response.unwrap_or_else(|(error, refusal)| panic!("{error} {refusal:?}"));
    assert_eq!(response.body().as_ref(), b"OK");
}

#[tokio::test]
async fn certificate_is_presented_to_its_host_and_to_no_other() {
    let identity = TestIdentity::new("one");
    let files = identity.files();
    for version in [&TLS13, &TLS12] {
        let versions = &[version];
        let demanding = RequestingServer::start(Requested::Demanded(&[&identity]), versions).await;
        let asking = RequestingServer::start(Requested::Optional(&[&identity]), versions).await;
        let grants = format!("http:\n{}{}", demanding.grant(&identity_of(&files)), asking.grant(""));
        let egress = egress(&grants);
        answers(&egress, &demanding).await;
        answers(&egress, &asking).await;
        answers(&egress, &demanding).await;
        assert_eq!(demanding.presented(), [Some(identity.der.clone())], "one connection");
        assert_eq!(asking.presented(), [None]);
    }
}

#[tokio::test]
async fn entries_with_and_without_certificate_share_no_connection() {
    let identity = TestIdentity::new("one");
    let server = RequestingServer::start(Requested::Optional(&[&identity]), ALL_VERSIONS).await;
    let files = identity.files();
    let grants = format!(
        "http:\n{}{}",
        server.grant(", methods: [PUT]"),
        server.grant(&format!(", methods: [GET]{}", identity_of(&files)))
    );
    let egress = egress(&grants);
    for method in ["PUT", "GET", "PUT", "GET"] {
        let response = send(&egress, with_body(request(method, &url(&server)), "")).await;
        assert!(response.is_ok(), "{method}");
    }
    assert_eq!(server.presented(), [None, Some(identity.der)]);
}

#[tokio::test]
async fn missing_certificate_is_refused_with_the_entry_that_has_it() {
    let identity = TestIdentity::new("one");
    let server = RequestingServer::start(Requested::Demanded(&[&identity]), &[&TLS12]).await;
    let (error, refusal) = refused(&egress(&format!("http:\n{}", server.grant(""))), get(&url(&server))).await;
    assert!(matches!(error, Error::TlsCertificateError), "{error}");
    assert_eq!(refusal.reason, RefusalReason::ClientCertificate);
    let begin = format!(
        "https://localhost:{} demands a client certificate (TLS alert ",
        server.port
    );
    assert!(refusal.message.starts_with(&begin), "{refusal}");
    let files = identity.files();
    let repaired = refusal
        .yaml
        .unwrap()
        .replace("/etc/cloudwit/client.pem", &files.certificate.to_string_lossy())
        .replace("/etc/cloudwit/secrets/client.key", &files.key.to_string_lossy());
    answers(&egress(&format!("http:\n{repaired}")), &server).await;
}

#[tokio::test]
async fn unaccepted_certificate_is_refused_with_its_file() {
    let (accepted, other) = (TestIdentity::new("accepted"), TestIdentity::new("other"));
    let server = RequestingServer::start(Requested::Demanded(&[&accepted]), &[&TLS12]).await;
    let files = other.files();
    let grants = format!("http:\n{}", server.grant(&identity_of(&files)));
    let (_, refusal) = refused(&egress(&grants), get(&url(&server))).await;
    assert_eq!(refusal.reason, RefusalReason::ClientCertificate);
    let certificate = files.certificate.display().to_string();
    assert!(
        refusal.message.contains("does not accept the client certificate") && refusal.message.contains(&certificate),
        "{refusal}"
    );
    assert_eq!(refusal.yaml, None);
}

#[tokio::test]
async fn renewed_certificate_is_presented_by_the_successor() {
    let (old, new) = (TestIdentity::new("old"), TestIdentity::new("new"));
    let server = RequestingServer::start(Requested::Demanded(&[&old, &new]), ALL_VERSIONS).await;
    let files = old.files();
    let grants = format!("http:\n{}", server.grant(&identity_of(&files)));
    let clients = HttpClients::with_lookup(Arc::new(Names));
    let load = || egress_with(&grants, &clients, &EgressMetrics::default());
    let first = load();
    answers(&first, &server).await;
    assert!(load().has_clients_of(&first), "nothing has changed");

    // Half of it: the successor is refused, and the running one continues.
    std::fs::write(&files.certificate, &new.certificate).unwrap();
    let half: Grants = serde_saphyr::from_str(&grants).unwrap();
    let refused = Egress::new("test", &half, EgressMetrics::default())
        .err()
        .unwrap()
        .to_string();
    let key = files.key.display().to_string();
    assert!(
        refused.contains("grants.http[0].clientKey") && refused.contains(&key) && refused.contains("is not the key of"),
        "{refused}"
    );
    answers(&first, &server).await;

    std::fs::write(&files.key, &new.key).unwrap();
    let second = load();
    assert!(!second.has_clients_of(&first));
    assert_ne!(
        first.identities().collect::<Vec<_>>(),
        second.identities().collect::<Vec<_>>()
    );
    answers(&second, &server).await;
    assert_eq!(server.presented(), [Some(old.der), Some(new.der)]);
}
