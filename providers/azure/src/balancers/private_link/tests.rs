use super::super::annotations;
use super::*;

const FRONT: &str = "/subscriptions/s/lb/frontendIPConfigurations/a1";
const SUBNET: &str = "/subscriptions/s/vnet/subnets/inner";

fn service(set: &[(&str, &str)]) -> Service {
    let pairs = set
        .iter()
        .map(|(key, value)| Pair::new(annotations::TABLE.key(key), *value));
    let created = Pair::new(annotations::TABLE.key("pls-create"), "true");
    Service {
        annotations: pairs.chain([created]).collect(),
        ..Service::new("default", "web", "1")
    }
}

fn site(owner: &str) -> Site<'_> {
    Site {
        path: "/subscriptions/s/privateLinkServices",
        front: FRONT,
        subnet: SUBNET,
        location: "westeurope",
        owner,
        cluster: "kubernetes",
        tags: json!({ "team": "a" }).as_object().unwrap().clone(),
    }
}

fn next_of(all: &[Value], set: &[(&str, &str)], owner: &str) -> Result<Option<Change>, Failure> {
    let service = service(set);
    let asked = annotations::read(&service)?;
    next(all, asked.link.as_ref().unwrap(), &site(owner))
}

/// The one that a change makes, as the cloud shows it.
fn made(change: Option<Change>) -> Value {
    let Some(Change::Put { path, mut body, .. }) = change else {
        panic!("a change that writes");
    };
    body["id"] = path.as_str().into();
    body["name"] = ids::name(&path).into();
    body["etag"] = "W/\"1\"".into();
    body
}

#[test]
fn plain_one_is_made_once_and_the_owner_changes_it() {
    let link = made(next_of(&[], &[], "default/web").unwrap());
    assert_eq!(name(&link), "pls-a1");
    let tags = json!({ "team": "a", "k8s-azure-owner-service": "default/web", "k8s-azure-cluster-name": "kubernetes" });
    assert_eq!(link["tags"], tags);
    let properties = json!({
        "loadBalancerFrontendIpConfigurations": [{ "id": FRONT }],
        "ipConfigurations": [{ "name": "inner-pls-a1-dynamic-0", "properties": {
            "privateIPAllocationMethod": "Dynamic", "privateIPAddressVersion": "IPv4", "subnet": { "id": SUBNET }, "primary": true,
        }}],
    });
    assert_eq!(link["properties"], properties);
    // The cloud adds an address, and writes ids in another case.
    let mut shown = link;
    shown["properties"]["ipConfigurations"][0]["properties"]["privateIPAddress"] = "10.0.0.9".into();
    shown["properties"]["loadBalancerFrontendIpConfigurations"][0]["id"] = FRONT.to_uppercase().into();
    let all = [shown];
    assert!(next_of(&all, &[], "default/web").unwrap().is_none());
    let set = [
        ("pls-ip-configuration-ip-address-count", "3"),
        ("pls-ip-configuration-ip-address", "10.0.0.8 10.0.0.7"),
        ("pls-fqdns", "a.example b.example"),
        ("pls-proxy-protocol", "true"),
        ("pls-visibility", "one *"),
        ("pls-auto-approval", "one"),
    ];
    let mut changed = made(next_of(&all, &set, "default/web").unwrap());
    let of = |key: &str| &changed["properties"][key];
    assert_eq!(
        (of("fqdns"), of("enableProxyProtocol")),
        (&json!(["a.example", "b.example"]), &json!(true))
    );
    assert_eq!(of("visibility"), &json!({ "subscriptions": ["*"] }));
    assert_eq!(of("autoApproval"), &json!({ "subscriptions": ["one"] }));
    let addresses = of("ipConfigurations").as_array().unwrap();
    let names: Vec<&str> = addresses.iter().map(name).collect();
    assert_eq!(
        names,
        [
            "inner-pls-a1-static-10.0.0.8",
            "inner-pls-a1-static-10.0.0.7",
            "inner-pls-a1-dynamic-0"
        ]
    );
    // In another order it is the same one.
    changed["properties"]["fqdns"].as_array_mut().unwrap().reverse();
    changed["properties"]["ipConfigurations"]
        .as_array_mut()
        .unwrap()
        .reverse();
    assert!(next_of(&[changed.clone()], &set, "default/web").unwrap().is_none());
    changed["properties"]["provisioningState"] = "Failed".into();
    assert!(next_of(&[changed.clone()], &set, "default/web").unwrap().is_some());
    let plain = made(next_of(&[changed], &[], "default/web").unwrap());
    assert_eq!(plain["properties"]["fqdns"], json!([]));
    assert_eq!(
        plain["properties"]["ipConfigurations"].as_array().map(Vec::len),
        Some(1)
    );
}

#[test]
fn other_services_share_it_and_what_others_made_is_untouched() {
    let link = made(next_of(&[], &[("pls-name", "mine")], "default/web").unwrap());
    assert_eq!(name(&link), "mine");
    let all = [link];
    assert!(next_of(&all, &[], "default/also").unwrap().is_none());
    let refused = |all: &[Value], set: &[(&str, &str)], owner: &str| match next_of(all, set, owner) {
        Err(failure) => failure.message().to_owned(),
        Ok(_) => panic!("this is refused"),
    };
    assert!(
        refused(&all, &[("pls-fqdns", "a.example")], "default/also").contains("belongs to the Service default/web")
    );
    assert!(refused(&all, &[("pls-name", "other")], "default/web").contains("cannot be renamed"));
    let mut foreign = all[0].clone();
    foreign["tags"] = json!({});
    assert!(refused(&[foreign.clone()], &[], "default/web").contains("not of this cluster"));
    assert!(leave(&[foreign], &[FRONT], "kubernetes").is_err());
}

#[test]
fn endpoints_leave_before_it_does() {
    let deleted = |link: &Value| match leave(std::slice::from_ref(link), &["/other", FRONT], "Kubernetes").unwrap() {
        Some(Change::Delete { path, .. }) => path,
        _ => panic!("it is deleted"),
    };
    let mut link = made(next_of(&[], &[], "default/web").unwrap());
    assert_eq!(deleted(&link), "/subscriptions/s/privateLinkServices/pls-a1");
    link["properties"]["privateEndpointConnections"] = json!([{ "id": "/connection", "etag": "W/\"2\"" }]);
    assert_eq!(deleted(&link), "/connection");
    assert!(leave(&[link], &["/other"], "kubernetes").unwrap().is_none());
}

#[test]
fn subnet_is_opened_once() {
    let closed = json!({ "id": SUBNET, "etag": "W/\"1\"", "properties": { "privateLinkServiceNetworkPolicies": "Enabled", "addressPrefix": "10.0.0.0/8" } });
    let opened = made(open(&closed));
    assert_eq!(opened["properties"]["privateLinkServiceNetworkPolicies"], "Disabled");
    assert_eq!(opened["properties"]["addressPrefix"], "10.0.0.0/8");
    assert!(open(&opened).is_none());
}

#[test]
fn long_names_keep_their_end() {
    let name_of = "n".repeat(70);
    let link = made(
        next_of(
            &[],
            &[("pls-name", &name_of), ("pls-ip-configuration-ip-address", "10.0.0.8")],
            "default/web",
        )
        .unwrap(),
    );
    let address = name(&items(&link, ADDRESSES)[0]);
    assert!(
        address.len() == NAME && address.ends_with("n-static-10.0.0.8"),
        "{address}"
    );
}
