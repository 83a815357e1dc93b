//! The layer between the component's exports and these traits, as in `register`.

use crate::bindings::{clusters, dns, location, ssh_keys};
use crate::register::{configured, start};
use crate::small::*;
use crate::{Context, Failure};

use clusters::exports::cloudwit::provider::clusters::Guest as ClustersGuest;
use dns::exports::cloudwit::provider::dns::Guest as DnsGuest;
use location::exports::cloudwit::provider::location::Guest as LocationGuest;
use ssh_keys::exports::cloudwit::provider::ssh_keys::Guest as SshKeysGuest;

impl<P: Clusters> ClustersGuest for P {
    fn list() -> Result<Vec<KnownCluster>, Failure> {
        start::<P>()?.clusters()
    }
}

impl<P: Dns> DnsGuest for P {
    fn scrub(found: Resolver) -> Result<Resolver, Failure> {
        <P as Dns>::scrub(configured::<P>()?, Context::new(), found)
    }
}

impl<P: Location> LocationGuest for P {
    fn get(hostname: String) -> Result<MachineLocation, Failure> {
        P::locate(configured::<P>()?, Context::new(), &hostname)
    }
}

impl<P: SshKeys> SshKeysGuest for P {
    fn ensure(key: SshKey, token: Option<String>) -> Result<EnsuredKey, Failure> {
        start::<P>()?.ensure_ssh_key(&key, token.as_deref())
    }
}
