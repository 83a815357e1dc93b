//! NSX: load balancers for Services and routes to Pod ranges, by its Policy API. Both are off unless the cloud config has their sections.
//!
//! ```text
//!   settings.rs              the cloud config of NSX
//!   auth.rs                  authentication: session, token
//!   api.rs, errors.rs        one call: JSON, pages, failures
//!   object.rs                objects as JSON: tags, and whether they are as desired
//!   realized.rs              what became of an intent
//!      |
//!   routes.rs   balancers/
//! ```
//!
//! Everything is found by upstream's tags, so that what upstream's controller made is this one's, and the other way round.

pub mod api;
pub mod auth;
mod balancers;
mod errors;
mod object;
mod realized;
mod routes;
pub mod settings;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use cloudwit_guest_sdk::prelude::*;

use crate::Vsphere;
use api::Nsx;
use auth::Auth;
use settings::{NsxSettings, Reference};

pub use balancers::annotations::TABLE as ANNOTATIONS;

/// Interfaces that these settings do not switch on, by their names in the contract.
pub fn disabled(settings: Option<&NsxSettings>) -> Vec<&'static str> {
    let mut off = Vec::new();
    if settings.is_none_or(|nsx| nsx.balancers.is_none()) {
        off.push("load-balancers");
    }
    if settings.is_none_or(|nsx| nsx.gateway.is_none()) {
        off.push("routes");
    }
    off
}

/// Its grant requests.
pub fn describe(mut description: Description, settings: &NsxSettings) -> Description {
    let mut reason = String::from("the NSX manager");
    if let Some(trust) = &settings.trust {
        reason.push_str("; the cloud config trusts its certificate by what has to stand in the grant as ");
        reason.push_str(trust);
    }
    if let Some(grant) = settings.auth.grant() {
        reason.push_str("; its files of a client certificate are read by Cloudwit, from the grant: ");
        reason.push_str(&grant);
    }
    let methods: &[&str] = match settings.auth {
        // There is no login.
        Auth::Certificate { .. } => &["GET", "PUT", "PATCH", "DELETE"],
        _ => &["GET", "POST", "PUT", "PATCH", "DELETE"],
    };
    let api = HttpWish::for_url(&settings.url, methods, reason);
    let tokens = settings.auth.token_url();
    let tokens = tokens.and_then(|url| HttpWish::for_url(url, &["POST"], "access tokens of VMware Cloud"));
    let sent_to = if tokens.is_some() { &tokens } else { &api };
    for (name, what) in settings.auth.secrets() {
        description = description.secret(SecretWish::new(*name, &[SecretUse::Placeholder], *what).only_to(sent_to));
    }
    description.http(api).http(tokens)
}

impl Vsphere {
    /// The way to NSX, and the part of the settings that is needed; left to another controller where it is not there.
    fn nsx<'a, T>(&'a self, part: fn(&'a NsxSettings) -> Option<T>, sections: &str) -> Result<(Nsx<'a>, T), Failure> {
        let settings = self.settings.nsx.as_ref();
        let found = settings.and_then(|settings| Some((Nsx::new(settings, self.context), part(settings)?)));
        found.ok_or_else(|| {
            let text = format!("the cloud config has no section {sections}: NSX is not asked for them");
            Failure::implemented_elsewhere(text)
        })
    }

    /// Whether the manager accepts the credentials, and has what the cloud config names.
    pub(crate) fn probe_nsx(&self) -> Result<(), Failure> {
        let Some(settings) = &self.settings.nsx else {
            return Ok(());
        };
        let nsx = Nsx::new(settings, self.context);
        if let Some(gateway) = &settings.gateway {
            nsx.get(gateway)?;
        }
        let classes = settings
            .balancers
            .iter()
            .flat_map(|balancers| balancers.classes.values());
        for class in classes {
            balancers::names::pool_id(&nsx, &class.pool)?;
            for (protocol, profile) in [(Protocol::Tcp, &class.tcp), (Protocol::Udp, &class.udp)] {
                match profile {
                    Reference::Name(_) => drop(balancers::names::profile_path(&nsx, protocol, profile)?),
                    Reference::Exact(path) => drop(nsx.get(path)?),
                }
            }
        }
        Ok(())
    }
}
