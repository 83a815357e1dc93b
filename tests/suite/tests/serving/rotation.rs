//! Files that change while the process runs: certificate, authority of clients, kubeconfig.

use std::path::Path;

use anyhow::ensure;
use cloudwit_test_support::eventually;

use crate::scene::{LIMIT, Scene, admin, allow, answer, authority, client};

#[tokio::test]
async fn a_changed_certificate_is_served_without_a_restart() {
    let files = tempfile::tempdir().unwrap();
    let first = pair(files.path());
    let flags = [
        format!("--tls-cert-file={}", files.path().join("tls.crt").display()),
        format!("--tls-private-key-file={}", files.path().join("tls.key").display()),
    ];
    let scene = Scene::new(&flags).await;
    assert_eq!(served(&scene).await, first);
    let second = pair(files.path());
    eventually(LIMIT, "the new certificate is served", || async {
        served(&scene).await == second
    })
    .await;
}

/// Writes a new pair and gives its certificate.
fn pair(folder: &Path) -> Vec<u8> {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    std::fs::write(folder.join("tls.crt"), made.cert.pem()).unwrap();
    std::fs::write(folder.join("tls.key"), made.signing_key.serialize_pem()).unwrap();
    made.cert.der().to_vec()
}

async fn served(scene: &Scene) -> Vec<u8> {
    let response = scene.get("/healthz").send().await.unwrap();
    let info = response.extensions().get::<reqwest::tls::TlsInfo>().unwrap();
    info.peer_certificate().unwrap().to_vec()
}

#[tokio::test]
async fn a_new_authority_of_clients_counts_and_the_old_one_no_more() {
    let files = tempfile::tempdir().unwrap();
    let file = files.path().join("ca.crt");
    let ((first, ann), (second, bea)) = (authority(), authority());
    std::fs::write(&file, first).unwrap();
    let scene = Scene::new(&[format!("--client-ca-file={}", file.display())]).await;
    let url = format!("{}/metrics", scene.url);
    // Each keeps its connection, so that what counts is seen to be decided for each request.
    let (ann, bea) = (client(Some(ann)), client(Some(bea)));
    assert_eq!(answer(ann.get(&url)).await.0, 200);
    assert_eq!(answer(bea.get(&url)).await.0, 401);
    std::fs::write(&file, second).unwrap();
    eventually(LIMIT, "the new authority counts", || async {
        let code = answer(bea.get(&url)).await.0;
        ensure!(code == 200, "{code}");
        anyhow::Ok(())
    })
    .await;
    assert_eq!(answer(ann.get(&url)).await.0, 401);
}

#[tokio::test]
async fn corrected_review_kubeconfig_is_taken_without_restart() {
    let files = tempfile::tempdir().unwrap();
    let file = files.path().join("kubeconfig");
    let good = cloudwit_test_support::ApiServer::shared().await.kubeconfig();
    let text = std::fs::read_to_string(good).unwrap();
    let mut stranger: serde_json::Value = serde_saphyr::from_str(&text).unwrap();
    stranger["users"][0]["user"] = serde_json::json!({ "token": "of-nobody" });
    std::fs::write(&file, stranger.to_string()).unwrap();
    let flags = ["authentication", "authorization"].map(|of| format!("--{of}-kubeconfig={}", file.display()));
    let tolerant = "--authentication-tolerate-lookup-failure".to_owned();
    let scene = Scene::new(&[flags.to_vec(), vec![tolerant]].concat()).await;
    let reader = scene.account("rotation-reader").await;
    allow(scene.server.client(), "rotation-reader", &["/metrics"]).await;
    assert_eq!(answer(scene.get("/metrics").bearer_auth(&reader)).await.0, 401);

    std::fs::write(&file, &text).unwrap();
    eventually(LIMIT, "the token counts", || async {
        let (code, text) = answer(scene.get("/metrics").bearer_auth(&reader)).await;
        ensure!(code == 200, "{code} {text}");
        anyhow::Ok(())
    })
    .await;
    let url = format!("{}/metrics", scene.url);
    eventually(LIMIT, "the authorities of the cluster are known", || async {
        let (code, text) = answer(client(Some(admin(good))).get(&url)).await;
        ensure!(code == 200, "{code} {text}");
        anyhow::Ok(())
    })
    .await;
}
