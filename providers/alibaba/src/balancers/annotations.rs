//! Annotations of Services: those that are read, and those of upstream that are refused.

use cloudwit_guest_sdk::annotations::{Annotation, Reader, Table};
use cloudwit_guest_sdk::prelude::*;

use super::fields;
use super::names::Kind;
use super::wanted::Wanted;

const PREFIX: &str = "service.beta.kubernetes.io/alibaba-cloud-loadbalancer-";

/// As they began once. Upstream still reads them.
const FORMER_PREFIX: &str = "service.beta.kubernetes.io/alicloud-loadbalancer-";

/// Whether Nodes or Pods are behind a load balancer.
const BACKEND_TYPE: &str = "service.beta.kubernetes.io/backend-type";

/// Label of a Service with the id of the load balancer that upstream gave it.
pub const ID_LABEL: &str = "service.k8s.alibaba/loadbalancer-id";

/// All that are known, one in a line.
#[rustfmt::skip]
pub const TABLE: Table = Table::new(PREFIX, &[
    Annotation::new("acl-id", "", "access lists of the listeners, with commas between (CLB)"),
    Annotation::new("acl-status", "", "`on`: access lists count (CLB)"),
    Annotation::new("acl-type", "", "`white` or `black` (CLB)"),
    Annotation::new("additional-resource-tags", "", "`key=value,key=value`: further tags; none is taken away"),
    Annotation::new("address-type", "internet", "`internet` or `intranet`; of a CLB it cannot be changed"),
    Annotation::new("alpn", "", "`on` or `off` (NLB, TCPSSL)"),
    Annotation::new("alpn-policy", "", "`HTTP1Only`, `HTTP2Only` and so on (NLB, TCPSSL)"),
    Annotation::new("backend-label", "", "`key=value,key=value`: only Nodes with all of these labels; needs the view of Nodes"),
    Annotation::new("bandwidth", "", "Mbit/s, with `paybybandwidth` (CLB)"),
    Annotation::new("bandwidth-package-id", "", "shared bandwidth package (NLB)"),
    Annotation::new("cacert", "", "`on`: clients need certificates (NLB, TCPSSL)"),
    Annotation::new("cacert-id", "", "authorities of clients (NLB, TCPSSL)"),
    Annotation::new("cert-id", "", "certificate of HTTPS (CLB); certificates of TCPSSL with commas between (NLB)"),
    Annotation::new("charge-type", "", "`paybytraffic` or `paybybandwidth`, of traffic (CLB)"),
    Annotation::new("connection-drain", "", "`on` or `off` (TCP listeners of a CLB; server groups of an NLB)"),
    Annotation::new("connection-drain-timeout", "", "seconds, to 900"),
    Annotation::new("cookie", "", "name of the cookie, with the type `server` (HTTP, HTTPS)"),
    Annotation::new("cookie-timeout", "", "seconds, with the type `insert` (HTTP, HTTPS)"),
    Annotation::new("cps", "", "new connections in a second (NLB)"),
    Annotation::new("cross-zone-enabled", "", "`on` or `off` (NLB)"),
    Annotation::new("default-weight", "100", "weight of each Node, 0 to 100"),
    Annotation::new("delete-protection", "", "`on` or `off`; a new one has it. It is taken away when the Service is deleted"),
    Annotation::new("established-timeout", "", "seconds, 10 to 900 (TCP of a CLB)"),
    Annotation::new("force-override-listeners", "false", "`true`: the listeners of a load balancer given by `id` are made too, and others on these ports replaced"),
    Annotation::new("health-check-connect-port", "", "port for health checks instead of the Node's port"),
    Annotation::new("health-check-connect-timeout", "", "seconds (TCP, UDP, NLB)"),
    Annotation::new("health-check-domain", "", "host name in health checks"),
    Annotation::new("health-check-flag", "", "`on` or `off` (HTTP, HTTPS, NLB); HTTP and HTTPS have none without it"),
    Annotation::new("health-check-httpcode", "", "such as `http_2xx,http_3xx`"),
    Annotation::new("health-check-interval", "", "seconds, 1 to 50"),
    Annotation::new("health-check-method", "", "`head` or `get` (HTTP, HTTPS, NLB)"),
    Annotation::new("health-check-switch", "", "`on` or `off` (TCP and UDP of a CLB)"),
    Annotation::new("health-check-timeout", "", "seconds (HTTP, HTTPS)"),
    Annotation::new("health-check-type", "", "`tcp` or `http` (TCP of a CLB, NLB)"),
    Annotation::new("health-check-uri", "", "path of health checks by HTTP"),
    Annotation::new("healthy-threshold", "", "2 to 10"),
    Annotation::new("hostname", "", "published in the status instead of the address (CLB)"),
    Annotation::new("http2-enabled", "", "`on` or `off` (HTTPS)"),
    Annotation::new("id", "", "a load balancer of yours that is used, and stays when the Service goes. Its listeners are yours too, see `force-override-listeners`"),
    Annotation::new("idle-timeout", "", "seconds (HTTP, HTTPS, NLB)"),
    Annotation::new("ignore-weight-update", "off", "`on`: weights are not changed back"),
    Annotation::new("instance-charge-type", "", "`PayBySpec` or `PayByCLCU`, which a new one has without it (CLB)"),
    Annotation::new("ip", "", "address of an internal load balancer, when it is made (CLB)"),
    Annotation::new("ip-version", "", "`ipv4` or `ipv6` (CLB), `ipv4` or `DualStack` (NLB), when it is made"),
    Annotation::new("master-zoneid", "", "zone, when it is made (CLB)"),
    Annotation::new("modification-protection", "", "`ConsoleProtection`, which a new one has, or `NonProtection`"),
    Annotation::new("name", "", "name of the load balancer; without it the usual one of Kubernetes"),
    Annotation::new("network-type", "vpc", "`classic`: an internal one outside the VPC, when it is made (CLB)"),
    Annotation::new("persistence-timeout", "", "seconds, to 3600; without it the Service's `sessionAffinity` (TCP of a CLB)"),
    Annotation::new("ppv2-pvl-ep-id-enabled", "", "`on` or `off` (NLB)"),
    Annotation::new("ppv2-pvl-eps-id-enabled", "", "`on` or `off` (NLB)"),
    Annotation::new("ppv2-pvl-vpc-id-enabled", "", "`on` or `off` (NLB)"),
    Annotation::new("preserve-client-ip", "", "`on` or `off` (NLB)"),
    Annotation::new("preserve-lb-on-delete", "", "`true`: the load balancer stays as it is when the Service is deleted, without our tags"),
    Annotation::new("protocol-port", "", "`https:443,http:80` (CLB: `tcp`, `udp`, `http`, `https`; NLB: `tcp`, `udp`, `tcpssl`); else the port's protocol"),
    Annotation::new("proxy-protocol", "", "`on`: connections begin with the PROXY protocol (not HTTP, HTTPS)"),
    Annotation::new("remove-unscheduled-backend", "", "has no effect: which Nodes are behind load balancers the service controller says"),
    Annotation::new("request-timeout", "", "seconds, 1 to 180 (HTTP, HTTPS)"),
    Annotation::new("resource-group-id", "", "resource group, when it is made; without it `resourceGroupID` of the cloud config"),
    Annotation::new("scheduler", "", "`rr`, which is the default, `wrr`, `wlc`, `sch`, `tch`"),
    Annotation::new("security-group-ids", "", "security groups, with commas between (NLB)"),
    Annotation::new("slave-zoneid", "", "second zone, when it is made (CLB)"),
    Annotation::new("spec", "", "`slb.s1.small` and so on, with `PayBySpec` (CLB)"),
    Annotation::new("sticky-session", "", "`on` or `off` (HTTP, HTTPS)"),
    Annotation::new("sticky-session-type", "", "`insert` or `server` (HTTP, HTTPS)"),
    Annotation::new("tls-cipher-policy", "", "`tls_cipher_policy_1_2` and so on (HTTPS, TCPSSL)"),
    Annotation::new("unhealthy-threshold", "", "2 to 10"),
    Annotation::new("vswitch-id", "", "vswitch of an internal one, when it is made; without it the first `vswitchid` of the cloud config (CLB)"),
    Annotation::new("xforwardedfor-clientsrcport", "", "`on` or `off` (HTTP, HTTPS)"),
    Annotation::new("xforwardedfor-proto", "", "`on` or `off` (HTTP, HTTPS)"),
    Annotation::new("xforwardedfor-slbport", "", "`on` or `off` (HTTP, HTTPS)"),
    Annotation::new("zone-maps", "", "`zone:vswitch,zone:vswitch`, also `zone:vswitch:address:elastic address`; without it `vswitchid` of the cloud config with zones (NLB)"),
    Annotation::new("additional-cert-ids", "", "refused: certificates beyond those of `cert-id`"),
    Annotation::new("backend-ip-version", "", "refused: Nodes are reached by IPv4"),
    Annotation::new("domain-extensions", "", "refused: further domains of HTTPS"),
    Annotation::new("external-ip-type", "", "refused: an elastic address of an internal one is not looked up"),
    Annotation::new("forward-port", "", "refused: HTTP is not sent on to HTTPS"),
    Annotation::new("ipv6-address-type", "", "refused: it is as the cloud makes it"),
    Annotation::new("listener-port-range", "", "refused: it needs Pods behind the load balancer"),
    Annotation::new("server-group-type", "", "refused: server groups have instances"),
    Annotation::new("vgroup-port", "", "refused: server groups of yours"),
    Annotation::new("weight", "", "refused: a weight for all together; see `default-weight`"),
    Annotation::new(BACKEND_TYPE, "ecs", "`ecs`: Nodes are behind the load balancer. `eni` is refused: Pods"),
]);

/// What another behaviour would follow from, so that it must not be passed over.
const REFUSED: [&str; 10] = [
    "additional-cert-ids",
    "backend-ip-version",
    "domain-extensions",
    "external-ip-type",
    "forward-port",
    "ipv6-address-type",
    "listener-port-range",
    "server-group-type",
    "vgroup-port",
    "weight",
];

/// The Service with the annotations of the former prefix under the present one, which counts where both are.
pub fn with_present_names(service: &Service) -> Service {
    let mut service = service.clone();
    let former: Vec<(String, String)> = service
        .annotations
        .iter()
        .filter_map(|pair| Some((TABLE.key(pair.key.strip_prefix(FORMER_PREFIX)?), pair.value.clone())))
        .filter(|(key, _)| service.annotation(key).is_none())
        .collect();
    service
        .annotations
        .extend(former.into_iter().map(|(key, value)| Pair::new(key, value)));
    service
}

/// Notes what is refused.
pub fn refuse(reader: &mut Reader<'_>) {
    for key in REFUSED {
        if reader
            .text(key)
            .is_some_and(|value| !(key == "server-group-type" && value.eq_ignore_ascii_case("instance")))
        {
            reader.mistake(format!(
                "{} is not there yet; remove it, or leave this Service to upstream's controller",
                TABLE.key(key)
            ));
        }
    }
    reader.word(BACKEND_TYPE, &[("ecs", ())]);
}

/// Those of one kind of load balancer alone, beside those of listeners and server groups.
const OF_CLB: [&str; 10] = [
    "bandwidth",
    "charge-type",
    "hostname",
    "instance-charge-type",
    "ip",
    "master-zoneid",
    "network-type",
    "slave-zoneid",
    "spec",
    "vswitch-id",
];

/// The same of the other kind.
const OF_NLB: [&str; 4] = [
    "bandwidth-package-id",
    "cross-zone-enabled",
    "security-group-ids",
    "zone-maps",
];

/// Sends Events about what has no effect.
pub fn warn(wanted: &Wanted<'_>, kind: Kind, context: &Context) {
    TABLE.warn_unknown(wanted.service, context);
    let say = |key: &str, why: &str| {
        if text(wanted.service, key).is_some() {
            let text = format!("{} has no effect: {why}", TABLE.key(key));
            context.service_event(EventKind::Warning, "UnsupportedAnnotation", &text);
        }
    };
    say(
        "remove-unscheduled-backend",
        "which Nodes are behind load balancers the service controller says",
    );
    let others: &[&str] = if kind == Kind::Clb { &OF_NLB } else { &OF_CLB };
    others
        .iter()
        .for_each(|key| say(key, "this kind of load balancer has no such thing"));
    fields::unused(wanted.places).for_each(|key| say(key, "no port of this Service has a protocol with it"));
}

/// Whether the load balancer stays when the Service goes.
pub fn is_preserved(service: &Service) -> bool {
    is(service, "preserve-lb-on-delete", "true")
}

/// Whether an annotation has this value, in whatever case.
pub fn is(service: &Service, key: &str, value: &str) -> bool {
    text(service, key).is_some_and(|text| text.eq_ignore_ascii_case(value))
}

/// A value as it is written, with other annotations wrong as well.
pub fn text<'a>(service: &'a Service, key: &str) -> Option<&'a str> {
    let value = service.annotation(&TABLE.key(key)).map(str::trim_ascii);
    value.filter(|value| !value.is_empty())
}
