//! Storage policies by name: the service at `/pbm` (namespace `urn:pbm`), which takes the session of vim25 from the header.

use std::time::Duration;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::xml::{Element, escape};

use crate::table::Table;
use crate::vcenter::session::Session;
use crate::vcenter::soap::{Answer, CallError, Reference, Service};
use crate::volumes::cns::Cns;

/// How long names are kept.
const KEPT: Duration = Duration::from_secs(5 * 60);

/// Policies in one request.
const PAGE: usize = 100;

fn call(cns: &Cns<'_>, session: &Session, method: &str, this: &Reference, what: &str) -> Result<Answer, CallError> {
    let cookie = session.cookie.split_once('=').map_or("", |(_, value)| value);
    let service = Service {
        path: "/pbm",
        namespace: "pbm",
        action: "pbm/2.0",
        session: Some(cookie.trim_matches('"')),
        again: true,
    };
    cns.sessions.call_service(&service, session, method, this, what)
}

impl Cns<'_> {
    /// The id of the storage policy with this name.
    ///
    /// # Errors
    /// `invalid` with the parameter where there is none; why there is no answer.
    pub(crate) fn policy(&self, name: &str) -> Result<String, Failure> {
        let (key, state) = (format!("policies/{}", self.vcenter.name), self.context.state());
        let known = |table: &Table| table.get(name).and_then(|ids| ids.first().map(|id| (*id).to_owned()));
        if let Some(id) = known(&Table::kept(&state, &key)) {
            return Ok(id);
        }
        let policies = self
            .policies()
            .map_err(|failure| failure.context("reading storage policies"))?;
        let mut table = Table::default();
        for (name, id) in &policies {
            table.set(name, &[id]);
        }
        table.keep(&state, &key, KEPT);
        let found = policies.into_iter().find(|(known, _)| known == name);
        found.map(|(_, id)| id).ok_or_else(|| {
            Failure::invalid(format!(
                "parameter storagepolicyname: vCenter {} has no storage policy \"{name}\" that this user may see",
                self.vcenter.name
            ))
        })
    }

    /// Names and ids of all policies.
    fn policies(&self) -> Result<Vec<(String, String)>, Failure> {
        let instance = Reference::new("PbmServiceInstance", "ServiceInstance");
        self.sessions.with(|session| {
            let content = call(self, session, "PbmRetrieveServiceContent", &instance, "")?;
            let manager = content.value().and_then(|content| content.child("profileManager"));
            let manager = manager
                .and_then(Reference::of)
                .ok_or_else(|| Failure::other("the server's answer lacks profileManager"))?;
            let storage = "<resourceType><resourceType>STORAGE</resourceType></resourceType><profileCategory>REQUIREMENT</profileCategory>";
            let listed = call(self, session, "PbmQueryProfile", &manager, storage)?;
            let ids: Vec<&str> = listed.values().filter_map(|id| id.text("uniqueId")).collect();
            let mut policies = Vec::new();
            for page in ids.chunks(PAGE) {
                let written = |id: &&str| format!("<profileIds><uniqueId>{}</uniqueId></profileIds>", escape(id));
                let what: String = page.iter().map(written).collect();
                let read = call(self, session, "PbmRetrieveContent", &manager, &what)?;
                policies.extend(read.values().filter_map(policy));
            }
            Ok(policies)
        })
    }
}

fn policy(profile: &Element) -> Option<(String, String)> {
    let id = profile.at(&["profileId", "uniqueId"])?.own_text();
    Some((profile.text("name")?.into(), id.into()))
}
