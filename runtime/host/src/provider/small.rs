//! Clusters, DNS, location and SSH keys of a loaded provider: the model's traits over a component.

use cloudwit_model::{
    Answer, CloudError, DnsScrubber, EnsuredKey, KnownCluster, KnownClusters, Location, MachineLocation, NodeRef,
    Presence, Resolver, SshKey, SshKeys,
};

use crate::call::instance::Subjects;
use crate::metrics::{ItemKind, Operation};
use crate::provider::Provider;

impl KnownClusters for Provider {
    fn known_clusters(&self) -> Answer<'_, Vec<KnownCluster>> {
        Box::pin(async move {
            let begun = self.0.caller.begin(Operation::ListClusters, Subjects::default());
            let mut session = begun.await?;
            let asked = self.0.adapter.known_clusters(&mut session.store);
            let listed = session.call.run(asked).await?;
            Ok(session.call.valid_items(ItemKind::Cluster, listed))
        })
    }
}

impl DnsScrubber for Provider {
    fn scrub_dns<'a>(&'a self, found: &'a Resolver) -> Answer<'a, Resolver> {
        Box::pin(async move {
            let begun = self.0.caller.begin(Operation::ScrubDns, Subjects::default());
            let mut session = begun.await?;
            let asked = self.0.adapter.scrub_dns(&mut session.store, found);
            session.call.run(asked).await
        })
    }
}

impl Location for Provider {
    fn locate<'a>(&'a self, hostname: &'a str) -> Answer<'a, MachineLocation> {
        Box::pin(async move {
            let begun = self.0.caller.begin(Operation::Locate, Subjects::default());
            let mut session = begun.await?;
            let asked = self.0.adapter.locate(&mut session.store, hostname);
            let found = session.call.run(asked).await?;
            // Nothing is known of this Node but its name, so the id has to begin as the provider's ids do.
            let node = NodeRef {
                name: found.node.clone(),
                ..NodeRef::default()
            };
            self.own(&node, Presence::Running(found.instance.clone()))
                .map_err(CloudError::from)?;
            Ok(found)
        })
    }
}

impl SshKeys for Provider {
    fn ensure_ssh_key<'a>(&'a self, key: &'a SshKey, token: Option<&'a str>) -> Answer<'a, EnsuredKey> {
        Box::pin(async move {
            let begun = self.0.caller.begin(Operation::EnsureSshKey, Subjects::default());
            let mut session = begun.await?;
            let asked = self.0.adapter.ensure_ssh_key(&mut session.store, key, token);
            session.call.run(asked).await
        })
    }
}
