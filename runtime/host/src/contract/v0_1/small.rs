//! Calls of the interfaces with one function: `clusters`, `dns`, `location`, `ssh-keys`.

use cloudwit_model::{Abilities, EnsuredKey, KnownCluster, MachineLocation, Resolver, SshKey};
use wasmtime::Store;
use wasmtime::component::{Instance, InstancePre};

use crate::call::answer::Screen;
use crate::call::instance::CallState;
use crate::call::walk::Walk;
use crate::contract::adapter::{CallError, Listed, Reply};
use crate::contract::small_adapter::SmallAdapter;
use crate::contract::v0_1::generated::exports::cloudwit::provider as exports;
use crate::contract::v0_1::{V0_1, converted, small_answers as answers};

/// The places of these functions that a component exports.
pub(super) struct SmallExports {
    clusters: Option<exports::clusters::GuestIndices>,
    dns: Option<exports::dns::GuestIndices>,
    location: Option<exports::location::GuestIndices>,
    ssh_keys: Option<exports::ssh_keys::GuestIndices>,
}

/// The function of one interface, where it is exported; the error names the interface.
macro_rules! found {
    ($pre:ident, $has:expr, $module:ident, $name:literal) => {
        $has.then(|| exports::$module::GuestIndices::new($pre).map_err(|error| ($name, error)))
            .transpose()?
    };
}

/// An instance of one interface, or that it is not exported.
macro_rules! guest {
    ($self:ident, $store:ident, $field:ident, $name:literal) => {{
        let found = $self.small.$field.as_ref().ok_or(CallError::NotExported($name))?;
        let instance = $self.instantiate($store).await?;
        found.load(&mut *$store, &instance)?
    }};
}

impl SmallExports {
    pub fn find(pre: &InstancePre<CallState>, abilities: Abilities) -> Result<Self, (&'static str, wasmtime::Error)> {
        Ok(Self {
            clusters: found!(pre, abilities.clusters, clusters, "clusters"),
            dns: found!(pre, abilities.dns, dns, "dns"),
            location: found!(pre, abilities.location, location, "location"),
            ssh_keys: found!(pre, abilities.ssh_keys, ssh_keys, "ssh-keys"),
        })
    }

    /// Adds what is exported to the other abilities.
    pub fn add_to(&self, abilities: Abilities) -> Abilities {
        Abilities {
            clusters: self.clusters.is_some(),
            dns: self.dns.is_some(),
            location: self.location.is_some(),
            ssh_keys: self.ssh_keys.is_some(),
            ..abilities
        }
    }

    /// Looks the types of all functions up in an instance, by interface.
    pub fn loaded(
        &self,
        store: &mut Store<CallState>,
        instance: &Instance,
    ) -> [(&'static str, Option<wasmtime::Result<()>>); 4] {
        macro_rules! load {
            ($field:ident) => {
                self.$field
                    .as_ref()
                    .map(|found| found.load(&mut *store, instance).map(drop))
            };
        }
        [
            ("clusters", load!(clusters)),
            ("dns", load!(dns)),
            ("location", load!(location)),
            ("ssh-keys", load!(ssh_keys)),
        ]
    }
}

impl SmallAdapter for V0_1 {
    fn known_clusters<'a>(&'a self, store: &'a mut Store<CallState>) -> Reply<'a, Listed<KnownCluster>> {
        Box::pin(async move {
            let (redactor, mut walk) = (store.data().log.redactor(), Walk::default());
            let (screen, guest) = (Screen(&redactor), guest!(self, store, clusters, "clusters"));
            let result = guest.call_list(store).await?;
            converted(screen, result, |found| answers::clusters(screen, &mut walk, found)).await
        })
    }

    fn scrub_dns<'a>(&'a self, store: &'a mut Store<CallState>, found: &'a Resolver) -> Reply<'a, Resolver> {
        Box::pin(async move {
            let redactor = store.data().log.redactor();
            let (screen, guest) = (Screen(&redactor), guest!(self, store, dns, "dns"));
            let asked = exports::dns::Resolver {
                nameservers: found.nameservers.clone(),
                searches: found.searches.clone(),
                extra: Vec::new(),
            };
            let result = guest.call_scrub(store, &asked).await?;
            converted(screen, result, async |scrubbed| answers::resolver(screen, scrubbed)).await
        })
    }

    fn locate<'a>(&'a self, store: &'a mut Store<CallState>, hostname: &'a str) -> Reply<'a, MachineLocation> {
        Box::pin(async move {
            let redactor = store.data().log.redactor();
            let (screen, guest) = (Screen(&redactor), guest!(self, store, location, "location"));
            let result = guest.call_get(store, hostname).await?;
            converted(screen, result, async |machine| answers::machine(screen, machine)).await
        })
    }

    fn ensure_ssh_key<'a>(
        &'a self,
        store: &'a mut Store<CallState>,
        key: &'a SshKey,
        token: Option<&'a str>,
    ) -> Reply<'a, EnsuredKey> {
        Box::pin(async move {
            let redactor = store.data().log.redactor();
            let (screen, guest) = (Screen(&redactor), guest!(self, store, ssh_keys, "ssh-keys"));
            let asked = exports::ssh_keys::SshKey {
                user: key.user().to_owned(),
                public_key: key.public_key().to_owned(),
                extra: Vec::new(),
            };
            let result = guest.call_ensure(store, &asked, token).await?;
            converted(screen, result, async |ensured| {
                Ok(match ensured {
                    exports::ssh_keys::Ensured::Added => EnsuredKey::Added,
                    exports::ssh_keys::Ensured::Present => EnsuredKey::Present,
                })
            })
            .await
        })
    }
}
