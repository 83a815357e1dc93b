//! One trait for each of these interfaces.

use crate::small::*;
use crate::{Context, Failure, Provider};

/// Clusters that the cloud itself manages, such as those of its managed Kubernetes. Export `clusters` of the contract.
pub trait Clusters: Provider {
    /// All that the configuration can mean, at most 1,000.
    ///
    /// # Errors
    /// The cloud's error.
    fn clusters(&self) -> Result<Vec<KnownCluster>, Failure>;
}

/// Which of a machine's name servers and search domains Pods on it should use. Export `dns` of the contract.
pub trait Dns: Provider {
    /// What is left of `found`, in its order; what is unknown stays. Called on a machine, without secrets.
    ///
    /// # Errors
    /// What prevents the answer.
    fn scrub(config: Self::Config, context: Context, found: Resolver) -> Result<Resolver, Failure>;
}

/// The calling machine. Export `location` of the contract.
pub trait Location: Provider {
    /// The machine that this call runs on, whose host name is `hostname`, from the cloud's metadata service: its Node's name as
    /// [`Instances`](crate::Instances) finds it, its provider id, its zone. Called on a machine, without secrets.
    ///
    /// # Errors
    /// `denied` when the metadata service is not granted; else its error.
    fn locate(config: Self::Config, context: Context, hostname: &str) -> Result<MachineLocation, Failure>;
}

/// Public keys with which one logs in to all machines. Export `ssh-keys` of the contract, where one change reaches the machines there are and those to come.
pub trait SshKeys: Provider {
    /// Ensures that this user can log in with this key on all machines. Keys that are there stay. Calls for one provider never overlap; others may change the
    /// same thing meanwhile, so answer `conflict` rather than take keys away that they added.
    ///
    /// # Errors
    /// `pending` while the cloud works on it; else the cloud's error.
    fn ensure_ssh_key(&self, key: &SshKey, token: Option<&str>) -> Result<EnsuredKey, Failure>;
}
