//! The provider for vSphere: Nodes that are virtual machines of one or several vCenters, and with NSX their load balancers and routes.
//!
//! | module | what it does |
//! | ------ | ------------ |
//! | [`config`] | the cloud config as upstream writes it, and what it means |
//! | [`vcenter`] | logging in once for many calls; one call; many properties of many objects, page by page; tags |
//! | [`instances`] | Nodes over all vCenters; what counts as evidence that a machine is gone |
//! | [`nsx`] | load balancers and routes |
//! | `volumes` | disks of Cloud Native Storage |

use cloudwit_guest_sdk::config::Tree;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::{gcfg, yaml};

pub mod config;
pub mod instances;
pub mod nsx;
mod table;
pub mod vcenter;
mod volumes;

use config::credentials::Credentials;
use config::settings::Settings;
use config::{Config, simplified};
use vcenter::session::Sessions;

/// The provider, alive for one call.
#[derive(Debug)]
pub struct Vsphere {
    settings: Settings,
    context: Context,
}

impl Provider for Vsphere {
    type Config = Config;

    fn describe(config: Option<&Config>) -> Description {
        let mut description = Description::new("vsphere", env!("CARGO_PKG_VERSION")).prefix(instances::PREFIX);
        let settings = config.map(|config| Settings::of(config, &mut Problems::default()));
        for vcenter in settings.iter().flat_map(|settings| &settings.vcenters) {
            let mut reason = format!("the API of vCenter {}", vcenter.name);
            if let Some(trust) = &vcenter.trust {
                reason.push_str("; the cloud config trusts its certificate by what has to stand in the grant as ");
                reason.push_str(trust);
            }
            let api = HttpWish::for_url(&vcenter.url(), &["GET", "POST"], reason);
            if let Credentials::Secrets { user, password } = &vcenter.credentials {
                for (name, what) in [(user, "name of the user at "), (password, "password of the user at ")] {
                    match description.secrets.iter_mut().find(|secret| secret.name == *name) {
                        Some(known) => known.hosts.extend(api.iter().map(HttpWish::binding)),
                        None => {
                            let reason = format!("{what}{}", vcenter.server);
                            let wish = SecretWish::new(name, &[SecretUse::Placeholder], reason);
                            description = description.secret(wish.only_to(&api));
                        }
                    }
                }
            }
            description = description.http(api);
        }
        if let Some(settings) = settings {
            description = description.disabled_interfaces(&nsx::disabled(settings.nsx.as_ref()));
            if let Some(nsx) = &settings.nsx {
                description = nsx::describe(description, nsx);
            }
        }
        description
    }

    fn validate(config: &Config, problems: &mut Problems) {
        Settings::of(config, problems);
    }

    fn new(config: Config, context: Context) -> Result<Self, Failure> {
        let settings = Settings::of(&config, &mut Problems::default());
        Ok(Self { settings, context })
    }

    /// Logs in to every vCenter, and to NSX where it is needed: a wrong password should be known before a Node is looked up.
    fn probe(&self) -> Result<(), Failure> {
        for vcenter in &self.settings.vcenters {
            let sessions = Sessions::new(vcenter, self.context);
            let alive = sessions.with(|session| sessions.is_alive(session));
            alive.map_err(|failure| failure.context(&format!("vCenter {}", vcenter.name)))?;
        }
        self.probe_nsx()
    }

    fn parse_config(text: &str) -> Result<Tree, Problem> {
        let mut lines = text.trim_start_matches('\u{feff}').lines().map(str::trim_ascii_start);
        let first = lines.find(|line| !line.is_empty() && !line.starts_with(['#', ';']));
        match first.and_then(|line| line.bytes().next()) {
            Some(b'[') => gcfg::parse(text).map(|tree| simplified(config::ini::renamed(tree.value)).into()),
            // JSON is YAML.
            _ => yaml::parse(text).map(|tree| simplified(tree).into()),
        }
    }
}

register_provider!(Vsphere: Instances, LoadBalancers, Routes, Volumes, VolumeExpansion, VolumeListing, VolumeSnapshots, VolumeLabels);

#[cfg(test)]
mod many_tests;
#[cfg(test)]
mod tests;
