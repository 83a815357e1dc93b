//! What the process is there for, each deed as something that can be asked for and seen from outside.

use std::sync::atomic::{AtomicU32, Ordering};

use cloudwit_test_support::foreign_events::is_of_the_api_server;
use cloudwit_test_support::objects::is_uninitialised;
use cloudwit_test_support::scenes::rig::ingress;
use cloudwit_test_support::{NodeBuilder, ServiceBuilder};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Node, Service, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::json;

use crate::cluster::{Cluster, Running, USER};
use crate::rights::Right;

/// Something that an operator notices when it is not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// A replica leads.
    Leads,
    /// A replica that waits is told what becomes of the leader.
    FollowsTheLeader,
    /// A Node that joins becomes usable, with addresses and its route.
    InitialisesNode,
    /// The Node of a machine that is gone is deleted.
    DeletesNode,
    /// A Service gets its address.
    GivesAddress,
    /// `kubectl describe service` says what happened.
    WritesEvents,
    /// What happens again is counted in the Event that is there.
    CountsEvents,
    /// Whoever may read metrics reads them.
    LetsReadersIn,
    /// A client certificate of an authority that was added while it runs is accepted.
    FollowsAuthorities,
}

/// What was asked for, by the name that its objects have.
pub struct Asked {
    deed: Deed,
    name: String,
    client: Option<reqwest::Client>,
    looks: AtomicU32,
}

/// Every so many looks whatever has to be asked for again is asked for again.
const ASK_AGAIN: u32 = 40;

static NUMBER: AtomicU32 = AtomicU32::new(1);

impl Deed {
    /// What a replica that is alone can be seen to do.
    pub const ALL: [Self; 8] = [
        Self::Leads,
        Self::InitialisesNode,
        Self::DeletesNode,
        Self::GivesAddress,
        Self::WritesEvents,
        Self::CountsEvents,
        Self::LetsReadersIn,
        Self::FollowsAuthorities,
    ];

    /// What a right is for.
    pub fn that_needs(right: &Right) -> Self {
        match (right.resource.as_str(), right.verb.as_str()) {
            ("nodes", "list" | "watch" | "patch") | ("nodes/status", "patch") => Self::InitialisesNode,
            ("nodes", "get" | "delete") => Self::DeletesNode,
            ("services", "list" | "watch") | ("services/status", "patch") => Self::GivesAddress,
            ("events", "create") => Self::WritesEvents,
            ("events", "patch") => Self::CountsEvents,
            ("leases", "get" | "create" | "update") => Self::Leads,
            ("leases", "watch") => Self::FollowsTheLeader,
            ("configmaps", "get" | "list" | "watch") => Self::FollowsAuthorities,
            ("tokenreviews" | "subjectaccessreviews", "create") => Self::LetsReadersIn,
            other => panic!("no deed needs {other:?}; does it have to be granted?"),
        }
    }

    /// Whether it can be asked for only when the process runs.
    pub fn is_about_a_running_process(self) -> bool {
        self == Self::FollowsAuthorities
    }

    /// Asks for it.
    pub async fn ask(self, cluster: &Cluster) -> Asked {
        let number = NUMBER.fetch_add(1, Ordering::SeqCst);
        let mut asked = Asked {
            deed: self,
            name: format!("node-{number}"),
            client: None,
            looks: AtomicU32::new(0),
        };
        match self {
            Self::Leads => {}
            Self::FollowsTheLeader => make_a_lease(cluster, "somebody", 3600).await,
            Self::InitialisesNode => {
                let node = NodeBuilder::new(&asked.name).pod_cidr(&format!("10.244.{number}.0/24"));
                node.create(&cluster.client).await.unwrap();
            }
            Self::DeletesNode => lose_machine(cluster, &asked.name).await,
            Self::GivesAddress | Self::WritesEvents | Self::CountsEvents => {
                ServiceBuilder::new(&asked.name).create(&cluster.client).await.unwrap();
            }
            Self::LetsReadersIn => allow_metrics(cluster, &asked.name).await,
            Self::FollowsAuthorities => asked.client = Some(client_of_a_new_authority(cluster).await),
        }
        asked
    }
}

impl Asked {
    /// Whether it is done; what is missing otherwise. Looks, and asks again where somebody has to ask again.
    pub async fn done(&self, cluster: &Cluster, running: &Running) -> Result<(), String> {
        let missing = |what: &str| Err(format!("{what}; {}", running.process.log_end()));
        let text = |error: kube::Error| error.to_string();
        match self.deed {
            Deed::Leads => {
                let leases: Api<Lease> = Api::namespaced(cluster.client.clone(), "kube-system");
                let lease = leases.get_opt("cloud-controller-manager").await.map_err(text)?;
                let holder = lease.and_then(|lease| lease.spec?.holder_identity).unwrap_or_default();
                if holder.is_empty() {
                    missing("nobody leads")
                } else {
                    Ok(())
                }
            }
            Deed::FollowsTheLeader => follows(running),
            Deed::InitialisesNode => {
                let node = Api::<Node>::all(cluster.client.clone())
                    .get(&self.name)
                    .await
                    .map_err(text)?;
                let status = node.status.as_ref();
                let conditions = status
                    .and_then(|status| status.conditions.as_deref())
                    .unwrap_or_default();
                let routed = conditions
                    .iter()
                    .any(|one| one.type_ == "NetworkUnavailable" && one.status == "False");
                match is_uninitialised(&node) || !routed {
                    true => missing("the Node is not initialised"),
                    false => Ok(()),
                }
            }
            Deed::DeletesNode => {
                let node = Api::<Node>::all(cluster.client.clone())
                    .get_opt(&self.name)
                    .await
                    .map_err(text)?;
                if node.is_some() {
                    missing("the Node is still there")
                } else {
                    Ok(())
                }
            }
            Deed::GivesAddress => {
                let services: Api<Service> = Api::default_namespaced(cluster.client.clone());
                let service = services.get(&self.name).await.map_err(text)?;
                if ingress(&service).is_empty() {
                    missing("the Service has no address")
                } else {
                    Ok(())
                }
            }
            Deed::WritesEvents | Deed::CountsEvents => self.events(cluster).await,
            Deed::LetsReadersIn => {
                let token = cluster.token("default", &self.name).await;
                let status = status(&insecure(None), running, Some(token)).await?;
                if status == 200 {
                    Ok(())
                } else {
                    missing(&format!("a reader of metrics got {status}"))
                }
            }
            Deed::FollowsAuthorities => {
                // 403: it is known who asks, and that he may not.
                let status = status(self.client.as_ref().unwrap(), running, None).await?;
                if status == 403 {
                    Ok(())
                } else {
                    missing(&format!("a client with a certificate got {status}"))
                }
            }
        }
    }

    async fn events(&self, cluster: &Cluster) -> Result<(), String> {
        let events: Api<Event> = Api::default_namespaced(cluster.client.clone());
        let of = ListParams::default().fields(&format!("involvedObject.name={}", self.name));
        let mut events = events.list(&of).await.map_err(|error| error.to_string())?;
        events.items.retain(|event| !is_of_the_api_server(event));
        let counted = events.iter().any(|event| event.count.unwrap_or_default() > 1);
        if self.deed == Deed::WritesEvents && !events.items.is_empty() || counted {
            return Ok(());
        }
        if self.looks.fetch_add(1, Ordering::SeqCst) % ASK_AGAIN != ASK_AGAIN / 2 {
            return Err(format!("{} Events, none counted", events.items.len()));
        }
        // Another change, another look at the load balancer, the same Events once more.
        let services: Api<Service> = Api::default_namespaced(cluster.client.clone());
        let service = services.get(&self.name).await.map_err(|error| error.to_string())?;
        let looks = self.looks.load(Ordering::SeqCst);
        let port = 1000 + looks % 60_000;
        let ports = json!({ "spec": { "ports": [{ "name": "http", "port": port }] } });
        let patch = services
            .patch(&service.name_any(), &PatchParams::default(), &Patch::Merge(ports))
            .await;
        patch.map_err(|error| error.to_string())?;
        Err("changed the Service once more".into())
    }
}

/// A Node that was initialised before, is not ready now, and whose machine is gone.
async fn lose_machine(cluster: &Cluster, name: &str) {
    let machine = cluster
        .cloud
        .machines()
        .into_iter()
        .find(|machine| machine.name == name)
        .unwrap();
    let node = NodeBuilder::new(name)
        .initialised()
        .provider_id(&format!("sim://{}", machine.id));
    node.ready(Some(false)).create(&cluster.client).await.unwrap();
    assert_eq!(cluster.cloud.delete_machines([name]), 1);
}

/// An account of this name that may read metrics.
async fn allow_metrics(cluster: &Cluster, name: &str) {
    let client = || cluster.client.clone();
    let of = PostParams::default();
    let account = serde_json::from_value(json!({ "metadata": { "name": name } })).unwrap();
    Api::<ServiceAccount>::default_namespaced(client())
        .create(&of, &account)
        .await
        .unwrap();
    let role =
        json!({ "metadata": { "name": name }, "rules": [{ "nonResourceURLs": ["/metrics"], "verbs": ["get"] }] });
    let role = serde_json::from_value(role).unwrap();
    Api::<ClusterRole>::all(client()).create(&of, &role).await.unwrap();
    let binding = json!({
        "metadata": { "name": name },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name },
        "subjects": [{ "kind": "ServiceAccount", "name": name, "namespace": "default" }],
    });
    let binding = serde_json::from_value(binding).unwrap();
    Api::<ClusterRoleBinding>::all(client())
        .create(&of, &binding)
        .await
        .unwrap();
}

/// Adds an authority to what the API server publishes; a client with a certificate of it.
async fn client_of_a_new_authority(cluster: &Cluster) -> reqwest::Client {
    let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), "kube-system");
    let name = "extension-apiserver-authentication";
    let data = maps.get(name).await.unwrap().data.unwrap();
    let both = data["client-ca-file"].clone() + &authority.pem();
    let patch = json!({ "data": { "client-ca-file": both } });
    maps.patch(name, &PatchParams::default(), &Patch::Merge(patch))
        .await
        .unwrap();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["client".to_owned()]).unwrap();
    params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
    let certificate = params.signed_by(&key, &authority).unwrap();
    insecure(Some(certificate.pem() + &key.serialize_pem()))
}

/// A client that takes any certificate, since it is generated, and may show one itself.
fn insecure(identity: Option<String>) -> reqwest::Client {
    let builder = reqwest::Client::builder().tls_danger_accept_invalid_certs(true);
    let builder = match identity {
        Some(pem) => builder.identity(reqwest::Identity::from_pem(pem.as_bytes()).unwrap()),
        None => builder,
    };
    builder.build().unwrap()
}

/// Whether somebody answers.
pub async fn serves(running: &Running) -> Result<(), String> {
    status(&insecure(None), running, None).await.map(|_| ())
}

async fn status(client: &reqwest::Client, running: &Running, token: Option<String>) -> Result<u16, String> {
    let mut request = client.get(format!("{}/metrics", running.https));
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    let answer = request.send().await.map_err(|error| error.to_string())?;
    Ok(answer.status().as_u16())
}

/// Whether the API server would let the process do this.
pub async fn may(cluster: &Cluster, right: &Right) -> bool {
    let (resource, subresource) = match right.resource.split_once('/') {
        Some((resource, part)) => (resource, Some(part.to_owned())),
        None => (right.resource.as_str(), None),
    };
    let namespaced = right.in_role.then(|| "kube-system".to_owned());
    let review = SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: Some(USER.into()),
            groups: Some(vec!["system:serviceaccounts".into(), "system:authenticated".into()]),
            resource_attributes: Some(ResourceAttributes {
                group: Some(right.group.clone()),
                resource: Some(resource.into()),
                subresource,
                verb: Some(right.verb.clone()),
                name: Some(right.name.clone()).filter(|name| !name.is_empty()),
                namespace: namespaced,
                ..ResourceAttributes::default()
            }),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    };
    let reviews: Api<SubjectAccessReview> = Api::all(cluster.client.clone());
    let answer = reviews.create(&PostParams::default(), &review).await.unwrap();
    answer.status.unwrap().allowed
}

/// Whether it has said that it is told what becomes of the leader.
pub fn follows(running: &Running) -> Result<(), String> {
    let log = std::fs::read_to_string(running.process.log()).map_err(|error| error.to_string())?;
    let said = log.contains("watching lease");
    said.then_some(())
        .ok_or_else(|| format!("it does not watch; {}", running.process.log_end()))
}

/// A Lease with this holder, for that many seconds from when it is seen.
pub async fn make_a_lease(cluster: &Cluster, holder: &str, seconds: u32) {
    let leases: Api<Lease> = Api::namespaced(cluster.client.clone(), "kube-system");
    let lease = json!({
        "metadata": { "name": "cloud-controller-manager" },
        "spec": { "holderIdentity": holder, "leaseDurationSeconds": seconds, "leaseTransitions": 1 },
    });
    leases
        .create(&PostParams::default(), &serde_json::from_value(lease).unwrap())
        .await
        .unwrap();
}

/// Removes what earlier deeds left, so that the next begins with nothing.
pub async fn clean(cluster: &Cluster) {
    let of = DeleteParams::default();
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    nodes.delete_collection(&of, &ListParams::default()).await.unwrap();
    let services: Api<Service> = Api::default_namespaced(cluster.client.clone());
    for service in services.list(&ListParams::default()).await.unwrap() {
        let name = service.name_any();
        let finalizers = json!({ "metadata": { "finalizers": null } });
        services
            .patch(&name, &PatchParams::default(), &Patch::Merge(finalizers))
            .await
            .unwrap();
        services.delete(&name, &of).await.unwrap();
    }
    let leases: Api<Lease> = Api::namespaced(cluster.client.clone(), "kube-system");
    leases.delete_collection(&of, &ListParams::default()).await.unwrap();
}
