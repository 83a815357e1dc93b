//! Annotations of private link services.

use cloudwit_guest_sdk::annotations::Reader;

/// All but the one that requests a service, and its group: only of the Service that owns it.
const SPECIFIC: [&str; 8] = [
    "pls-name",
    "pls-ip-configuration-subnet",
    "pls-ip-configuration-ip-address-count",
    "pls-ip-configuration-ip-address",
    "pls-fqdns",
    "pls-proxy-protocol",
    "pls-visibility",
    "pls-auto-approval",
];

/// A private link service as the annotations describe it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link<'a> {
    pub name: Option<&'a str>,
    pub subnet: Option<&'a str>,
    /// Number of addresses.
    pub count: usize,
    /// Those that are fixed; the first one is primary.
    pub ips: Vec<&'a str>,
    pub fqdns: Vec<&'a str>,
    pub proxy_protocol: bool,
    /// Subscriptions; `*` is all.
    pub visibility: Vec<&'a str>,
    pub auto_approval: Vec<&'a str>,
    /// Whether an annotation describes it.
    pub is_specific: bool,
}

/// Reads what is requested.
pub fn read<'a>(read: &mut Reader<'a>) -> Option<Link<'a>> {
    let is_wanted = read.boolean("pls-create").unwrap_or_default();
    let count = read
        .integer("pls-ip-configuration-ip-address-count", 1..=8)
        .unwrap_or(1);
    let mut words = |key| {
        let text = read.text(key).unwrap_or_default();
        text.split_ascii_whitespace().collect::<Vec<&str>>()
    };
    let mut visibility = words("pls-visibility");
    if visibility.contains(&"*") {
        visibility = vec!["*"];
    }
    let link = Link {
        ips: words("pls-ip-configuration-ip-address"),
        fqdns: words("pls-fqdns"),
        auto_approval: words("pls-auto-approval"),
        visibility,
        name: read.text("pls-name"),
        subnet: read.text("pls-ip-configuration-subnet"),
        count: usize::try_from(count).unwrap_or(1),
        proxy_protocol: read.boolean("pls-proxy-protocol").unwrap_or_default(),
        is_specific: SPECIFIC.iter().any(|key| read.is_set(key)),
    };
    if link.ips.iter().any(|ip| ip.parse::<std::net::Ipv4Addr>().is_err()) {
        read.wrong::<()>("pls-ip-configuration-ip-address", "IPv4 addresses between blanks");
    }
    if link.ips.len() > link.count {
        read.wrong::<()>(
            "pls-ip-configuration-ip-address-count",
            "at least the number of addresses of pls-ip-configuration-ip-address",
        );
    }
    is_wanted.then_some(link)
}
