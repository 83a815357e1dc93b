//! Grant check of one request. Pure: URL, method and grants in, rule or refusal out.

use std::net::IpAddr;

use http::Uri;
use reqwest::Url;

use crate::egress::refusal::{Refusal, RefusalReason};
use crate::grants::{HttpGrant, yaml};
use crate::net::destination::{Destination, Host, HostPattern, Scheme};
use crate::net::resolver::{AddressRule, Prohibited, Special, special};

/// One entry of the grants, ready to be compared.
#[derive(Debug, Clone)]
pub struct Rule {
    /// The entry.
    pub grant: HttpGrant,
    /// Its place in the list.
    pub at: usize,
    pattern: HostPattern,
}

impl Rule {
    /// None when the grant's host is no host, which `Grants::validate` reports.
    pub fn new(grant: &HttpGrant, at: usize) -> Option<Self> {
        Some(Self {
            grant: grant.clone(),
            at,
            pattern: HostPattern::parse(&grant.host)?,
        })
    }

    /// The special addresses it allows.
    pub fn addresses(&self) -> AddressRule {
        AddressRule {
            loopback: self.grant.allow_loopback,
            link_local: self.grant.allow_link_local,
        }
    }

    fn flags(&self) -> u8 {
        u8::from(self.grant.allow_loopback) + u8::from(self.grant.allow_link_local)
    }

    /// Whether it is about this API host.
    pub fn is_for(&self, to: &Destination) -> bool {
        self.pattern.matches(&to.host) && self.grant.port() == to.port && self.grant.scheme == to.scheme
    }

    fn has_method(&self, method: &str) -> bool {
        method != "CONNECT" && self.grant.methods.iter().any(|granted| granted == method)
    }
}

/// The URL as the client will use it, and where it leads.
pub fn target(uri: &Uri) -> Result<(Url, Destination), Refusal> {
    let bad = |message: &str| Refusal {
        reason: RefusalReason::Url,
        destination: None,
        message: message.into(),
        yaml: None,
    };
    if uri.authority().is_none_or(|authority| authority.as_str().contains('@')) {
        return Err(bad(
            "the provider requested a URL without a host or with user and password in it",
        ));
    }
    let mut url: Url = uri
        .to_string()
        .parse()
        .map_err(|_| bad("the provider requested something that is not a URL"))?;
    let scheme = match url.scheme() {
        "http" => Scheme::Http,
        "https" => Scheme::Https,
        _ => return Err(bad("the provider requested a URL that is neither http nor https")),
    };
    let host = url.host_str().and_then(Host::parse);
    let host = host.ok_or_else(|| bad("the provider requested a host that is neither a DNS name nor an address"))?;
    if let Host::Name(name) = &host {
        // Without the dot at the end, so that the `host` header names exactly what was granted.
        url.set_host(Some(name))
            .map_err(|_| bad("the provider requested a host that is not a name"))?;
    }
    let port = url.port().unwrap_or_else(|| scheme.default_port());
    let destination = Destination { scheme, host, port };
    Ok((url, destination))
}

/// The rule under which the request may leave. Of several the one with the most `allow` flags, so that adding an entry is always enough.
pub fn decide<'r>(rules: &'r [Rule], to: &Destination, method: &str) -> Result<&'r Rule, Refusal> {
    let fitting = rules.iter().filter(|rule| rule.is_for(to) && rule.has_method(method));
    let Some(best) = fitting.rev().max_by_key(|rule| rule.flags()) else {
        return Err(not_granted(rules, to, method));
    };
    match literal(to).map(|ip| (ip, best.addresses().check(ip))) {
        Some((address, Err(why))) => Err(prohibited(best, to, method, Prohibited { address, why })),
        _ => Ok(best),
    }
}

fn literal(to: &Destination) -> Option<IpAddr> {
    match to.host {
        Host::Ip(ip) => Some(ip),
        Host::Name(_) => None,
    }
}

fn not_granted(rules: &[Rule], to: &Destination, method: &str) -> Refusal {
    let on_host = || rules.iter().filter(|rule| rule.pattern.matches(&to.host));
    let (reason, near, why) = if let Some(near) = on_host().find(|rule| rule.is_for(to)) {
        (
            RefusalReason::Method,
            Some(near),
            "the destination is, but not this method",
        )
    } else if let Some(near) = on_host().find(|rule| rule.grant.port() == to.port) {
        (
            RefusalReason::Scheme,
            Some(near),
            "host and port are, but not this scheme",
        )
    } else if let Some(near) = on_host().next() {
        (RefusalReason::Port, Some(near), "the host is, but not this port")
    } else {
        (RefusalReason::Host, None, "the host is not")
    };
    let what = if is_grantable(method) { method } else { "the method" };
    let mut message = format!("{what} {to} is not granted ({why})");
    let yaml = suggestion(near, to, method).map(|grant| yaml::http_entry(&grant));
    match &yaml {
        Some(yaml) => message += &format!("; to allow it, add to grants.http: {yaml}"),
        None => message += "; it can never be granted",
    }
    Refusal {
        reason,
        destination: Some(to.clone()),
        message,
        yaml,
    }
}

/// The refusal of an address that is not allowed; also made when only the look-up of a name shows it.
pub fn prohibited(rule: &Rule, to: &Destination, method: &str, found: Prohibited) -> Refusal {
    let mut grant = HttpGrant {
        host: host_text(to),
        methods: vec![method.to_owned()],
        ..rule.grant.clone()
    };
    let grantable = allow(&mut grant, found.why);
    let yaml = grantable.then(|| yaml::http_entry(&grant));
    let mut message = match to.host {
        Host::Ip(_) => format!("{method} {to} is refused: the address is {}", found.why),
        Host::Name(_) => format!(
            "{method} {to} is refused: the name leads to {}, which is {}",
            found.address, found.why
        ),
    };
    match &yaml {
        Some(yaml) => message += &format!("; if that is meant, add to grants.http: {yaml}"),
        None => message += "; it can never be granted",
    }
    Refusal {
        reason: RefusalReason::Address,
        destination: Some(to.clone()),
        message,
        yaml,
    }
}

/// The refusal of a server whose certificate is not trusted. `unknown_issuer`: whether another bundle of authorities could help.
pub fn untrusted(rule: &Rule, to: &Destination, why: &str, unknown_issuer: bool) -> Refusal {
    let mut message = format!("the certificate of {to} is not trusted: {why}");
    let mut yaml = None;
    if !rule.grant.thumbprints.is_empty() {
        message += "; if the server was given a new certificate on purpose, write its thumbprint into this entry of grants.http";
    } else if unknown_issuer && rule.grant.ca.is_none() {
        let grant = HttpGrant {
            ca: Some("/etc/cloudwit/ca.pem".into()),
            ..rule.grant.clone()
        };
        let entry = yaml::http_entry(&grant);
        message += &format!(
            "; if its authority is a private one, put its certificate into a PEM file and replace the entry in grants.http by: {entry}"
        );
        yaml = Some(entry);
    } else if let (true, Some(ca)) = (unknown_issuer, &rule.grant.ca) {
        message += &format!(
            "; its authority is none of those in {}, which this entry of grants.http names as ca",
            ca.display()
        );
    }
    Refusal {
        reason: RefusalReason::Certificate,
        destination: Some(to.clone()),
        message,
        yaml,
    }
}

/// The refusal by a server that demands a client certificate, or does not accept the granted one, with this TLS alert.
pub fn unwelcome(rule: &Rule, to: &Destination, alert: &str) -> Refusal {
    let (message, yaml) = match &rule.grant.client_certificate {
        Some(file) => {
            let message = format!(
                "{to} does not accept the client certificate of {} (TLS alert {alert}); put one that it accepts, and its key, into the files that this \
                 entry of grants.http names",
                file.display()
            );
            (message, None)
        }
        None => {
            let entry = yaml::http_entry(&HttpGrant {
                client_certificate: Some("/etc/cloudwit/client.pem".into()),
                client_key: Some("/etc/cloudwit/secrets/client.key".into()),
                ..rule.grant.clone()
            });
            let message = format!(
                "{to} demands a client certificate (TLS alert {alert}); put one that it accepts, and its key, into PEM files and replace the entry in \
                 grants.http by: {entry}"
            );
            (message, Some(entry))
        }
    };
    Refusal {
        reason: RefusalReason::ClientCertificate,
        destination: Some(to.clone()),
        message,
        yaml,
    }
}

/// What would have to be granted; none when that cannot be. CA and proxy are those of the entry that is nearest. The client certificate is proposed
/// for no other port than that entry's.
fn suggestion(near: Option<&Rule>, to: &Destination, method: &str) -> Option<HttpGrant> {
    if !is_grantable(method) {
        return None;
    }
    let same = near.is_some_and(|rule| rule.is_for(to));
    let near = near.map(|rule| rule.grant.clone()).unwrap_or_default();
    let mut grant = HttpGrant {
        scheme: to.scheme,
        host: host_text(to),
        port: Some(to.port),
        methods: vec![method.to_owned()],
        ca: near.ca.clone().filter(|_| to.scheme == Scheme::Https),
        thumbprints: match to.scheme {
            Scheme::Https => near.thumbprints.clone(),
            Scheme::Http => Vec::new(),
        },
        client_certificate: near.client_certificate.clone().filter(|_| same),
        client_key: near.client_key.clone().filter(|_| same),
        ..near
    };
    match literal(to).and_then(special) {
        Some(kind) => allow(&mut grant, kind).then_some(grant),
        None => Some(grant),
    }
}

/// Sets the flag that allows this kind of address; false when there is none.
fn allow(grant: &mut HttpGrant, kind: Special) -> bool {
    match kind {
        Special::Loopback => grant.allow_loopback = true,
        Special::LinkLocal => grant.allow_link_local = true,
        Special::Unspecified | Special::Multicast => return false,
    }
    true
}

fn is_grantable(method: &str) -> bool {
    method != "CONNECT" && !method.is_empty() && method.bytes().all(|b| b.is_ascii_uppercase() || b == b'-')
}

fn host_text(to: &Destination) -> String {
    match &to.host {
        Host::Ip(ip) => ip.to_string(),
        Host::Name(name) => name.clone(),
    }
}
