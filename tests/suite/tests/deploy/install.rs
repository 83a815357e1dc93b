//! `cloudwit install` on a real API server.

use std::fs;

use cloudwit_suite::root;
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::core::ApiResource;
use kube::{Api, Client};
use serde_json::{Value, json};

use cloudwit_test_support::programs::guests;

use crate::cluster::Cluster;

/// Has the API server check an object in all strictness, without keeping it.
async fn check(client: &Client, object: &Value) -> Result<(), String> {
    let object: DynamicObject = serde_json::from_value(object.clone()).unwrap();
    let kind = GroupVersionKind::try_from(object.types.as_ref().unwrap()).unwrap();
    let resource = ApiResource::from_gvk(&kind);
    let name = object.metadata.name.clone().unwrap();
    let api: Api<DynamicObject> = match &object.metadata.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let params = PatchParams {
        dry_run: true,
        ..PatchParams::apply("check").validation_strict()
    };
    let checked = api.patch(&name, &params, &Patch::Apply(&object)).await;
    checked
        .map(|_| ())
        .map_err(|error| format!("{} {name}: {error}", kind.kind))
}

#[tokio::test(flavor = "multi_thread")]
async fn install_is_repeatable_and_refuses_what_would_not_run() {
    let cluster = Cluster::new(&[]).await;
    let again = cluster.install(&["--apply"]);
    assert!(again.contains("Deployment cloudwit unchanged"), "{again}");
    let late = cluster.install(&["--apply", "--timeout=1s"]);
    assert!(
        late.contains("after 1 s the Deployment has not been read yet") && late.contains("describe pods"),
        "{late}"
    );

    let deployments: Api<Deployment> = Api::namespaced(cluster.client.clone(), "kube-system");
    let scaled = json!({ "spec": { "replicas": 1 } });
    deployments
        .patch("cloudwit", &PatchParams::default(), &Patch::Merge(scaled))
        .await
        .unwrap();
    let refused = cluster.install(&["--apply"]);
    assert!(
        refused.contains(".spec.replicas") && refused.contains("--force-conflicts takes them over"),
        "{refused}"
    );
    let forced = cluster.install(&["--apply", "--force-conflicts"]);
    assert!(forced.contains("Deployment cloudwit configured"), "{forced}");
    let deployment = deployments.get("cloudwit").await.unwrap();
    assert_eq!(deployment.spec.replicas, Some(2));

    let printed = cluster.install(&[]);
    let objects: Vec<Value> = serde_saphyr::from_multiple(&printed).unwrap();
    assert!(objects.len() > 8, "{printed}");
    for object in &objects {
        let checked = check(&cluster.client, object).await;
        // A conflict with the manager of the installed ones is right here.
        assert!(
            checked.is_ok() || checked.as_ref().is_err_and(|error| error.contains("conflict")),
            "{checked:?}"
        );
    }

    let maps: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), "kube-system");
    let before = maps.get("cloudwit-config").await.unwrap();
    fs::write(cluster.file("sim.wasm"), "no component").unwrap();
    let said = cluster.install(&["--apply"]);
    assert!(said.contains("provider sim: ") && said.contains("sim.wasm"), "{said}");
    let good = tokio::task::spawn_blocking(|| guests::provider("sim"));
    fs::copy(good.await.unwrap(), cluster.file("sim.wasm")).unwrap();
    let file = cluster.file("cloudwit.yaml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("{\"endpoint\": ", "{\"endpint\": ")).unwrap();
    let said = cluster.install(&["--apply"]);
    assert!(
        said.contains("endpint"),
        "the provider itself refuses its configuration: {said}"
    );
    assert!(!said.contains("applied"), "{said}");
    assert_eq!(
        maps.get("cloudwit-config").await.unwrap(),
        before,
        "nothing was written"
    );
}

#[tokio::test]
async fn the_chart_with_everything_on_is_valid() {
    let client = cloudwit_test_support::ApiServer::shared().await.client();
    let text = fs::read_to_string(root().join("deploy/chart/.snapshots/full.yaml")).unwrap();
    let mut objects: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    // Their kinds come with the Prometheus Operator and cert-manager, which are not there.
    let is_foreign =
        |object: &Value| object["kind"] == "Certificate" || object["apiVersion"] == "monitoring.coreos.com/v1";
    objects.retain(|object| !is_foreign(object));
    assert!(objects.len() > 9, "{}", objects.len());
    for object in &objects {
        check(&client, object).await.unwrap();
    }
}

#[tokio::test]
async fn a_config_map_holds_as_much_as_install_believes() {
    let client = cloudwit_test_support::ApiServer::shared().await.client();
    let maps: Api<ConfigMap> = Api::namespaced(client, "kube-system");
    let create = async |size: usize| {
        let content = ByteString(vec![b'x'; size]);
        let map = ConfigMap {
            binary_data: Some([("sim.wasm".to_owned(), content)].into()),
            metadata: serde_json::from_value(json!({ "name": format!("of-{size}") })).unwrap(),
            ..ConfigMap::default()
        };
        maps.create(&PostParams::default(), &map).await
    };
    create(1 << 20).await.unwrap();
    let refused = create((1 << 20) + 1).await.unwrap_err().to_string();
    assert!(refused.contains("1048576"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn reinstall_renews_webhook_pair_and_trusts_previous() {
    let cluster = Cluster::new(&["--webhooks=persistent-volume-label"]).await;
    let configurations: Api<MutatingWebhookConfiguration> = Api::all(cluster.client.clone());
    let secrets: Api<Secret> = Api::namespaced(cluster.client.clone(), "kube-system");
    let state = async || {
        let configuration = configurations.get("cloudwit").await.unwrap();
        let authorities = configuration
            .webhooks
            .unwrap()
            .remove(0)
            .client_config
            .ca_bundle
            .unwrap();
        let pair = secrets.get("cloudwit-webhook").await.unwrap().data.unwrap();
        (String::from_utf8(authorities.0).unwrap(), pair["tls.crt"].0.clone())
    };
    let (first, served) = state().await;
    assert_eq!(first.matches("BEGIN CERTIFICATE").count(), 1, "{first}");
    for _ in 0..4 {
        let said = cluster.install(&["--apply", "--webhooks=persistent-volume-label"]);
        assert!(
            said.contains("MutatingWebhookConfiguration cloudwit configured"),
            "{said}"
        );
    }
    let (both, renewed) = state().await;
    assert_ne!(renewed, served);
    assert_eq!(both.matches("BEGIN CERTIFICATE").count(), 4, "{both}");
    assert!(!both.contains(first.trim()), "it is four certificates old");
}
