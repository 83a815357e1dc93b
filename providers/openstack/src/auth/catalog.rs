//! Keystone's catalog: where the services are.
//!
//! An endpoint is taken by its type, the configured interface and the region. What is kept of a catalog is five URLs.

use cloudwit_guest_sdk::prelude::*;
use serde_json::Value;

use crate::api::wire::Fields;

/// The services that are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoint {
    /// Nova; paths begin behind `/v2.1`.
    Compute,
    /// Neutron; paths begin with `/v2.0`.
    Network,
    /// Octavia; paths begin with `/v2.0/lbaas`, and `/` lists the versions.
    LoadBalancer,
    /// Barbican; paths begin with `/v1`.
    KeyManager,
    /// Cinder; paths begin behind `/v3`, or behind the project that some catalogs have there.
    BlockStorage,
}

impl Endpoint {
    const ALL: [Self; 5] = [
        Self::Compute,
        Self::Network,
        Self::LoadBalancer,
        Self::KeyManager,
        Self::BlockStorage,
    ];

    /// The service's type in the catalog.
    pub fn service_type(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Network => "network",
            Self::LoadBalancer => "load-balancer",
            Self::KeyManager => "key-manager",
            Self::BlockStorage => "block-storage",
        }
    }

    /// Its types in catalogs, the official one first (service-types-authority, aliases).
    fn types(self) -> &'static [&'static str] {
        match self {
            Self::Compute => &["compute"],
            Self::Network => &["network"],
            Self::LoadBalancer => &["load-balancer"],
            Self::KeyManager => &["key-manager"],
            Self::BlockStorage => &["block-storage", "volumev3", "block-store"],
        }
    }

    /// The URL that paths are appended to. Some catalogs end their URLs with the version, some do not.
    fn base(self, url: &str) -> String {
        let url = url.trim_end_matches('/');
        if self == Self::BlockStorage && !url.split('/').any(|part| part == "v3") {
            return format!("{url}/v3");
        }
        let versions: &[&str] = match self {
            Self::Compute | Self::BlockStorage => &[],
            Self::Network | Self::LoadBalancer => &["/v2.0/lbaas", "/v2.0", "/v2"],
            Self::KeyManager => &["/v1"],
        };
        versions
            .iter()
            .find_map(|version| url.strip_suffix(version))
            .unwrap_or(url)
            .into()
    }
}

/// The endpoints, or for each one that is missing why.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Catalog(Vec<Result<String, String>>);

impl Catalog {
    /// Takes the endpoints out of an answer of Keystone's.
    pub fn read(token: &Value, interface: &str, region: Option<&str>) -> Self {
        let services = token.items("catalog");
        Self(
            Endpoint::ALL
                .iter()
                .map(|endpoint| find(services, *endpoint, interface, region))
                .collect(),
        )
    }

    /// As it is kept: a line for each endpoint, `=` and its URL or `!` and why there is none.
    pub(crate) fn to_text(&self) -> String {
        let lines = self.0.iter().map(|url| match url {
            Ok(url) => format!("={url}"),
            Err(why) => format!("!{why}"),
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// The same read.
    pub(crate) fn from_text(text: &str) -> Self {
        let line = |line: &str| match line.strip_prefix('=') {
            Some(url) => Ok(url.into()),
            None => Err(line.trim_start_matches('!').into()),
        };
        Self(text.lines().map(line).collect())
    }

    /// The URL to append paths to.
    ///
    /// # Errors
    /// `invalid` when the catalog has none that fits, with what it has.
    pub fn url(&self, endpoint: Endpoint) -> Result<&str, Failure> {
        match self.0.get(endpoint as usize) {
            Some(Ok(url)) => Ok(url),
            Some(Err(wrong)) => Err(Failure::invalid(wrong.clone())),
            None => Err(Failure::invalid("there is no catalog")),
        }
    }

    /// All endpoints there are, with their types.
    pub fn urls(&self) -> impl Iterator<Item = (Endpoint, &str)> {
        let urls = Endpoint::ALL.iter().zip(&self.0);
        urls.filter_map(|(endpoint, url)| Some((*endpoint, url.as_deref().ok()?)))
    }
}

/// By the first of the service's types that the catalog has an endpoint of that fits.
fn find(services: &[Value], endpoint: Endpoint, interface: &str, region: Option<&str>) -> Result<String, String> {
    let mut wrong = None;
    for kind in endpoint.types() {
        match find_type(services, endpoint, kind, interface, region) {
            Ok(url) => return Ok(url),
            Err(why) => wrong = wrong.or(Some(why)),
        }
    }
    Err(wrong.unwrap_or_default())
}

fn find_type(
    services: &[Value],
    endpoint: Endpoint,
    kind: &str,
    interface: &str,
    region: Option<&str>,
) -> Result<String, String> {
    let (mut places, mut fitting) = (Vec::new(), Vec::new());
    for service in services {
        if service.text("type") != Some(kind) {
            continue;
        }
        for place in service.items("endpoints") {
            let of = place.text("region_id").or(place.text("region")).unwrap_or_default();
            let (Some(has), Some(url)) = (place.text("interface"), place.text("url")) else {
                continue;
            };
            places.push((has, of));
            if has == interface && region.is_none_or(|region| region == of) {
                fitting.push((of, url));
            }
        }
    }
    match fitting.as_slice() {
        [first, rest @ ..] if rest.iter().all(|other| other.0 == first.0) => Ok(endpoint.base(first.1)),
        [] => Err(missing(endpoint, interface, region, &places)),
        many => {
            let regions: Vec<&str> = many.iter().map(|place| place.0).collect();
            Err(format!(
                "the cloud has several regions ({}); set region in [Global]",
                regions.join(", ")
            ))
        }
    }
}

fn missing(endpoint: Endpoint, interface: &str, region: Option<&str>, places: &[(&str, &str)]) -> String {
    let there: Vec<String> = places
        .iter()
        .map(|(interface, region)| format!("{interface} in {region}"))
        .collect();
    let there = if there.is_empty() {
        "no endpoint of this type".into()
    } else {
        there.join(", ")
    };
    let region = region.map(|region| format!(" in region {region}")).unwrap_or_default();
    format!(
        "Keystone's catalog has no {interface} endpoint of type {}{region}, it has {there}",
        endpoint.service_type()
    )
}
