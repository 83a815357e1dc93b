//! The cloud config of NSX: the manager, load balancers and their classes, routes. Without the sections there is none of it.

use std::collections::BTreeMap;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::url::is_url;

use super::auth::Auth;
use crate::config::{Config, LoadBalancer, LoadBalancerClass};

/// The class of Services that name none (upstream's `DefaultLoadBalancerClass`).
pub const DEFAULT_CLASS: &str = "default";

/// Owner of everything that is made, unless `tags.owner` is set: upstream's name of itself, so that both find what the other made.
const OWNER: &str = "vsphere-cloud-controller-manager";

/// Sizes of load balancer services (`LBService` of NSX's API).
const SIZES: [&str; 5] = ["SMALL", "MEDIUM", "LARGE", "XLARGE", "DLB"];

/// Longest scope of a tag, in characters, and longest tag (`Tag` of NSX's API).
const SCOPE: usize = 128;
const TAG: usize = 256;

/// What the operator requests of NSX.
#[derive(Debug)]
pub struct NsxSettings {
    /// `https://HOST`, with a port and a path where it has them.
    pub url: String,
    /// The identity.
    pub auth: Auth,
    /// What the grant needs for the server's certificate to be trusted, where the config names something.
    pub trust: Option<String>,
    /// None where Services get none.
    pub balancers: Option<BalancerSettings>,
    /// The tier-1 gateway that gets routes, such as `/infra/tier-1s/t1`; none where there are none.
    pub gateway: Option<String>,
}

/// Load balancers.
#[derive(Debug)]
pub struct BalancerSettings {
    /// The one load balancer service, or where one is made.
    pub service: LbService,
    /// Whether members of pools see the addresses of clients.
    pub snat_disabled: bool,
    /// Whose all that is made is.
    pub owner: String,
    /// Further tags.
    pub tags: BTreeMap<String, String>,
    /// By their names.
    pub classes: BTreeMap<String, Class>,
}

/// The load balancer service that virtual servers belong to.
#[derive(Debug, PartialEq, Eq)]
pub enum LbService {
    /// It is there, on this gateway where one is named.
    Given {
        /// Its id.
        id: String,
        /// Path of its gateway.
        gateway: Option<String>,
    },
    /// It is made with the first virtual server and goes with the last.
    Managed {
        /// Path of its gateway.
        gateway: String,
        /// Its size.
        size: String,
    },
}

/// A class of load balancers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    /// Its name.
    pub name: String,
    /// Where addresses come from: an id of an IP pool.
    pub pool: Reference,
    /// Application profile of TCP ports: a path.
    pub tcp: Reference,
    /// Application profile of UDP ports: a path.
    pub udp: Reference,
}

/// Names an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// By what NSX calls it.
    Exact(String),
    /// By display name; there must be one.
    Name(String),
}

/// The text without blanks around it; none when nothing is left.
fn given(text: Option<&String>) -> Option<&str> {
    text.map(|text| text.trim()).filter(|text| !text.is_empty())
}

impl NsxSettings {
    /// Works the config out; none where nothing is to be had of NSX. Counts only if `problems` got nothing.
    pub fn of(config: &Config, problems: &mut Problems) -> Option<Self> {
        let manager = &config.nsxt;
        let wants_balancers = !is_empty(&config.load_balancer) || !config.load_balancer_class.is_empty();
        let gateway = given(config.route.router_path.as_ref());
        if !wants_balancers && gateway.is_none() {
            if given(manager.host.as_ref()).is_some() {
                let text = "neither loadBalancer nor route is configured, so nothing is asked of NSX";
                problems.warn("nsxt", text);
            }
            return None;
        }
        let host = given(manager.host.as_ref()).unwrap_or_default();
        let url = format!("https://{}", host.trim_end_matches('/'));
        if host.contains("://") || !is_url(&url) {
            let text = format!("\"{host}\" is no NSX manager; write its name or address, such as nsx.example.com");
            problems.add("nsxt.host", text);
        }
        if manager.insecure_flag {
            let text = "the server's certificate is always checked; take this key out and write `thumbprints: [...]` of the certificate, or `ca: FILE` of its \
                        authority, into the grant of this host";
            problems.add("nsxt.insecureFlag", text);
        }
        if let Some(path) = gateway {
            check_gateway("route.routerPath", path, problems);
        }
        Some(Self {
            url,
            auth: Auth::of(manager, problems),
            trust: given(manager.ca_file.as_ref()).map(|file| format!("ca: {file}")),
            balancers: wants_balancers.then(|| balancers(config, problems)),
            gateway: gateway.map(str::to_owned),
        })
    }
}

/// As upstream decides whether it is there at all.
fn is_empty(section: &LoadBalancer) -> bool {
    let parts = [
        &section.size,
        &section.lb_service_id,
        &section.tier1_gateway_path,
        &section.ip_pool_name,
        &section.ip_pool_id,
    ];
    parts.into_iter().all(|part| given(part.as_ref()).is_none())
}

fn check_gateway(at: &str, path: &str, problems: &mut Problems) {
    let id = path.strip_prefix("/infra/tier-1s/").unwrap_or_default();
    if id.is_empty() || id.contains('/') {
        let text = format!("\"{path}\" is no path of a tier-1 gateway; write it like /infra/tier-1s/ID");
        problems.add(at, text);
    }
}

fn balancers(config: &Config, problems: &mut Problems) -> BalancerSettings {
    let section = &config.load_balancer;
    let mut tags = section.tags.clone();
    for (scope, tag) in &tags {
        if scope.chars().count() > SCOPE || tag.chars().count() > TAG {
            let text = format!("the tag {scope:.40?} is too long: a scope has at most {SCOPE} characters, a tag {TAG}");
            problems.add("loadBalancer.tags", text);
        }
    }
    let owner = tags.remove("owner").filter(|owner| !owner.is_empty());
    BalancerSettings {
        service: service(section, problems),
        snat_disabled: section.snat_disabled,
        owner: owner.unwrap_or_else(|| OWNER.into()),
        tags,
        classes: classes(config, problems),
    }
}

fn service(section: &LoadBalancer, problems: &mut Problems) -> LbService {
    let gateway = given(section.tier1_gateway_path.as_ref());
    if let Some(path) = gateway {
        check_gateway("loadBalancer.tier1GatewayPath", path, problems);
    }
    let size = given(section.size.as_ref());
    if let Some(size) = size.filter(|size| !SIZES.contains(size)) {
        let text = format!("\"{size}\" is no size; write {}", SIZES.join(", "));
        problems.add("loadBalancer.size", text);
    }
    if let Some(id) = given(section.lb_service_id.as_ref()) {
        return LbService::Given {
            id: id.into(),
            gateway: gateway.map(str::to_owned),
        };
    }
    if gateway.is_none() {
        let text = "this is missing; write the path of the tier-1 gateway, or lbServiceId of a load balancer service that is there";
        problems.add("loadBalancer.tier1GatewayPath", text);
    }
    if size.is_none() {
        let text = format!("this is missing; write {}", SIZES.join(", "));
        problems.add("loadBalancer.size", text);
    }
    LbService::Managed {
        gateway: gateway.unwrap_or_default().into(),
        size: size.unwrap_or_default().into(),
    }
}

fn classes(config: &Config, problems: &mut Problems) -> BTreeMap<String, Class> {
    let section = &config.load_balancer;
    let base = LoadBalancerClass {
        ip_pool_name: section.ip_pool_name.clone(),
        ip_pool_id: section.ip_pool_id.clone(),
        tcp_app_profile_name: section.tcp_app_profile_name.clone(),
        tcp_app_profile_path: section.tcp_app_profile_path.clone(),
        udp_app_profile_name: section.udp_app_profile_name.clone(),
        udp_app_profile_path: section.udp_app_profile_path.clone(),
    };
    let mut all: BTreeMap<&str, (String, &LoadBalancerClass)> = BTreeMap::new();
    all.insert(DEFAULT_CLASS, ("loadBalancer".into(), &base));
    for (name, class) in &config.load_balancer_class {
        all.insert(name, (format!("loadBalancerClass.{name}"), class));
    }
    let default = config.load_balancer_class.get(DEFAULT_CLASS);
    let parents: Vec<&LoadBalancerClass> = default.into_iter().chain([&base]).collect();
    let read = |(name, (at, own)): (&str, (String, &LoadBalancerClass))| {
        let mut one = |what: Part| reference(&at, what, own, &parents, problems);
        let class = Class {
            name: name.into(),
            pool: one(POOL),
            tcp: one(TCP),
            udp: one(UDP),
        };
        (name.to_owned(), class)
    };
    all.into_iter().map(read).collect()
}

/// One of the things that a class names, by either of two keys.
type Part = (
    &'static str,
    fn(&LoadBalancerClass) -> Option<&String>,
    &'static str,
    fn(&LoadBalancerClass) -> Option<&String>,
);

const POOL: Part = (
    "ipPoolId",
    |class| class.ip_pool_id.as_ref(),
    "ipPoolName",
    |class| class.ip_pool_name.as_ref(),
);
const TCP: Part = (
    "tcpAppProfilePath",
    |class| class.tcp_app_profile_path.as_ref(),
    "tcpAppProfileName",
    |class| class.tcp_app_profile_name.as_ref(),
);
const UDP: Part = (
    "udpAppProfilePath",
    |class| class.udp_app_profile_path.as_ref(),
    "udpAppProfileName",
    |class| class.udp_app_profile_name.as_ref(),
);

/// The class's own, else that of the default class, else that of `loadBalancer`.
fn reference(
    at: &str,
    (exact_key, exact, name_key, name): Part,
    own: &LoadBalancerClass,
    parents: &[&LoadBalancerClass],
    problems: &mut Problems,
) -> Reference {
    for (level, class) in [own].iter().chain(parents).enumerate() {
        match (given(exact(class)), given(name(class))) {
            (Some(_), Some(_)) if level == 0 && exact_key == POOL.0 => {
                problems.add(
                    format!("{at}.{exact_key}"),
                    format!("write this or {name_key}, not both"),
                );
                break;
            }
            (Some(exact), _) => return Reference::Exact(exact.into()),
            (None, Some(name)) => return Reference::Name(name.into()),
            (None, None) => {}
        }
    }
    if problems.iter().all(|problem| problem.at != format!("{at}.{exact_key}")) {
        problems.add(
            format!("{at}.{name_key}"),
            format!("this is missing; write it, or {exact_key}"),
        );
    }
    Reference::Name(String::new())
}
