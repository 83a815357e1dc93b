//! What is done to a classic load balancer, request by request.

use cloudwit_guest_sdk::prelude::*;

use super::*;
use crate::balancers::annotations::Kind;
use crate::balancers::annotations::settings::Settings;
use crate::balancers::classic::{health_check, listeners as listeners_of};
use crate::balancers::testing::{port, service};
use crate::config::Config;

fn wanted(service: &Service) -> Wanted {
    let settings = Settings::read(service, Kind::Classic).unwrap();
    Wanted {
        name: "lb".into(),
        internal: settings.internal,
        listeners: listeners_of(service, &settings),
        health: health_check(service, &settings, &Config::default()),
        attributes: Attributes::wanted(&settings),
        proxy_protocol: settings.proxy_protocol,
        tls_policy: settings.tls_policy.clone(),
        tags: vec![Pair::new("owner", "us")],
        subnets: vec!["subnet-a".into(), "subnet-b".into()],
        groups: vec!["sg-1".into()],
    }
}

/// As the cloud shows it when all is right.
fn settled(wanted: &Wanted) -> Seen {
    Seen {
        health: Some(wanted.health.clone()),
        attributes: Some(wanted.attributes.clone()),
        ..just_created(wanted, "lb.test".into())
    }
}

fn plan(wanted: &Wanted, seen: &Seen) -> Vec<String> {
    update(wanted, seen).iter().map(Step::text).collect()
}

#[test]
fn what_is_right_is_left_alone() {
    let wanted = wanted(&service(&[]));
    assert_eq!(plan(&wanted, &settled(&wanted)), Vec::<String>::new());
}

#[test]
fn new_one_gets_settings_missing_at_creation() {
    let wanted = wanted(&service(&[]));
    let steps = plan(&wanted, &just_created(&wanted, String::new()));
    assert_eq!(
        steps,
        [
            "ConfigureHealthCheck&LoadBalancerName=lb&HealthCheck.Target=TCP%3A30080&HealthCheck.Interval=10&HealthCheck.Timeout=5\
             &HealthCheck.UnhealthyThreshold=6&HealthCheck.HealthyThreshold=2",
            "ModifyLoadBalancerAttributes&LoadBalancerName=lb&LoadBalancerAttributes.CrossZoneLoadBalancing.Enabled=false\
             &LoadBalancerAttributes.AccessLog.Enabled=false&LoadBalancerAttributes.ConnectionDraining.Enabled=false\
             &LoadBalancerAttributes.ConnectionSettings.IdleTimeout=60",
        ]
    );
}

#[test]
fn protocols_follow_certificate_and_backend() {
    let cert = ("ssl-cert", "arn:c");
    let of = |annotations: &[(&str, &str)]| {
        let listener = wanted(&service(annotations)).listeners.remove(0);
        (
            listener.protocol,
            listener.node_protocol,
            listener.certificate.is_some(),
        )
    };
    assert_eq!(of(&[]), ("TCP", "TCP", false));
    assert_eq!(of(&[("backend-protocol", "http")]), ("HTTP", "HTTP", false));
    assert_eq!(of(&[("backend-protocol", "https")]), ("TCP", "TCP", false));
    assert_eq!(of(&[cert]), ("SSL", "TCP", true));
    assert_eq!(of(&[cert, ("backend-protocol", "ssl")]), ("SSL", "SSL", true));
    assert_eq!(of(&[cert, ("backend-protocol", "http")]), ("HTTPS", "HTTP", true));
    assert_eq!(of(&[cert, ("backend-protocol", "https")]), ("HTTPS", "HTTPS", true));
    assert_eq!(of(&[cert, ("ssl-ports", "443")]), ("TCP", "TCP", false));
}

#[test]
fn changed_listener_is_deleted_before_recreation() {
    let mut two = service(&[]);
    two.ports.push(port(443, 30443));
    let before = settled(&wanted(&two));
    two.ports[1].node_port = Some(30444);
    let steps = plan(&wanted(&two), &before);
    assert_eq!(
        steps,
        [
            "DeleteLoadBalancerListeners&LoadBalancerName=lb&LoadBalancerPorts.member.1=443",
            "CreateLoadBalancerListeners&LoadBalancerName=lb&Listeners.member.1.Protocol=TCP&Listeners.member.1.LoadBalancerPort=443\
             &Listeners.member.1.InstanceProtocol=TCP&Listeners.member.1.InstancePort=30444",
        ]
    );
}

#[test]
fn the_cloud_may_write_a_certificates_name_in_other_case() {
    let wanted = wanted(&service(&[("ssl-cert", "arn:aws:IAM::1:c")]));
    let mut seen = settled(&wanted);
    seen.listeners[0].0.certificate = Some("arn:aws:iam::1:C".into());
    assert_eq!(plan(&wanted, &seen), Vec::<String>::new());
}

#[test]
fn proxy_policy_is_made_once_set_per_port_and_removed() {
    let on = wanted(&service(&[("proxy-protocol", "*")]));
    let mut seen = settled(&on);
    seen.backends = vec![(30080, vec!["theirs".into()])];
    let steps = plan(&on, &seen);
    assert_eq!(steps.len(), 2);
    assert!(steps[0].starts_with("CreateLoadBalancerPolicy&LoadBalancerName=lb&PolicyName=k8s-proxyprotocol-enabled&PolicyTypeName=ProxyProtocolPolicyType"));
    assert_eq!(
        steps[1],
        "SetLoadBalancerPoliciesForBackendServer&LoadBalancerName=lb&InstancePort=30080&PolicyNames.member.1=theirs\
         &PolicyNames.member.2=k8s-proxyprotocol-enabled"
    );
    let off = wanted(&service(&[]));
    seen.policies = vec![PROXY_POLICY.into()];
    seen.backends = vec![(30080, vec![PROXY_POLICY.into()]), (30081, vec![PROXY_POLICY.into()])];
    assert_eq!(
        plan(&on, &seen).len(),
        1,
        "a port without listener loses it: {:?}",
        plan(&on, &seen)
    );
    let ports: Vec<String> = plan(&off, &seen);
    assert_eq!(
        ports,
        [30080, 30081].map(|port| format!(
            "SetLoadBalancerPoliciesForBackendServer&LoadBalancerName=lb&InstancePort={port}&PolicyNames="
        ))
    );
}

#[test]
fn the_tls_policy_is_set_on_listeners_with_tls_only() {
    let mut both = service(&[
        ("ssl-cert", "arn:c"),
        ("ssl-ports", "443"),
        ("ssl-negotiation-policy", "ELBSecurityPolicy-1"),
    ]);
    both.ports.push(port(443, 30443));
    let wanted = wanted(&both);
    let steps = plan(&wanted, &settled(&wanted));
    assert_eq!(
        steps,
        [
            "CreateLoadBalancerPolicy&LoadBalancerName=lb&PolicyName=k8s-SSLNegotiationPolicy-ELBSecurityPolicy-1\
             &PolicyTypeName=SSLNegotiationPolicyType&PolicyAttributes.member.1.AttributeName=Reference-Security-Policy\
             &PolicyAttributes.member.1.AttributeValue=ELBSecurityPolicy-1",
            "SetLoadBalancerPoliciesOfListener&LoadBalancerName=lb&LoadBalancerPort=443\
             &PolicyNames.member.1=k8s-SSLNegotiationPolicy-ELBSecurityPolicy-1",
        ]
    );
}

#[test]
fn subnet_is_detached_before_its_zones_next_but_never_all() {
    let wanted = wanted(&service(&[]));
    let actions = |subnets: &[&str]| {
        let seen = Seen {
            subnets: subnets.iter().map(|one| (*one).to_owned()).collect(),
            ..settled(&wanted)
        };
        update(&wanted, &seen)
            .iter()
            .map(|step| step.action)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        actions(&["subnet-a", "subnet-old"]),
        ["DetachLoadBalancerFromSubnets", "AttachLoadBalancerToSubnets"]
    );
    assert_eq!(
        actions(&["subnet-old"]),
        ["AttachLoadBalancerToSubnets", "DetachLoadBalancerFromSubnets"]
    );
    assert_eq!(actions(&["subnet-a"]), ["AttachLoadBalancerToSubnets"]);
}

#[test]
fn attributes_that_are_off_have_no_details() {
    let all = wanted(&service(&[
        ("cross-zone-load-balancing-enabled", "true"),
        ("access-log-enabled", "true"),
        ("access-log-emit-interval", "5"),
        ("access-log-s3-bucket-name", "logs"),
        ("access-log-s3-bucket-prefix", "web"),
        ("connection-draining-enabled", "true"),
        ("connection-draining-timeout", "7"),
        ("connection-idle-timeout", "90"),
    ]));
    let none = wanted(&service(&[]));
    let on = all.attributes.clone();
    assert!(on.fit(&all.attributes) && !on.fit(&none.attributes) && !none.attributes.fit(&on));
    let mut details = none.attributes.clone();
    details.access_log.bucket = "left over".into();
    details.access_log.interval = 5;
    assert!(details.fit(&none.attributes));
    let steps = plan(&all, &settled(&none));
    let modify = steps
        .iter()
        .find(|step| step.starts_with("ModifyLoadBalancerAttributes"))
        .unwrap();
    for part in [
        "AccessLog.EmitInterval=5",
        "S3BucketName=logs",
        "S3BucketPrefix=web",
        "ConnectionDraining.Timeout=7",
        "IdleTimeout=90",
    ] {
        assert!(modify.contains(part), "{part}: {modify}");
    }
}

#[test]
fn health_check_is_port_service_or_annotation() {
    let target = |service: &Service| wanted(service).health.target;
    let mut local = service(&[]);
    local.health_check_node_port = Some(32000);
    assert_eq!(target(&local), "HTTP:32000/healthz");
    local.annotations = service(&[("healthcheck-port", "traffic-port"), ("healthcheck-path", "/up")]).annotations;
    assert_eq!(target(&local), "HTTP:30080/up");
    assert_eq!(target(&service(&[("backend-protocol", "ssl")])), "SSL:30080");
    assert_eq!(target(&service(&[("healthcheck-protocol", "http")])), "HTTP:30080/");
    let tcp = [
        ("healthcheck-protocol", "tcp"),
        ("healthcheck-port", "1234"),
        ("healthcheck-path", "/x"),
    ];
    assert_eq!(target(&service(&tcp)), "TCP:1234");
    let numbers = [
        ("healthcheck-healthy-threshold", "3"),
        ("healthcheck-unhealthy-threshold", "4"),
        ("healthcheck-timeout", "6"),
        ("healthcheck-interval", "20"),
    ];
    let health = wanted(&service(&numbers)).health;
    assert_eq!(
        (health.healthy, health.unhealthy, health.timeout, health.interval),
        (3, 4, 6, 20)
    );
    let mut config = Config::default();
    config.global.health_probe_mode = "Shared".into();
    let settings = Settings::read(&service(&[]), Kind::Classic).unwrap();
    assert_eq!(
        health_check(&service(&[]), &settings, &config).target,
        "HTTP:10256/healthz"
    );
}

#[test]
fn instances_come_before_others_go() {
    let ids = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
    let (come, go) = instances("lb", &ids(&["i-1", "i-2"]), &ids(&["i-2", "i-3"]));
    let text = |step: Option<Step>| step.map(|step| step.text()).unwrap_or_default();
    assert_eq!(
        text(come),
        "RegisterInstancesWithLoadBalancer&LoadBalancerName=lb&Instances.member.1.InstanceId=i-1"
    );
    assert_eq!(
        text(go),
        "DeregisterInstancesFromLoadBalancer&LoadBalancerName=lb&Instances.member.1.InstanceId=i-3"
    );
    assert_eq!(instances("lb", &ids(&["i-1"]), &ids(&["i-1"])), (None, None));
}
