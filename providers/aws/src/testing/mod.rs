//! What the native tests of this crate share: configurations, moto's recorded answers, and a small AWS that gives them.

pub(crate) mod cloud;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::testing::{FakeAnswer, FakeHost, SentRequest, recorded};

/// EC2 of the configured region.
pub(crate) const EC2: &str = "https://ec2.us-east-1.amazonaws.com/";

/// 2026-11-21T09:00:00Z.
pub(crate) const NOW: u64 = 1_795_251_600;

/// The least that has to be configured.
pub(crate) const CONFIG: &str = "[Global]\nRegion = us-east-1\nKubernetesClusterID = test\n";

/// A host with [`CONFIG`] and static keys.
pub(crate) fn host() -> FakeHost {
    let host = FakeHost::new();
    host.config(CONFIG).now(NOW);
    host.secret("access-key-id", "AKIDEXAMPLE");
    host.secret("secret-access-key", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY");
    host
}

macro_rules! recordings {
    ($($name:ident $file:literal)+) => { $(
        /// As moto answered.
        pub(crate) fn $name() -> &'static str {
            recorded(include_str!(concat!("../../recorded/", $file)))
        }
    )+ };
}

recordings! {
    instances "describe_instances.xml"
    unknown_instance "describe_instances_not_found.xml"
    no_instances "describe_instances_none.xml"
    zones "describe_availability_zones.xml"
    no_topology "describe_instance_topology.html"
    route_tables "describe_route_tables.xml"
    no_route_tables "describe_route_tables_none.xml"
    network_interfaces "describe_network_interfaces.xml"
    vpcs "describe_vpcs.xml"
    modified "modify_instance_attribute.xml"
    route_created "create_route.xml"
    route_exists "create_route_exists.xml"
    route_deleted "delete_route.xml"
    route_unknown "delete_route_not_found.xml"
    role "assume_role.xml"
    web_identity "assume_role_with_web_identity.xml"
    balancer_unknown "elb_not_found.xml"
    profile_roles "security_credentials.txt"
    profile "security_credentials_role.json"
}

/// A refusal of EC2 in the recorded shape.
pub(crate) fn refusal(code: &str, message: &str) -> String {
    let recorded = unknown_instance();
    let start = recorded.find("<Code>").expect("a code was recorded");
    let end = recorded.find("</Message>").expect("a message was recorded");
    format!(
        "{}<Code>{code}</Code><Message>{message}{}",
        &recorded[..start],
        &recorded[end..]
    )
}

/// The recorded instances, each by itself: two that run (the second with two interfaces), one stopped, one terminated, one without
/// the cluster's tag.
pub(crate) fn instance_ids() -> Vec<&'static str> {
    instances()
        .split("<instanceId>")
        .skip(1)
        .filter_map(|rest| rest.split('<').next())
        .collect()
}

/// The recorded answer with only the instances that the request has by id or name; a refusal when one of the ids is not in it.
pub(crate) fn describe(request: &SentRequest) -> FakeAnswer {
    let values = |prefix: &str| -> Vec<String> {
        let form = request.form();
        let fields = form.into_iter().filter(|(name, _)| name.starts_with(prefix));
        fields.map(|(_, value)| value).collect()
    };
    let (ids, names) = (values("InstanceId."), values("Filter.1.Value."));
    let known = instance_ids();
    let missing: Vec<&String> = ids.iter().filter(|id| !known.contains(&id.as_str())).collect();
    if let Some(first) = missing.first() {
        // As AWS words it: one, or all of them.
        let message = match missing.len() {
            1 => format!("The instance ID '{first}' does not exist"),
            _ => {
                let all: Vec<&str> = missing.iter().map(|id| id.as_str()).collect();
                format!("The instance IDs '{}' do not exist", all.join(", "))
            }
        };
        return FakeAnswer::xml(400, &refusal("InvalidInstanceID.NotFound", &message));
    }
    let text = instances();
    let start = text.find("<reservationSet>").expect("a list was recorded") + "<reservationSet>".len();
    let end = text.find("</reservationSet>").expect("a list was recorded");
    let parts = text[start..end].split_inclusive("</instancesSet></item>");
    let wanted = parts.filter(|part| {
        ids.iter().any(|id| part.contains(&format!("<instanceId>{id}<")))
            || names
                .iter()
                .any(|name| part.contains(&format!("<privateDnsName>{name}<")))
    });
    FakeAnswer::xml(
        200,
        &format!("{}{}{}", &text[..start], wanted.collect::<String>(), &text[end..]),
    )
}

/// Serves what nodes need, as moto does.
pub(crate) fn serve(host: &FakeHost) {
    host.serve(|request| match request.field("Action").as_deref() {
        Some("DescribeInstances") => describe(request),
        Some("DescribeAvailabilityZones") => FakeAnswer::xml(200, zones()),
        Some("DescribeInstanceTopology") => FakeAnswer::new(500, &[("content-type", "text/html")], no_topology()),
        Some("DescribeRouteTables") => FakeAnswer::xml(200, route_tables()),
        Some("ModifyInstanceAttribute") => FakeAnswer::xml(200, modified()),
        Some("CreateRoute") => FakeAnswer::xml(200, route_created()),
        Some("DeleteRoute") => FakeAnswer::xml(200, route_deleted()),
        other => panic!("nobody recorded {other:?}"),
    });
}

/// The actions that were called so far.
pub(crate) fn actions(host: &FakeHost) -> Vec<String> {
    host.requests()
        .iter()
        .filter_map(|request| request.field("Action"))
        .collect()
}

/// A Node with this provider id.
pub(crate) fn node(name: &str, provider_id: &str) -> NodeRef {
    NodeRef::named(name).with_provider_id(provider_id)
}
