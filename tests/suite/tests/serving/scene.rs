//! A Cloudwit that serves HTTPS, and those who read.

use std::path::Path;
use std::time::Duration;

use cloudwit_test_support::programs::child::Child;
use cloudwit_test_support::programs::{guests, port};
use cloudwit_test_support::scenes::deployment::Deployment;
use cloudwit_test_support::{ApiServer, eventually, programs};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::authorization::v1::{NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client, Resource};
use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use reqwest::{Identity, RequestBuilder};
use serde_json::{Value, json};

pub const LIMIT: Duration = Duration::from_secs(180);

/// A Cloudwit that serves HTTPS.
pub struct Scene {
    pub server: &'static ApiServer,
    pub url: String,
    pub admin_url: String,
    _folder: tempfile::TempDir,
    _cloudwit: Child,
    _cloud: Child,
}

impl Scene {
    /// With these flags, when it is ready.
    pub async fn new(flags: &[String]) -> Self {
        // Another test of this process may have been first.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let server = ApiServer::shared().await;
        let build = || (programs::cloudwit(), guests::provider("sim"));
        let (program, provider) = tokio::task::spawn_blocking(build).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let deployment = Deployment::new(&folder.path().join("d"), program.parent().unwrap(), &provider).unwrap();
        let (cloud, cloud_url) = deployment.start_cloud().unwrap();
        let port = port::reserve().unwrap();
        let kubeconfig = server.kubeconfig().display();
        let mut all = vec![
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure_port={port}"),
            format!("--authentication-kubeconfig={kubeconfig}"),
            format!("--authorization-kubeconfig={kubeconfig}"),
            format!("--leader-elect-resource-name=serving-{port}"),
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
            _folder: folder,
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

    pub fn get(&self, path: &str) -> RequestBuilder {
        client(None).get(format!("{}{path}", self.url))
    }

    /// The port of the HTTPS server.
    pub fn port(&self) -> u16 {
        self.url.rsplit(':').next().unwrap().parse().unwrap()
    }

    /// The token of a new ServiceAccount.
    pub async fn account(&self, name: &str) -> String {
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
pub async fn allow(client: Client, account: &str, paths: &[&str]) {
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
    create(&Api::<ClusterRoleBinding>::all(client.clone()), binding).await;
    // The API server's authorizer learns of it later, and whoever is refused until then stays so for some seconds.
    let reviews = Api::<SubjectAccessReview>::all(client);
    let review = SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: Some(format!("system:serviceaccount:default:{account}")),
            non_resource_attributes: Some(NonResourceAttributes {
                path: Some(paths[0].into()),
                verb: Some("get".into()),
            }),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    };
    eventually(LIMIT, "the account may read", || async {
        let answer = reviews.create(&PostParams::default(), &review).await?;
        anyhow::ensure!(answer.status.is_some_and(|status| status.allowed), "not yet");
        anyhow::Ok(())
    })
    .await;
}

/// A client that takes any certificate, since it is generated, and may show one itself.
pub fn client(identity: Option<Identity>) -> reqwest::Client {
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

pub async fn answer(request: RequestBuilder) -> (u16, String) {
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

/// The administrator of the kubeconfig, by his certificate.
pub fn admin(kubeconfig: &Path) -> Identity {
    let kubeconfig: Value = serde_saphyr::from_str(&std::fs::read_to_string(kubeconfig).unwrap()).unwrap();
    let user = &kubeconfig["users"][0]["user"];
    let decoded = |key: &str| String::from_utf8(base64(&user[key])).unwrap();
    let pem = decoded("client-certificate-data") + &decoded("client-key-data");
    Identity::from_pem(pem.as_bytes()).unwrap()
}

fn base64(text: &Value) -> Vec<u8> {
    let value: k8s_openapi::ByteString = serde_json::from_value(text.clone()).unwrap();
    value.0
}

/// The PEM of a new authority, and a member of system:masters whom it certifies.
pub fn authority() -> (String, Identity) {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let pem = authority.self_signed(&key).unwrap().pem();
    let mut client = CertificateParams::default();
    client.distinguished_name.push(DnType::CommonName, "ann");
    client
        .distinguished_name
        .push(DnType::OrganizationName, "system:masters");
    client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let own = KeyPair::generate().unwrap();
    let leaf = client.signed_by(&own, &Issuer::new(authority, key)).unwrap();
    let identity = leaf.pem() + &own.serialize_pem();
    (pem, Identity::from_pem(identity.as_bytes()).unwrap())
}
