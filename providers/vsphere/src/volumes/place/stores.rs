//! Datastores of one vCenter.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::xml::Element;

use crate::config::settings::Categories;
use crate::instances::machine::KIND;
use crate::instances::zones::Zone;
use crate::table::Table;
use crate::vcenter::properties::{Along, Object, Query, retrieve};
use crate::vcenter::soap::Reference;
use crate::volumes::cns::Cns;
use crate::volumes::place::{zones, zones_of};

/// Datastores in one page, each with a line for each of its hosts.
const PAGE: u32 = 50;

/// Machines in one page, each with the host it runs on.
const MACHINES: u32 = 500;

/// How long it is kept where datastores are: for what is read of volumes, not for where new ones go.
const KEPT: Duration = Duration::from_secs(5 * 60);

/// A datastore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Store {
    /// Its managed object.
    pub reference: Reference,
    /// Its name.
    pub name: String,
    /// Its URL, `ds:///vmfs/volumes/UUID/`.
    pub url: String,
    /// Whether it is accessible and not in maintenance.
    pub is_usable: bool,
    /// Whether every host that counts has it.
    pub is_shared: bool,
    /// The zones whose hosts all have it.
    pub zones: Vec<Zone>,
}

impl Store {
    /// Whether this is its URL, with the slash at its end or without, or its name.
    pub(crate) fn is_named(&self, wanted: &str) -> bool {
        let wanted = wanted.trim();
        self.name == wanted || self.url.trim_end_matches('/') == wanted.trim_end_matches('/')
    }
}

/// A datastore as it is read, and the hosts that can write to it.
type Mounted = (Store, BTreeSet<String>);

fn read(object: Object<'_>) -> Option<Mounted> {
    let text = |path| object.text(path).unwrap_or_default().to_owned();
    let mode = text("summary.maintenanceMode");
    let hosts = object.value("host").map(hosts).unwrap_or_default();
    let store = Store {
        reference: object.reference()?,
        name: text("name"),
        url: text("summary.url"),
        is_usable: text("summary.accessible") == "true" && (mode.is_empty() || mode == "normal"),
        is_shared: false,
        zones: Vec::new(),
    };
    Some((store, hosts))
}

/// Hosts that can write to it. One that is down counts: it comes back.
fn hosts(mounts: &Element) -> BTreeSet<String> {
    let can_write = |mount: &&Element| {
        let info = |name| mount.at(&["mountInfo", name]).map(Element::own_text);
        info("accessMode") != Some("readOnly") && info("mounted") != Some("false")
    };
    let mounts = mounts.children("DatastoreHostMount").filter(can_write);
    mounts
        .filter_map(|mount| mount.text("key"))
        .map(str::to_owned)
        .collect()
}

impl Cns<'_> {
    /// All datastores of the parts of the inventory that count, with their zones.
    ///
    /// # Errors
    /// Why there is no answer.
    pub(crate) fn stores(&self, categories: Option<&Categories>) -> Result<Vec<Store>, Failure> {
        const PATHS: &[&str] = &[
            "name",
            "summary.url",
            "summary.accessible",
            "summary.maintenanceMode",
            "host",
        ];
        let mut mounted: Vec<Mounted> = Vec::new();
        self.sessions.with(|session| {
            mounted.clear();
            let query = Query {
                properties: &[("Datastore", PATHS)],
                from: &session.views,
                along: Along::Datastores,
                page: PAGE,
            };
            retrieve(&self.sessions, session, &query, &mut |object| {
                mounted.extend(read(object))
            })
        })?;
        let all: BTreeSet<String> = mounted.iter().flat_map(|(_, hosts)| hosts.clone()).collect();
        let zones = match categories {
            Some(categories) => zones::of_hosts(self, categories, &all)?,
            None => Vec::new(),
        };
        let mut counting = match categories {
            Some(_) => BTreeSet::new(),
            None => self.hosts_of_machines()?,
        };
        if counting.is_empty() {
            counting = all;
        }
        let stores = mounted.into_iter().map(|(store, hosts)| Store {
            is_shared: counting.is_subset(&hosts),
            zones: zones_of(&hosts, &zones),
            ..store
        });
        let stores: Vec<Store> = stores.collect();
        self.keep(&stores);
        Ok(stores)
    }

    /// The hosts that run the machines of Nodes that were looked up; empty where that is not known.
    fn hosts_of_machines(&self) -> Result<BTreeSet<String>, Failure> {
        let machines = crate::instances::remembered::Remembered::new(self.context.state(), &self.vcenter.name).all();
        let mut hosts = BTreeSet::new();
        self.sessions.with(|session| {
            hosts.clear();
            let query = Query {
                properties: &[(KIND, &["runtime.host"])],
                from: &machines,
                along: Along::These,
                page: MACHINES,
            };
            retrieve(&self.sessions, session, &query, &mut |object| {
                hosts.extend(object.refers("runtime.host").map(|host| host.value));
            })
        })?;
        Ok(hosts)
    }

    fn key(&self) -> String {
        format!("stores/{}", self.vcenter.name)
    }

    fn keep(&self, stores: &[Store]) {
        let mut table = Table::default();
        for store in stores {
            let zones = store.zones.iter().flat_map(|(zone, region)| [zone.as_str(), region]);
            let values: Vec<&str> = [store.reference.value.as_str()].into_iter().chain(zones).collect();
            table.set(store.url.trim_end_matches('/'), &values);
        }
        table.keep(&self.context.state(), &self.key(), KEPT);
    }

    /// The datastores with these URLs, and the zones they are in. One that this user may not see is left out.
    ///
    /// # Errors
    /// Why there is no answer.
    pub(crate) fn located(
        &self,
        urls: &BTreeSet<&str>,
        categories: Option<&Categories>,
    ) -> Result<BTreeMap<String, (Reference, Vec<Zone>)>, Failure> {
        let read = |table: &Table| {
            let mut located = BTreeMap::new();
            for url in urls {
                let values = table.get(url.trim_end_matches('/'));
                let Some((store, zones)) = values.as_ref().and_then(|values| values.split_first()) else {
                    continue;
                };
                let zones = zones.chunks_exact(2).filter_map(|pair| match pair {
                    [zone, region] => Some(((*zone).to_owned(), (*region).to_owned())),
                    _ => None,
                });
                let located_at = (Reference::new("Datastore", store), zones.collect());
                located.insert((*url).to_owned(), located_at);
            }
            located
        };
        let kept = read(&Table::kept(&self.context.state(), &self.key()));
        if kept.len() == urls.len() {
            return Ok(kept);
        }
        self.stores(categories)?;
        Ok(read(&Table::kept(&self.context.state(), &self.key())))
    }
}
