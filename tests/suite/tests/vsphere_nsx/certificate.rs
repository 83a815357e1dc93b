//! A principal identity: NSX behind TLS that demands a client certificate, which Cloudwit presents from its grant.

use std::fs;
use std::path::{Path, PathBuf};

use cloudwit_test_support::ServiceBuilder;
use cloudwit_test_support::authority::{Authority, Issued};
use cloudwit_test_support::files::vsphere::{NSX_CONFIG, NsxOverTls, nsx_certificate_files};
use serde_json::json;
use tempfile::TempDir;

use crate::scene::{BALANCERS, Scene};

/// Writes a file anew, as a mount does: it is never there in part.
fn replace(file: &Path, text: &str) {
    let new = file.with_extension("new");
    fs::write(&new, text).unwrap();
    fs::rename(new, file).unwrap();
}

/// The port of the manager that demands certificates, and the files of Cloudwit's.
struct Principal {
    folder: TempDir,
    authority: Authority,
    port: u16,
}

impl Principal {
    async fn new(scene: &Scene) -> Self {
        let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new().unwrap());
        let server = authority.server().unwrap();
        let mut principal = Self {
            folder,
            authority,
            port: 0,
        };
        let [certificate, key, ca] = [
            ("server.pem", server.certificate),
            ("server.key", server.key),
            ("ca.pem", principal.authority.pem()),
        ]
        .map(|(name, text)| {
            replace(&principal.file(name), &text);
            principal.file(name)
        });
        principal.port = scene.nsx.tls(&certificate, &key, &ca).await.unwrap();
        principal
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn issue(&self, name: &str) -> Issued {
        self.authority.client(name).unwrap()
    }

    /// Starts Cloudwit with this certificate in the grant.
    fn start(&self, scene: &mut Scene, issued: &Issued) {
        let (certificate, key) = (self.file("client.pem"), self.file("client.key"));
        replace(&certificate, &issued.certificate);
        replace(&key, &issued.key);
        let nsx = NsxOverTls {
            port: self.port,
            authority: &self.file("ca.pem"),
            certificate: &certificate,
            key: &key,
        };
        scene.start_with(
            |vcsim, deployment| nsx_certificate_files(vcsim, &nsx, NSX_CONFIG, deployment),
            &[BALANCERS],
        );
    }
}

/// Waits for a text in the log.
async fn logged(scene: &Scene, text: &str) {
    scene
        .settled(&format!("the log says {text}"), || async {
            match scene.log().contains(text) {
                true => Ok(()),
                false => Err("not yet".into()),
            }
        })
        .await;
}

async fn ports(scene: &Scene, port: u16) {
    let ports = json!([{ "name": "a", "port": port, "protocol": "TCP" }]);
    scene.patch("web", json!({ "spec": { "ports": ports } })).await;
}

async fn has_port(scene: &Scene, port: u16) {
    scene
        .comes("the port is changed", "lb-virtual-servers", |all| {
            all.len() == 1 && all[0]["ports"] == json!([port.to_string()])
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn principal_identity_needs_no_login_and_its_renewed_certificate_is_followed() {
    let mut scene = Scene::new().await;
    let principal = Principal::new(&scene).await;
    let (old, new) = (principal.issue("cloudwit-2025"), principal.issue("cloudwit-2026"));
    scene
        .does(
            "principals",
            json!({ "certificates": [old.certificate, new.certificate] }),
        )
        .await;
    scene.joins("one").await;
    principal.start(&mut scene, &old);
    scene.initialised("one").await;
    ServiceBuilder::new("web").create(&scene.client).await.unwrap();
    scene.address("web").await;

    // Half of the renewal: the pair that was read last stays.
    replace(&principal.file("client.pem"), &new.certificate);
    logged(&scene, "is not the key of the first certificate in").await;
    ports(&scene, 81).await;
    has_port(&scene, 81).await;
    // All of it: from now on NSX knows no other.
    replace(&principal.file("client.key"), &new.key);
    logged(&scene, "result=\"swapped\"").await;
    scene
        .does("principals", json!({ "certificates": [new.certificate] }))
        .await;
    ports(&scene, 82).await;
    has_port(&scene, 82).await;

    // A certificate of the right authority that is nobody's in NSX.
    scene
        .does("principals", json!({ "certificates": [old.certificate] }))
        .await;
    ports(&scene, 83).await;
    let parts = [
        "principal identity of the grant's client certificate",
        "credentials were incorrect",
    ];
    scene.warned("web", "SyncLoadBalancerFailed", &parts).await;
    scene
        .does("principals", json!({ "certificates": [new.certificate] }))
        .await;
    has_port(&scene, 83).await;

    scene.leaves_nothing("web").await;
    assert_eq!(scene.calls("POST /api/session/create").await, 0);
    let log = scene.log();
    for line in [&old, &new].iter().flat_map(|issued| issued.key.lines()) {
        assert!(
            line.contains("-----") || line.is_empty() || !log.contains(line),
            "the log has a line of a key"
        );
    }
}
