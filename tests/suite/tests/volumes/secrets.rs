//! Secrets that come with a request about a volume, used by a real guest: granted and not, in its call and outside of it, at its hosts and elsewhere.

use std::sync::{Arc, Mutex};

use axum::Router;
use cloudwit_host::{HostOptions, Provider, ProviderSettings};
use cloudwit_model::volume::NewVolume;
use cloudwit_model::{Failure, VolumeCloud as _, VolumeSecrets};
use cloudwit_suite::hosting::{Hosting, settings};
use tokio::net::TcpListener;

use crate::{failure, none, wanted};

const CANARY: &str = "canary-of-a-disk-5d1";

/// A server on 127.0.0.1 that answers what it is sent.
struct Echo {
    port: u16,
    bodies: Arc<Mutex<Vec<String>>>,
}

impl Echo {
    async fn start() -> Self {
        let bodies = Arc::<Mutex<Vec<String>>>::default();
        let kept = Arc::clone(&bodies);
        let echo = async move |body: String| {
            kept.lock().unwrap().push(body.clone());
            body
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move { axum::serve(listener, Router::new().fallback(echo)).await });
        Self { port, bodies }
    }
}

/// The guest with its server.
struct Guest {
    provider: Arc<Provider>,
    server: Echo,
}

impl Guest {
    /// With these entries in `grants.secrets`; PORT stands for the server's.
    async fn with(entries: &str) -> Self {
        let server = Echo::start().await;
        let port = server.port.to_string();
        let grants = format!(
            "http:\n- {{scheme: http, host: 127.0.0.1, port: PORT, allowLoopback: true}}\n\
             - {{scheme: http, host: localhost, port: PORT, allowLoopback: true}}\nsecrets: [{entries}]\n"
        );
        let settings = ProviderSettings {
            grants: serde_saphyr::from_str(&grants.replace("PORT", &port)).unwrap(),
            ..settings()
        };
        let hosting = Hosting::new(HostOptions::default());
        let provider = hosting.load("uses_volume_secrets", settings).await;
        Self {
            provider: Arc::new(provider),
            server,
        }
    }

    /// The failure of a creation with this parameter and these secrets.
    async fn create(&self, key: &str, value: &str, secrets: &VolumeSecrets) -> Failure {
        let new = NewVolume {
            parameters: [(key.to_owned(), value.replace("PORT", &self.server.port.to_string()))].into(),
            ..wanted("pvc")
        };
        let failed = failure(self.provider.create_volume(&new, None, secrets).await);
        assert!(!format!("{failed:?}").contains("canary"), "{failed:?}");
        failed
    }

    /// How many requests the server was sent.
    fn requests(&self) -> usize {
        self.server.bodies.lock().unwrap().len()
    }

    /// What the server was sent last.
    fn arrived(&self) -> String {
        self.server.bodies.lock().unwrap().last().cloned().unwrap_or_default()
    }
}

fn passphrase(value: &str) -> VolumeSecrets {
    VolumeSecrets::new([("passphrase".to_owned(), value.to_owned())]).unwrap()
}

const HERE: &str = "http://127.0.0.1:PORT/";
const PLACEHOLDER: &str = "{name: volume/passphrase, hosts: ['127.0.0.1:PORT'], uses: [placeholder]}";

#[tokio::test(flavor = "multi_thread")]
async fn placeholder_is_filled_in_the_call_of_its_request() {
    let guest = Guest::with(PLACEHOLDER).await;
    let echoed = guest.create("put", HERE, &passphrase(CANARY)).await;
    assert_eq!(guest.arrived(), CANARY);
    // The cloud sends it back, and the guest says it.
    let hidden = matches!(&echoed, Failure::Other(text) if text.message.contains("[secret volume/passphrase]"));
    assert!(hidden, "{echoed:?}");
    // Another request has another one, and a placeholder of the call before is a text like any other.
    guest.create("put", HERE, &passphrase("another-of-them")).await;
    assert_eq!(guest.arrived(), "another-of-them");
    guest.create("kept", HERE, &passphrase(CANARY)).await;
    assert!(
        guest.arrived().starts_with("cloudwit-placeholder-"),
        "{}",
        guest.arrived()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_at_the_same_time_have_their_own() {
    let guest = Arc::new(Guest::with("{name: volume/passphrase, uses: [hmac]}").await);
    let sign = |value: &'static str| {
        let guest = Arc::clone(&guest);
        async move { guest.create("sign", "text", &passphrase(value)).await }
    };
    let (one, two, again) = tokio::join!(sign("Jefe-Jefe"), sign("other-key"), sign("Jefe-Jefe"));
    assert_eq!(one, again);
    assert_ne!(one, two);
    // HMAC-SHA256 of "text" under "Jefe-Jefe", by Python's hmac.
    let expected = "7ba7dc865368a330f4d5ed1ac009cfd08ce3f765848bf9a4182399be733bb2cb";
    assert!(
        matches!(&one, Failure::Other(text) if text.message == expected),
        "{one:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn request_without_it_and_other_calls_have_none() {
    let guest = Guest::with(PLACEHOLDER).await;
    let other = VolumeSecrets::new([("other".to_owned(), CANARY.to_owned())]).unwrap();
    for secrets in [none(), other, passphrase("")] {
        let denied = guest.create("put", HERE, &secrets).await;
        let says = "has no value for the key \"passphrase\"";
        assert!(
            matches!(&denied, Failure::Denied(text) if text.message.contains(says)),
            "{denied:?}"
        );
    }
    guest.create("put", HERE, &passphrase(CANARY)).await;
    let looked_up = failure(guest.provider.get_volumes(&["a".to_owned()]).await);
    assert!(matches!(looked_up, Failure::Denied(_)), "{looked_up:?}");
    assert_eq!(guest.requests(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_grant_is_refused_with_the_line_to_add() {
    let guest = Guest::with("").await;
    let denied = guest.create("put", HERE, &passphrase(CANARY)).await;
    let port = guest.server.port;
    let line = format!(
        "add to grants.secrets: - {{name: volume/passphrase, hosts: [\"127.0.0.1:{port}\", \"localhost:{port}\"], uses: [placeholder]}}"
    );
    assert!(
        matches!(&denied, Failure::Denied(text) if text.message.contains(&line)),
        "{denied:?}"
    );
    let missing = guest.provider.missing_grants();
    let line = "- {name: volume/passphrase, uses: [placeholder, hmac]}";
    assert_eq!((missing[0].entry.as_str(), missing[0].optional), (line, true));
    assert_eq!(guest.requests(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn other_use_and_other_host_are_refused_with_the_entry() {
    let guest = Guest::with(PLACEHOLDER).await;
    let port = guest.server.port;
    let elsewhere = guest.create("put", "http://localhost:PORT/", &passphrase(CANARY)).await;
    let entry = format!("hosts: [\"127.0.0.1:{port}\", \"localhost:{port}\"], uses: [placeholder]}}");
    assert!(elsewhere.to_string().contains(&entry), "{elsewhere:?}");
    let signed = guest.create("sign", "text", &passphrase(CANARY)).await;
    assert!(signed.to_string().contains("uses: [placeholder, hmac]}"), "{signed:?}");
    let revealed = guest.create("say", "it", &passphrase(CANARY)).await;
    assert!(
        revealed.to_string().contains("uses: [placeholder, reveal]}"),
        "{revealed:?}"
    );
    assert_eq!(guest.requests(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn revealed_one_is_hidden_in_every_text_and_makes_names_invalid() {
    let guest = Guest::with("{name: volume/passphrase, uses: [reveal]}").await;
    let said = guest.create("say", "it", &passphrase(CANARY)).await;
    assert!(
        matches!(&said, Failure::Other(text) if text.message == "it is [secret volume/passphrase]"),
        "{said:?}"
    );
    let noted = guest.provider.redacted_texts();
    assert!(!noted.is_empty() && !noted.concat().contains("canary"), "{noted:?}");
    let new = NewVolume {
        parameters: [("say".to_owned(), "id".to_owned())].into(),
        ..wanted("pvc")
    };
    let named = guest
        .provider
        .create_volume(&new, None, &passphrase(CANARY))
        .await
        .unwrap_err();
    let text = format!("{named:?}");
    assert!(
        text.contains("contains the secret") && !text.contains("canary"),
        "{text}"
    );
}
