//! The HTTPS pages of the real binary on a real API server: who may read what is asked of its TokenReviews and SubjectAccessReviews, and
//! client certificates count by the authorities that it publishes.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use cloudwit_test_support::child::Child;
use cloudwit_test_support::deployment::Deployment;
use cloudwit_test_support::{ApiServer, eventually, guests, programs};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client, Resource};
use reqwest::{Identity, RequestBuilder};
use serde_json::{Value, json};

const LIMIT: Duration = Duration::from_secs(60);

/// A Cloudwit that serves HTTPS.
struct Scene {
    server: &'static ApiServer,
    url: String,
    admin_url: String,
    folder: tempfile::TempDir,
    _cloudwit: Child,
    _cloud: Child,
}

impl Scene {
    async fn new(flags: &[String]) -> Self {
        // Another test of this process may have been first.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let server = ApiServer::shared().await;
        let build = || (programs::cloudwit(), guests::provider("sim"));
        let (program, provider) = tokio::task::spawn_blocking(build).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let deployment = Deployment::new(&folder.path().join("d"), program.parent().unwrap(), &provider).unwrap();
        let (cloud, cloud_url) = deployment.start_cloud().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let kubeconfig = server.kubeconfig().display();
        let mut all = vec![
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure_port={port}"),
            format!("--authentication-kubeconfig={kubeconfig}"),
            format!("--authorization-kubeconfig={kubeconfig}"),
            "--leader-elect-resource-name=serving".to_owned(),
        ];
        all.extend_from_slice(flags);
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let (cloudwit, admin_url) = deployment
            .start_cloudwit(server.kubeconfig(), &cloud_url, &all)
            .unwrap();
        let scene = Self {
            server,
            url: format!("https://127.0.0.1:{port}"),
            admin_url,
            folder,
            _cloudwit: cloudwit,
            _cloud: cloud,
        };
        eventually(LIMIT, "it is ready", || async {
            let response = client(None).get(format!("{}/readyz", scene.url)).send().await;
            response
                .map_err(anyhow::Error::from)?
                .error_for_status()
                .map_err(anyhow::Error::from)
        })
        .await;
        scene
    }

    fn get(&self, path: &str) -> RequestBuilder {
        client(None).get(format!("{}{path}", self.url))
    }

    /// The token of a new ServiceAccount.
    async fn account(&self, name: &str) -> String {
        let accounts = Api::<ServiceAccount>::namespaced(self.server.client(), "default");
        create(&accounts, json!({ "metadata": { "name": name } })).await;
        let request = TokenRequest {
            spec: Some(TokenRequestSpec::default()),
            ..TokenRequest::default()
        };
        let made = accounts
            .create_token_request(name, &PostParams::default(), &request)
            .await
            .unwrap();
        made.status.unwrap().token.unwrap()
    }
}

async fn create<K>(api: &Api<K>, object: Value)
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + serde::Serialize + serde::de::DeserializeOwned,
{
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap())
        .await
        .unwrap();
}

/// Lets the account read these paths.
async fn allow(client: Client, account: &str, paths: &[&str]) {
    let name = ObjectMeta {
        name: Some(account.into()),
        ..ObjectMeta::default()
    };
    let rules = json!([{ "nonResourceURLs": paths, "verbs": ["get"] }]);
    create(
        &Api::<ClusterRole>::all(client.clone()),
        json!({ "metadata": name, "rules": rules }),
    )
    .await;
    let binding = json!({
        "metadata": name,
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": account },
        "subjects": [{ "kind": "ServiceAccount", "name": account, "namespace": "default" }],
    });
    create(&Api::<ClusterRoleBinding>::all(client), binding).await;
}

/// A client that takes any certificate, since it is generated, and may show one itself.
fn client(identity: Option<Identity>) -> reqwest::Client {
    let builder = reqwest::Client::builder()
        .tls_danger_accept_invalid_certs(true)
        .tls_info(true);
    match identity {
        Some(identity) => builder.identity(identity),
        None => builder,
    }
    .build()
    .unwrap()
}

async fn answer(request: RequestBuilder) -> (u16, String) {
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

#[tokio::test]
async fn the_api_server_decides_who_reads_what() {
    let scene = Scene::new(&[]).await;
    let (reader, stranger) = (scene.account("metrics-reader").await, scene.account("stranger").await);
    allow(
        scene.server.client(),
        "metrics-reader",
        &["/metrics", "/configz", "/readyz/*"],
    )
    .await;

    assert_eq!(answer(scene.get("/healthz")).await, (200, "ok".into()));
    assert_eq!(answer(scene.get("/livez")).await, (200, "ok".into()));
    let (code, text) = answer(scene.get("/metrics")).await;
    assert_eq!(code, 403);
    assert!(
        text.contains(r#"User \"system:anonymous\" cannot get path \"/metrics\""#),
        "{text}"
    );
    let (code, _) = answer(scene.get("/nothing/of/the/kind")).await;
    assert_eq!(code, 403, "what exists is not told to those who may not know");
    let (code, text) = answer(scene.get("/metrics").bearer_auth("wrong")).await;
    assert_eq!(code, 401, "{text}");
    assert_eq!(answer(scene.get("/healthz").bearer_auth("wrong")).await.0, 401);
    let (code, text) = answer(scene.get("/metrics").bearer_auth(&stranger)).await;
    assert_eq!(code, 403);
    assert!(text.contains("system:serviceaccount:default:stranger"), "{text}");

    let (code, text) = answer(scene.get("/metrics").bearer_auth(&reader)).await;
    assert_eq!(code, 200, "{text}");
    assert!(
        text.contains("# TYPE workqueue_adds_total counter") && text.contains("kubernetes_build_info{"),
        "{text}"
    );
    let (code, text) = answer(scene.get("/configz").bearer_auth(&reader)).await;
    let config: Value = serde_json::from_str(&text).unwrap();
    let shared = &config["cloudcontrollermanager.config.k8s.io"]["KubeCloudShared"];
    assert_eq!((code, &shared["CloudProvider"]["Name"]), (200, &json!("sim")));
    assert_eq!(
        answer(scene.get("/readyz/informer-sync").bearer_auth(&reader)).await,
        (200, "ok".into())
    );
    assert_eq!(answer(scene.get("/readyz/nothing").bearer_auth(&reader)).await.0, 404);
    assert_eq!(answer(scene.get("/debug/flags/v").bearer_auth(&reader)).await.0, 403);

    let (code, text) = answer(scene.get("/readyz?verbose")).await;
    assert_eq!(code, 200);
    for check in [
        "leaderElection",
        "informer-sync",
        "provider-sim",
        "cloud-node-controller",
        "service-lb-controller",
    ] {
        assert!(text.contains(&format!("[+]{check} ok\n")), "{check}: {text}");
    }
    assert!(text.ends_with("readyz check passed\n"), "{text}");
}

#[tokio::test]
async fn a_client_certificate_counts_by_the_authority_that_the_cluster_publishes() {
    let scene = Scene::new(&[]).await;
    let kubeconfig = std::fs::read_to_string(scene.server.kubeconfig()).unwrap();
    let kubeconfig: Value = serde_saphyr::from_str(&kubeconfig).unwrap();
    let user = &kubeconfig["users"][0]["user"];
    let decoded = |key: &str| String::from_utf8(base64(&user[key])).unwrap();
    let pem = decoded("client-certificate-data") + &decoded("client-key-data");
    let admin = client(Some(Identity::from_pem(pem.as_bytes()).unwrap()));
    let url = |path: &str| format!("{}{path}", scene.url);
    assert_eq!(answer(admin.get(url("/metrics/slis"))).await.0, 200);
    let (code, text) = answer(admin.put(url("/debug/flags/v")).body("4")).await;
    assert_eq!(
        (code, text.as_str()),
        (200, "successfully set klog.logging.verbosity to 4")
    );
    assert_eq!(answer(admin.get(url("/debug/flags/v"))).await.0, 406);
    let (code, text) = answer(admin.get(url("/debug/pprof/heap"))).await;
    assert!(code == 404 && text.contains("no Go profiles"), "{code} {text}");

    let stranger = rcgen::generate_simple_self_signed(vec!["admin".into()]).unwrap();
    let pem = stranger.cert.pem() + &stranger.signing_key.serialize_pem();
    let stranger = client(Some(Identity::from_pem(pem.as_bytes()).unwrap()));
    assert_eq!(answer(stranger.get(url("/metrics"))).await.0, 401);

    let headers = client(None)
        .get(url("/metrics"))
        .header("x-remote-user", "a")
        .header("x-remote-group", "system:masters");
    assert_eq!(
        answer(headers).await.0,
        403,
        "headers of a proxy count for nothing without its certificate"
    );
    let (code, text) = answer(client(None).get(format!("{}/readyz?verbose", scene.admin_url))).await;
    assert!(code == 200 && text.contains("[+]ping ok"), "{code} {text}");
}

fn base64(text: &Value) -> Vec<u8> {
    let value: k8s_openapi::ByteString = serde_json::from_value(text.clone()).unwrap();
    value.0
}

#[tokio::test]
async fn a_changed_certificate_is_served_without_a_restart() {
    let files = tempfile::tempdir().unwrap();
    let first = pair(files.path());
    let flags = [
        format!("--tls-cert-file={}", files.path().join("tls.crt").display()),
        format!("--tls-private-key-file={}", files.path().join("tls.key").display()),
    ];
    let scene = Scene::new(&flags).await;
    assert!(scene.folder.path().exists());
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
