//! Parameters of annotations: read once, sent when something is made, compared with what the cloud shows. Pure.

use std::collections::BTreeSet;

use cloudwit_guest_sdk::annotations::Reader;
use serde_json::Value;

use crate::api::Call;

/// What a parameter belongs to: a bit, so that several are a number.
pub type Place = u8;

/// Listeners of a Classic Load Balancer.
pub const TCP: Place = 1;
pub const UDP: Place = 2;
pub const HTTP: Place = 4;
pub const HTTPS: Place = 8;
/// Listeners of a Network Load Balancer; those with TLS apart.
pub const LISTENER: Place = 16;
pub const SSL: Place = 32;
/// Server groups of a Network Load Balancer.
pub const GROUP: Place = 64;

pub const WEB: Place = HTTP | HTTPS;
const L4: Place = TCP | UDP;
const CLB: Place = L4 | WEB;
pub const NLB: Place = LISTENER | SSL;

/// How an annotation's value is read.
#[derive(Debug, Clone, Copy)]
pub enum Form {
    Text,
    Number(i64, i64),
    /// `on` or `off`, sent so.
    OnOff,
    /// `on` or `off`, sent as `true` or `false`.
    Switch,
    List,
    /// A list that is one parameter, with commas.
    Joined,
}

/// An annotation, and its parameter at these places.
struct Setting {
    key: &'static str,
    form: Form,
    places: Place,
    name: &'static str,
}

const fn setting(key: &'static str, form: Form, places: Place, name: &'static str) -> Setting {
    Setting {
        key,
        form,
        places,
        name,
    }
}

use Form::*;

/// All of listeners and server groups, one in a line.
#[rustfmt::skip]
const SETTINGS: &[Setting] = &[
    setting("acl-id", Joined, CLB, "AclId"),
    setting("acl-status", OnOff, CLB, "AclStatus"),
    setting("acl-type", Text, CLB, "AclType"),
    setting("alpn", Switch, SSL, "AlpnEnabled"),
    setting("alpn-policy", Text, SSL, "AlpnPolicy"),
    setting("cacert", Switch, SSL, "CaEnabled"),
    setting("cacert-id", List, SSL, "CaCertificateIds"),
    setting("cert-id", List, HTTPS, "ServerCertificateId"),
    setting("cert-id", List, SSL, "CertificateIds"),
    setting("connection-drain", OnOff, TCP, "ConnectionDrain"),
    setting("connection-drain", Switch, GROUP, "ConnectionDrainEnabled"),
    setting("connection-drain-timeout", Number(0, 900), TCP | GROUP, "ConnectionDrainTimeout"),
    setting("cookie", Text, WEB, "Cookie"),
    setting("cookie-timeout", Number(1, 86_400), WEB, "CookieTimeout"),
    setting("cps", Number(0, 1_000_000), NLB, "Cps"),
    setting("established-timeout", Number(10, 900), TCP, "EstablishedTimeout"),
    setting("health-check-connect-port", Number(0, 65_535), CLB, "HealthCheckConnectPort"),
    setting("health-check-connect-port", Number(0, 65_535), GROUP, "HealthCheckConfig.HealthCheckConnectPort"),
    setting("health-check-connect-timeout", Number(1, 300), L4, "HealthCheckConnectTimeout"),
    setting("health-check-connect-timeout", Number(1, 300), GROUP, "HealthCheckConfig.HealthCheckConnectTimeout"),
    setting("health-check-domain", Text, WEB | TCP, "HealthCheckDomain"),
    setting("health-check-domain", Text, GROUP, "HealthCheckConfig.HealthCheckDomain"),
    setting("health-check-flag", OnOff, WEB, "HealthCheck"),
    setting("health-check-flag", Switch, GROUP, "HealthCheckConfig.HealthCheckEnabled"),
    setting("health-check-httpcode", Text, WEB | TCP, "HealthCheckHttpCode"),
    setting("health-check-httpcode", List, GROUP, "HealthCheckConfig.HealthCheckHttpCode"),
    setting("health-check-interval", Number(1, 50), CLB, "HealthCheckInterval"),
    setting("health-check-interval", Number(1, 50), GROUP, "HealthCheckConfig.HealthCheckInterval"),
    setting("health-check-method", Text, WEB, "HealthCheckMethod"),
    setting("health-check-method", Text, GROUP, "HealthCheckConfig.HttpCheckMethod"),
    setting("health-check-switch", OnOff, L4, "HealthCheckSwitch"),
    setting("health-check-timeout", Number(1, 300), WEB, "HealthCheckTimeout"),
    setting("health-check-type", Text, TCP, "HealthCheckType"),
    setting("health-check-type", Text, GROUP, "HealthCheckConfig.HealthCheckType"),
    setting("health-check-uri", Text, WEB | TCP, "HealthCheckURI"),
    setting("health-check-uri", Text, GROUP, "HealthCheckConfig.HealthCheckUrl"),
    setting("healthy-threshold", Number(2, 10), CLB, "HealthyThreshold"),
    setting("healthy-threshold", Number(2, 10), GROUP, "HealthCheckConfig.HealthyThreshold"),
    setting("http2-enabled", OnOff, HTTPS, "EnableHttp2"),
    setting("idle-timeout", Number(1, 900), WEB | NLB, "IdleTimeout"),
    setting("persistence-timeout", Number(0, 3_600), TCP, "PersistenceTimeout"),
    setting("ppv2-pvl-ep-id-enabled", Switch, NLB, "ProxyProtocolV2Config.Ppv2PrivateLinkEpIdEnabled"),
    setting("ppv2-pvl-eps-id-enabled", Switch, NLB, "ProxyProtocolV2Config.Ppv2PrivateLinkEpsIdEnabled"),
    setting("ppv2-pvl-vpc-id-enabled", Switch, NLB, "ProxyProtocolV2Config.Ppv2VpcIdEnabled"),
    setting("preserve-client-ip", Switch, GROUP, "PreserveClientIpEnabled"),
    setting("proxy-protocol", Switch, L4, "ProxyProtocolV2Enabled"),
    setting("proxy-protocol", Switch, NLB, "ProxyProtocolEnabled"),
    setting("request-timeout", Number(1, 180), WEB, "RequestTimeout"),
    setting("scheduler", Text, CLB | GROUP, "Scheduler"),
    setting("sticky-session", OnOff, WEB, "StickySession"),
    setting("sticky-session-type", Text, WEB, "StickySessionType"),
    setting("tls-cipher-policy", Text, HTTPS, "TLSCipherPolicy"),
    setting("tls-cipher-policy", Text, SSL, "SecurityPolicyId"),
    setting("unhealthy-threshold", Number(2, 10), CLB, "UnhealthyThreshold"),
    setting("unhealthy-threshold", Number(2, 10), GROUP, "HealthCheckConfig.UnhealthyThreshold"),
    setting("xforwardedfor-clientsrcport", OnOff, WEB, "XForwardedFor_ClientSrcPort"),
    setting("xforwardedfor-proto", OnOff, WEB, "XForwardedFor_proto"),
    setting("xforwardedfor-slbport", OnOff, WEB, "XForwardedFor_SLBPORT"),
];

/// A desired parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    pub name: &'static str,
    pub value: Wish,
}

/// Its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    One(String),
    Many(Vec<String>),
}

impl Field {
    /// With one value.
    pub fn one(name: &'static str, value: impl ToString) -> Self {
        Self {
            name,
            value: Wish::One(value.to_string()),
        }
    }

    /// Whether the cloud shows the same; what it does not show is another value.
    pub fn is_in(&self, seen: &Value) -> bool {
        match &self.value {
            Wish::One(value) => shows(seen, self.name, value),
            Wish::Many(values) => at(seen, self.name).is_some_and(|found| {
                let found = found.as_array().into_iter().flatten();
                let found: BTreeSet<String> = found.map(text).collect();
                found == values.iter().cloned().collect()
            }),
        }
    }
}

/// Whether the cloud shows this value at this place, in whatever case.
pub fn shows(seen: &Value, path: &str, value: &str) -> bool {
    at(seen, path).is_some_and(|found| text(found).eq_ignore_ascii_case(value))
}

fn at<'v>(seen: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(seen, |at, part| at.get(part))
}

/// Adds these to a call.
pub fn sent(call: Call, fields: &[Field]) -> Call {
    fields.iter().fold(call, |call, field| match &field.value {
        Wish::One(value) => call.field(field.name, value),
        Wish::Many(values) => call.list(field.name, values),
    })
}

/// A value of JSON as a parameter has it.
pub fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// What the annotations request at this place.
pub fn read(reader: &mut Reader<'_>, place: Place) -> Vec<Field> {
    let mut fields = Vec::new();
    for setting in SETTINGS.iter().filter(|setting| setting.places & place != 0) {
        if let Some(value) = value(reader, setting.key, setting.form, place) {
            fields.push(Field {
                name: setting.name,
                value,
            });
        }
    }
    fields
}

fn value(reader: &mut Reader<'_>, key: &'static str, form: Form, place: Place) -> Option<Wish> {
    const WORDS: [(&str, bool); 2] = [("on", true), ("off", false)];
    let one = |text: String| Some(Wish::One(text));
    match form {
        Text => one(reader.text(key)?.to_owned()),
        Number(from, to) => one(reader.integer(key, from..=to)?.to_string()),
        OnOff => one(if reader.word(key, &WORDS)? { "on" } else { "off" }.to_owned()),
        Switch => one(reader.word(key, &WORDS)?.to_string()),
        Joined => {
            let mut list = reader.list(key)?;
            list.sort_unstable();
            one(list.join(","))
        }
        List => {
            let list = reader.list(key)?;
            match (place, list.as_slice()) {
                (HTTPS, [single]) => one((*single).to_owned()),
                (HTTPS, _) => reader.wrong(key, "one certificate for HTTPS"),
                _ => Some(Wish::Many(list.into_iter().map(str::to_owned).collect())),
            }
        }
    }
}

/// Annotations without a parameter at any of these places.
pub fn unused(places: Place) -> impl Iterator<Item = &'static str> {
    let used = move |key: &str| {
        SETTINGS
            .iter()
            .any(|setting| setting.key == key && setting.places & places != 0)
    };
    let first = |at: usize, key: &str| SETTINGS.iter().position(|setting| setting.key == key) == Some(at);
    let all = SETTINGS
        .iter()
        .enumerate()
        .filter(move |(at, setting)| first(*at, setting.key) && !used(setting.key));
    all.map(|(_, setting)| setting.key)
}
