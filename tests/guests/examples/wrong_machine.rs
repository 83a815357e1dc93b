//! Tells a machine who it is wrongly, as its host name says, and how to resolve names and which clusters there are as no answer may be.

use cloudwit_guest_sdk::prelude::*;

struct Guest;

impl Provider for Guest {
    type Config = NoConfig;

    fn describe(_: Option<&NoConfig>) -> Description {
        Description::new(module_path!(), env!("CARGO_PKG_VERSION")).prefix("wrong://")
    }

    fn new(_: NoConfig, _: Context) -> Result<Self, Failure> {
        Ok(Self)
    }

    fn probe(&self) -> Result<(), Failure> {
        Ok(())
    }
}

impl Location for Guest {
    fn locate(_: NoConfig, _: Context, hostname: &str) -> Result<MachineLocation, Failure> {
        let good = MachineLocation::new("node-1", Instance::new("wrong://1"));
        Ok(match hostname {
            "shell" => MachineLocation::new("node-1;reboot", good.instance),
            "foreign" => MachineLocation::new("node-1", Instance::new("aws:///a/i-1")),
            "lines" => MachineLocation::new("node-1", Instance::new("wrong://1\nX=1")),
            "flood" => {
                let mut flood = good;
                flood.instance.zone = Some("z".repeat(10_000));
                flood
            }
            "traps" => panic!("as it was told"),
            _ => good,
        })
    }
}

impl Dns for Guest {
    fn scrub(_: NoConfig, _: Context, mut found: Resolver) -> Result<Resolver, Failure> {
        found.nameservers.push("10.0.0.2\noptions rotate".into());
        Ok(found)
    }
}

impl Clusters for Guest {
    fn clusters(&self) -> Result<Vec<KnownCluster>, Failure> {
        Ok(vec![KnownCluster::new("a"); 1_001])
    }
}

impl SshKeys for Guest {
    fn ensure_ssh_key(&self, key: &SshKey, token: Option<&str>) -> Result<EnsuredKey, Failure> {
        match token {
            Some(_) => Ok(EnsuredKey::Added),
            None => Err(Failure::pending(std::time::Duration::ZERO, key.user.clone(), "later")),
        }
    }
}

register_provider!(Guest: Location, Dns, Clusters, SshKeys);
