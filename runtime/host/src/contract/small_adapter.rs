//! Adapter of the interfaces with one function: `clusters`, `dns`, `location`, `ssh-keys`.

use cloudwit_model::{EnsuredKey, KnownCluster, MachineLocation, Resolver, SshKey};
use wasmtime::Store;

use crate::call::instance::CallState;
use crate::contract::adapter::{Listed, Reply};

/// The calls of these interfaces. A component that does not export one answers
/// [`CallError::NotExported`](crate::contract::adapter::CallError::NotExported).
pub(crate) trait SmallAdapter {
    fn known_clusters<'a>(&'a self, store: &'a mut Store<CallState>) -> Reply<'a, Listed<KnownCluster>>;
    fn scrub_dns<'a>(&'a self, store: &'a mut Store<CallState>, found: &'a Resolver) -> Reply<'a, Resolver>;
    fn locate<'a>(&'a self, store: &'a mut Store<CallState>, hostname: &'a str) -> Reply<'a, MachineLocation>;
    fn ensure_ssh_key<'a>(
        &'a self,
        store: &'a mut Store<CallState>,
        key: &'a SshKey,
        token: Option<&'a str>,
    ) -> Reply<'a, EnsuredKey>;
}
