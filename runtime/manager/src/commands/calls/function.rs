//! The functions of the contract, as they are called from the command line and from a recording.

use clap::ValueEnum;
use cloudwit_host::Provider;
use cloudwit_model::{
    Cloud as _, CloudError, NewRoute, NodeRef, RouteTokens, Service, TagChange, Tags, Target, VolumeSecrets,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::commands::calls::small::SmallInput;
use crate::commands::calls::volumes::VolumeInput;
use crate::commands::calls::{answer, objects};

/// A function that a component can export, under its name in the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub enum Function {
    /// Who the provider is.
    #[value(name = "info.describe")]
    #[serde(rename = "info.describe")]
    Describe,
    /// What is wrong with its configuration.
    #[value(name = "info.check")]
    #[serde(rename = "info.check")]
    Check,
    /// One cheap authenticated call to the cloud.
    #[value(name = "info.probe")]
    #[serde(rename = "info.probe")]
    Probe,
    /// The machines behind Nodes; needs --node or --nodes.
    #[value(name = "instances.lookup")]
    #[serde(rename = "instances.lookup")]
    Lookup,
    /// The name of a Service's load balancer; needs --service.
    #[value(name = "load-balancers.name")]
    #[serde(rename = "load-balancers.name")]
    BalancerName,
    /// A Service's load balancer; needs --service.
    #[value(name = "load-balancers.get")]
    #[serde(rename = "load-balancers.get")]
    GetBalancer,
    /// Creates or updates a load balancer; needs --service, and the Nodes behind it.
    #[value(name = "load-balancers.ensure")]
    #[serde(rename = "load-balancers.ensure")]
    EnsureBalancer,
    /// Updates the Nodes behind a load balancer; needs --service, and the Nodes.
    #[value(name = "load-balancers.update-targets")]
    #[serde(rename = "load-balancers.update-targets")]
    UpdateTargets,
    /// Deletes a load balancer; needs --service.
    #[value(name = "load-balancers.delete")]
    #[serde(rename = "load-balancers.delete")]
    DeleteBalancer,
    /// The routes of this cluster.
    #[value(name = "routes.list")]
    #[serde(rename = "routes.list")]
    ListRoutes,
    /// Creates and deletes routes; needs --create or --delete.
    #[value(name = "routes.apply")]
    #[serde(rename = "routes.apply")]
    ApplyRoutes,
    /// Gives machines tags; needs --node or --nodes, and --tag.
    #[value(name = "tagging.tag")]
    #[serde(rename = "tagging.tag")]
    Tag,
    /// Takes tags off machines; needs --node or --nodes, and --tag.
    #[value(name = "tagging.untag")]
    #[serde(rename = "tagging.untag")]
    Untag,
    /// What volumes of this cloud are.
    #[value(name = "volumes.describe")]
    #[serde(rename = "volumes.describe")]
    VolumeDriver,
    /// Ids and topology for the plugins on machines; needs --node or --nodes.
    #[value(name = "volumes.nodes")]
    #[serde(rename = "volumes.nodes")]
    VolumeNodes,
    /// Volumes by their ids; needs --id.
    #[value(name = "volumes.get")]
    #[serde(rename = "volumes.get")]
    GetVolumes,
    /// Creates a volume; needs --name.
    #[value(name = "volumes.create")]
    #[serde(rename = "volumes.create")]
    CreateVolume,
    /// Deletes a volume; needs --id.
    #[value(name = "volumes.delete")]
    #[serde(rename = "volumes.delete")]
    DeleteVolume,
    /// Attaches volumes to a machine; needs --id and --node-id.
    #[value(name = "volumes.attach")]
    #[serde(rename = "volumes.attach")]
    AttachVolumes,
    /// Detaches volumes from a machine; needs --id and --node-id.
    #[value(name = "volumes.detach")]
    #[serde(rename = "volumes.detach")]
    DetachVolumes,
    /// Lets a volume grow; needs --id and --size.
    #[value(name = "volume-expansion.expand")]
    #[serde(rename = "volume-expansion.expand")]
    ExpandVolume,
    /// The volumes of this cluster.
    #[value(name = "volume-listing.list")]
    #[serde(rename = "volume-listing.list")]
    ListVolumes,
    /// Makes a snapshot of a volume; needs --name and --id.
    #[value(name = "volume-snapshots.create")]
    #[serde(rename = "volume-snapshots.create")]
    CreateSnapshot,
    /// Deletes a snapshot; needs --id.
    #[value(name = "volume-snapshots.delete")]
    #[serde(rename = "volume-snapshots.delete")]
    DeleteSnapshot,
    /// Snapshots by their ids; needs --id.
    #[value(name = "volume-snapshots.get")]
    #[serde(rename = "volume-snapshots.get")]
    GetSnapshots,
    /// The snapshots of this cluster, or of the volume --id.
    #[value(name = "volume-snapshots.list")]
    #[serde(rename = "volume-snapshots.list")]
    ListSnapshots,
    /// Changes what --parameter names of a volume; needs --id.
    #[value(name = "volume-modification.modify")]
    #[serde(rename = "volume-modification.modify")]
    ModifyVolume,
    /// How much room there is for volumes.
    #[value(name = "volume-capacity.get")]
    #[serde(rename = "volume-capacity.get")]
    VolumeCapacity,
    /// The sources of PersistentVolumes that it has labels for.
    #[value(name = "volume-labels.sources")]
    #[serde(rename = "volume-labels.sources")]
    LabelSources,
    /// Labels of volumes as PersistentVolumes name them; needs --source and --id.
    #[value(name = "volume-labels.get")]
    #[serde(rename = "volume-labels.get")]
    VolumeLabels,
    /// The clusters that the cloud itself manages.
    #[value(name = "clusters.list")]
    #[serde(rename = "clusters.list")]
    ListClusters,
    /// What Pods should use of --nameserver and --search.
    #[value(name = "dns.scrub")]
    #[serde(rename = "dns.scrub")]
    ScrubDns,
    /// The location of the calling machine; needs --hostname.
    #[value(name = "location.get")]
    #[serde(rename = "location.get")]
    Locate,
    /// Gives all machines a key; needs --user and --public-key.
    #[value(name = "ssh-keys.ensure")]
    #[serde(rename = "ssh-keys.ensure")]
    EnsureSshKey,
}

impl Function {
    /// Its name in the contract.
    pub fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    fn is_about_a_service(self) -> bool {
        matches!(
            self,
            Self::BalancerName | Self::GetBalancer | Self::EnsureBalancer | Self::UpdateTargets | Self::DeleteBalancer
        )
    }
}

/// A function with what it is called with.
#[derive(Debug, Clone)]
pub struct FunctionCall {
    /// The function.
    pub function: Function,
    /// The Nodes that are looked up, or behind the load balancer.
    pub nodes: Vec<NodeRef>,
    /// The manifest of the Service.
    pub service: Option<Value>,
    /// Of the `pending` answer that this call continues from.
    pub token: Option<String>,
    /// Routes to create: destination and Node.
    pub create: Vec<(String, NodeRef)>,
    /// Destinations of routes to delete.
    pub delete: Vec<String>,
    /// Tags of machines.
    pub tags: Tags,
    /// What a function about volumes is called with.
    pub volume: VolumeInput,
    /// The secrets of the request about a volume.
    pub secrets: VolumeSecrets,
    /// What a function that is alone in its interface is called with.
    pub small: SmallInput,
}

impl FunctionCall {
    /// Missing arguments; empty when it can be called.
    pub fn mistakes(&self) -> Vec<String> {
        let name = self.function.name();
        let mut mistakes = Vec::new();
        let tags = matches!(self.function, Function::Tag | Function::Untag);
        let about_nodes = tags || matches!(self.function, Function::Lookup | Function::VolumeNodes);
        if about_nodes && self.nodes.is_empty() {
            mistakes.push(format!("{name} needs Nodes; add --node=NAME or --nodes=FILE"));
        }
        if self.function.is_about_a_service() && self.service.is_none() {
            mistakes.push(format!("{name} needs a Service; add --service=FILE with its manifest"));
        }
        if self.function == Function::ApplyRoutes && self.create.is_empty() && self.delete.is_empty() {
            mistakes.push(format!("{name} needs changes; add --create=CIDR=NODE or --delete=CIDR"));
        }
        if tags && self.tags.is_empty() {
            mistakes.push(format!("{name} needs tags; add --tag=KEY=VALUE"));
        }
        mistakes.extend(self.volume.mistakes(self.function));
        mistakes.extend(self.small.mistakes(self.function));
        mistakes
    }

    /// The Service as a provider sees it.
    pub fn service(&self) -> anyhow::Result<Option<Service>> {
        self.service.clone().map(objects::service).transpose()
    }

    /// Calls the function. The answer as JSON, or why there is none. The outer error: the manifest makes no sense.
    pub async fn ask(&self, provider: &Provider) -> anyhow::Result<Result<Value, CloudError>> {
        let service = self.service()?.unwrap_or_default();
        Ok(self.call(provider, service).await)
    }

    async fn call(&self, provider: &Provider, service: Service) -> Result<Value, CloudError> {
        let token = self.token.as_deref();
        Ok(match self.function {
            Function::Describe => {
                let description = provider.description();
                json!({
                    "name": description.name, "version": description.version,
                    "providerIDPrefixes": description.provider_id_prefixes,
                })
            }
            Function::Check => {
                let problems = provider.check().await?;
                let one = |problem: &cloudwit_host::Problem| {
                    let severity = if problem.is_error() { "error" } else { "warning" };
                    json!({"at": problem.at, "severity": severity, "message": problem.message})
                };
                problems.iter().map(one).collect()
            }
            Function::Probe => provider.probe().await.map(|()| json!({}))?,
            Function::Lookup => answer::lookup(&self.nodes, &provider.lookup(&self.nodes).await?),
            Function::BalancerName => provider.balancer_name(&service).await?.into(),
            Function::GetBalancer => {
                let balancer = provider.get_balancer(&service).await?;
                balancer.as_ref().map_or(Value::Null, answer::balancer)
            }
            Function::EnsureBalancer => {
                answer::balancer(&provider.ensure_balancer(&service, &self.targets(), token).await?)
            }
            Function::UpdateTargets => {
                answer::annotations(&provider.update_targets(&service, &self.targets(), token).await?)
            }
            Function::DeleteBalancer => answer::annotations(&provider.delete_balancer(&service, token).await?),
            Function::ListRoutes => answer::routes(&provider.list_routes().await?),
            Function::ApplyRoutes => self.apply_routes(provider).await?,
            Function::Tag => answer::changes(&provider.change_tags(TagChange::Add, &self.nodes, &self.tags).await?),
            Function::Untag => {
                answer::changes(&provider.change_tags(TagChange::Remove, &self.nodes, &self.tags).await?)
            }
            other => {
                if let Some(answer) = self.small.call(other, provider, token).await? {
                    return Ok(answer);
                }
                let called = self.volume.call(other, provider, &self.nodes, token, &self.secrets);
                called.await?.unwrap_or_default()
            }
        })
    }

    fn targets(&self) -> Vec<Target> {
        let nodes = self.nodes.iter().cloned();
        nodes.map(|node| Target { node, ready: true }).collect()
    }

    /// Routes are deleted as they are listed, so this lists them first.
    async fn apply_routes(&self, provider: &Provider) -> Result<Value, CloudError> {
        let listed = match self.delete.is_empty() {
            true => Vec::new(),
            false => provider.list_routes().await?,
        };
        let is_meant = |destination: &str| self.delete.iter().any(|meant| meant == destination);
        let delete: Vec<_> = listed
            .into_iter()
            .filter(|route| is_meant(&route.destination))
            .collect();
        let create = self.create.iter().map(|(destination, node)| NewRoute {
            name_hint: node.name.clone(),
            destination: destination.clone(),
            node: node.clone(),
        });
        let create: Vec<_> = create.collect();
        let outcome = provider.apply_routes(&create, &delete, RouteTokens::NONE).await?;
        Ok(json!({"created": answer::changes(&outcome.created), "deleted": answer::changes(&outcome.deleted)}))
    }
}
