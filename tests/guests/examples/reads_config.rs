//! Reads its cloud config in whatever format it is written and tells what it found.

use std::collections::BTreeMap;

use cloudwit_guest_sdk::config::Tree;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::types::Problem;
use serde::Deserialize;

#[derive(Debug, Deserialize)]
struct Config {
    global: Global,
    #[serde(default)]
    virtualcenter: BTreeMap<String, Center>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Global {
    auth_url: String,
    #[serde(default)]
    insecure_flag: bool,
}

#[derive(Debug, Deserialize)]
struct Center {
    port: u16,
    #[serde(default)]
    datacenters: Vec<String>,
}

struct Reader(Config);

impl Provider for Reader {
    type Config = Config;

    fn describe(_: Option<&Config>) -> Description {
        Description::new("test", "0.1.0").prefix("test://")
    }

    fn parse_config(text: &str) -> Result<Tree, Problem> {
        cloudwit_guest_sdk::config::parse_any(text)
    }

    fn new(config: Config, _: Context) -> Result<Self, Failure> {
        Ok(Self(config))
    }

    fn probe(&self) -> Result<(), Failure> {
        let Config { global, virtualcenter } = &self.0;
        let centers = virtualcenter
            .iter()
            .map(|(name, center)| format!("{name}:{} {}", center.port, center.datacenters.join("+")))
            .collect::<Vec<_>>();
        let told = format!("{} {} {}", global.auth_url, global.insecure_flag, centers.join(", "));
        Err(Failure::other(told))
    }
}

impl Instances for Reader {
    fn lookup(&self, nodes: &[NodeRef]) -> Result<Vec<Result<Presence, Failure>>, Failure> {
        Ok(nodes.iter().map(|_| Err(Failure::not_found("none"))).collect())
    }
}

register_provider!(Reader: Instances);
