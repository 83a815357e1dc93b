//! Settings, credentials and refusals.

use cloudwit_guest_sdk::testing::{FakeAnswer, FakeHost};
use serde_json::json;

use super::settings::{Class, LbService};
use super::testing::{CONFIG, Manager, URL, refused};
use super::*;

/// As upstream's README has it, with a little of everything.
const INI: &str = "[VirtualCenter \"vc.test\"]\n[NSXT]\nuser = admin\npassword = \"p4ss&=\"\nhost = nsx.test:8443\nca-file = /ca.pem\n[LoadBalancer]\n\
    ip-pool-name = pool1\nsize = MEDIUM\nlb-service-id = 4711\ntier1-gateway-path = /infra/tier-1s/12345\ntcp-app-profile-name = tcp\n\
    udp-app-profile-name = udp\nsnat-disabled = true\ntags = {\\\"owner\\\": \\\"me\\\", \\\"tag1\\\": \\\"value1\\\"}\n[LoadBalancerClass \"public\"]\n\
    ip-pool-id = poolPublic\n[LoadBalancerClass \"private\"]\nip-pool-name = poolPrivate\ntcp-app-profile-path = /infra/lb-app-profiles/x\n\
    [Route]\nrouter-path = /infra/tier-1s/12345\n";

/// The same in YAML.
const YAML: &str = "vcenter: {vc.test: {}}\nnsxt:\n  user: admin\n  password: 'p4ss&='\n  host: nsx.test:8443\n  caFile: /ca.pem\nloadBalancer:\n  ipPoolName: pool1\n  \
    size: MEDIUM\n  lbServiceId: 4711\n  tier1GatewayPath: /infra/tier-1s/12345\n  tcpAppProfileName: tcp\n  udpAppProfileName: udp\n  snatDisabled: true\n  \
    tags: {owner: me, tag1: value1}\nloadBalancerClass:\n  public: {ipPoolID: poolPublic}\n  private:\n    ipPoolName: poolPrivate\n    \
    tcpAppProfilePath: /infra/lb-app-profiles/x\nroute:\n  routerPath: /infra/tier-1s/12345\n";

fn host(config: &str) -> FakeHost {
    let host = FakeHost::new();
    host.config(config)
        .secret("vc.test.username", "u")
        .secret("vc.test.password", "p");
    host
}

fn problems(config: &str) -> Vec<String> {
    let problems = host(config).check::<Vsphere>();
    problems
        .into_iter()
        .map(|problem| format!("{}: {}", problem.at, problem.message))
        .collect()
}

fn disabled_by(config: &str) -> Option<String> {
    let description = host(config).describe::<Vsphere>();
    let found = description
        .extra
        .into_iter()
        .find(|pair| pair.key == "disabled-interfaces");
    found.map(|pair| pair.value)
}

#[test]
fn yaml_and_ini_mean_the_same() {
    let mut shown = Vec::new();
    for config in [YAML, INI] {
        assert_eq!(problems(config), [""; 0], "{config}");
        let provider: Vsphere = host(config).provider();
        let settings = provider.settings.nsx.unwrap();
        let balancers = settings.balancers.as_ref().unwrap();
        let given = LbService::Given {
            id: "4711".into(),
            gateway: Some("/infra/tier-1s/12345".into()),
        };
        assert_eq!(
            (settings.url.as_str(), &balancers.service),
            ("https://nsx.test:8443", &given)
        );
        assert_eq!(
            (balancers.owner.as_str(), balancers.tags.len(), balancers.snat_disabled),
            ("me", 1, true)
        );
        assert_eq!(settings.gateway.as_deref(), Some("/infra/tier-1s/12345"));
        let name = |name: &str| Reference::Name(name.into());
        let private = Class {
            name: "private".into(),
            pool: name("poolPrivate"),
            tcp: Reference::Exact("/infra/lb-app-profiles/x".into()),
            udp: name("udp"),
        };
        assert_eq!(balancers.classes["private"], private);
        assert_eq!(balancers.classes["public"].pool, Reference::Exact("poolPublic".into()));
        assert_eq!(balancers.classes["default"].pool, name("pool1"));
        shown.push(format!("{settings:?}"));
    }
    assert_eq!(shown[0], shown[1]);
    assert!(!shown[0].contains("p4ss"), "{}", shown[0]);
}

#[test]
fn a_config_without_nsx_switches_both_off_and_asks_for_nothing() {
    let config = "vcenter: {vc.test: {}}\n";
    assert_eq!(disabled_by(config).as_deref(), Some("load-balancers,routes"));
    let description = host(config).describe::<Vsphere>();
    assert_eq!((description.http.len(), description.secrets.len()), (1, 2));
    let host = host(config);
    let provider: Vsphere = host.provider();
    let service = Service::new("default", "web", "1");
    for failure in [
        provider.get(&service).map(drop),
        provider.ensure(&service, &[], None).map(drop),
        provider.update_targets(&service, &[], None).map(drop),
        provider.delete(&service, None).map(drop),
        provider.list().map(drop),
        provider.apply(&[], &[], &RouteTokens::none()).map(drop),
    ] {
        assert_eq!(failure.unwrap_err().kind, FailureKind::ImplementedElsewhere);
    }
    assert_eq!(host.requests().len(), 0);
    assert_eq!(disabled_by(CONFIG), None);
    let only_routes = "vcenter: {vc.test: {}}\nnsxt: {host: nsx.test}\nroute: {routerPath: /infra/tier-1s/t}\n";
    assert_eq!(disabled_by(only_routes).as_deref(), Some("load-balancers"));
    let unused = problems("vcenter: {vc.test: {}}\nnsxt: {host: nsx.test}\n");
    assert!(
        unused[0].starts_with("nsxt: neither loadBalancer nor route"),
        "{unused:?}"
    );
}

#[test]
fn everything_that_is_wrong_is_reported_together() {
    let found = problems(
        "vcenter: {vc.test: {}}\nnsxt: {host: 'https://nsx.test', insecureFlag: true, user: me, vmcAccessToken: t, clientAuthCertFile: /c}\n\
         loadBalancer: {size: HUGE, tier1GatewayPath: /infra/tier-0s/x, ipPoolName: a, ipPoolId: b, tcpAppProfileName: t}\n\
         loadBalancerClass: {a: {ipPoolName: c}}\nroute: {routerPath: t1}\n",
    );
    for part in [
        "nsxt.host: \"https://nsx.test\" is no NSX manager",
        "nsxt.insecureFlag: the server's certificate is always checked",
        "nsxt.vmcAuthHost: this is missing",
        "nsxt.clientAuthKeyFile: this is missing; write the file of the private key",
        "nsxt.password: this is missing",
        "route.routerPath: \"t1\" is no path of a tier-1 gateway",
        "loadBalancer.tier1GatewayPath: \"/infra/tier-0s/x\" is no path",
        "loadBalancer.size: \"HUGE\" is no size; write SMALL, MEDIUM",
        "loadBalancer.ipPoolId: write this or ipPoolName, not both",
        "loadBalancer.udpAppProfileName: this is missing",
        "loadBalancerClass.a.udpAppProfileName: this is missing",
    ] {
        assert!(
            found.iter().any(|problem| problem.starts_with(part)),
            "{part} is missing in {found:#?}"
        );
    }
    assert_eq!(found.len(), 11, "{found:#?}");
    let managed = problems(
        "vcenter: {vc.test: {}}\nloadBalancerClass: {default: {ipPoolName: c, tcpAppProfileName: t, udpAppProfileName: u}}\n",
    );
    let starts = [
        "nsxt.host: \"\" is no NSX manager",
        "loadBalancer.tier1GatewayPath: this is missing",
        "loadBalancer.size: this is missing",
    ];
    assert!(
        managed.len() == 3
            && starts
                .iter()
                .all(|start| managed.iter().any(|problem| problem.starts_with(start))),
        "{managed:#?}"
    );
}

#[test]
fn manager_token_service_and_secrets_are_asked_for() {
    let names = |config: &str| {
        let description = host(config).describe::<Vsphere>();
        let wishes: Vec<String> = description
            .http
            .iter()
            .skip(1)
            .map(|wish| format!("{} {}", wish.host, wish.methods.join(",")))
            .collect();
        let secrets: Vec<String> = description
            .secrets
            .iter()
            .skip(2)
            .map(|wish| format!("{} {}", wish.name, wish.hosts.join(",")))
            .collect();
        (wishes, secrets)
    };
    let with = |nsxt: &str| {
        format!(
            "vcenter: {{vc.test: {{}}}}\nnsxt: {{host: nsx.test, {nsxt}}}\nroute: {{routerPath: /infra/tier-1s/t}}\n"
        )
    };
    let all = "nsx.test GET,POST,PUT,PATCH,DELETE".to_owned();
    let (wishes, secrets) = names(&with("secretName: x, secretNamespace: y"));
    assert_eq!(
        (wishes, secrets),
        (
            vec![all.clone()],
            vec!["nsxt.username nsx.test".into(), "nsxt.password nsx.test".into()]
        )
    );
    assert_eq!(
        names(&with("remoteAuth: true")).1,
        ["nsxt.remote-authorization nsx.test"]
    );
    let (wishes, secrets) = names(&with("vmcAuthHost: cloud.test/authorize"));
    assert_eq!(wishes, [all, "cloud.test POST".into()]);
    assert_eq!(secrets, ["nsxt.vmc-access-token cloud.test"]);
    for nothing in ["user: u, password: p", "user: u, password: p, remoteAuth: true"] {
        assert_eq!(names(&with(nothing)).1, [""; 0], "{nothing}");
    }
}

#[test]
fn a_session_serves_all_calls_and_is_renewed_once() {
    let (host, manager) = Manager::start(CONFIG);
    let provider: Vsphere = host.provider();
    let logins = || {
        host.requests()
            .iter()
            .filter(|request| request.url.ends_with("/session/create"))
            .count()
    };
    provider.list().unwrap();
    provider.list().unwrap();
    assert_eq!(logins(), 1);
    let login = &host.requests()[0];
    assert_eq!(login.form().len(), 2);
    let last = host.requests().pop().unwrap();
    assert_eq!(
        (last.header("cookie"), last.header("x-xsrf-token")),
        (Some("JSESSIONID=s1"), Some("x1"))
    );
    manager.fails("GET", "static-routes", refused(401, 401, "expired"));
    provider.list().unwrap();
    assert_eq!(logins(), 2);
    // A young session that is denied is denied by the user's role.
    manager.fails("GET", "static-routes", refused(403, 289, "no permission"));
    let failure = provider.list().unwrap_err();
    assert_eq!(
        (failure.kind, failure.code.as_deref(), logins()),
        (FailureKind::Denied, Some("289"), 2)
    );
    host.now(1_000_100);
    manager.fails("GET", "static-routes", refused(403, 98, "XSRF"));
    provider.list().unwrap();
    assert_eq!(logins(), 3);
}

#[test]
fn a_refused_login_is_not_repeated_until_the_account_is_locked() {
    let (host, manager) = Manager::start(CONFIG);
    let provider: Vsphere = host.provider();
    manager.fails("POST", "session", refused(403, 403, "The credentials were incorrect"));
    for _ in 0..5 {
        let failure = provider.list().unwrap_err();
        assert!(
            failure.kind == FailureKind::Denied && failure.message.contains("incorrect"),
            "{failure:?}"
        );
    }
    assert_eq!(host.requests().len(), 1);
    host.now(1_000_301);
    provider.list().unwrap();
}

#[test]
fn tokens_of_vmware_cloud_and_remote_users_are_sent_as_such() {
    let config = "vcenter: {vc.test: {}}\nnsxt: {host: nsx.test, vmcAuthHost: cloud.test/authorize}\nroute: {routerPath: /infra/tier-1s/t}\n";
    let host = host(config);
    host.secret("nsxt.vmc-access-token", "r");
    let provider: Vsphere = host.provider();
    host.serve(
        |request| match request.url.starts_with("https://cloud.test/authorize") {
            true => FakeAnswer::json(
                200,
                &json!({ "access_token": "a1", "expires_in": 1799, "token_type": "bearer" }),
            ),
            false => FakeAnswer::json(200, &json!({ "results": [], "result_count": 0 })),
        },
    );
    provider.list().unwrap();
    assert_eq!(host.requests()[1].header("authorization"), Some("Bearer a1"));
    drop((provider, host));
    let config = "vcenter: {vc.test: {}}\nnsxt: {host: nsx.test, user: u, password: p, remoteAuth: true}\nroute: {routerPath: /infra/tier-1s/t}\n";
    let host = self::host(config);
    let provider: Vsphere = host.provider();
    host.serve(|_| FakeAnswer::json(200, &json!({ "results": [], "result_count": 0 })));
    provider.list().unwrap();
    assert_eq!(host.requests()[0].header("authorization"), Some("Remote dTpw"));
}

#[test]
fn a_client_certificate_is_the_grants_and_no_request_logs_in() {
    let route = "route: {routerPath: /infra/tier-1s/t}\n";
    let yaml = format!(
        "vcenter: {{vc.test: {{}}}}\nnsxt: {{host: nsx.test, clientAuthCertFile: /c.pem, clientAuthKeyFile: /c.key}}\n{route}"
    );
    let ini = "[VirtualCenter \"vc.test\"]\n[NSXT]\nhost = nsx.test\nclient-auth-cert-file = /c.pem\nclient-auth-key-file = /c.key\n\
               [Route]\nrouter-path = /infra/tier-1s/t\n";
    for config in [yaml.as_str(), ini] {
        assert_eq!(problems(config), [""; 0], "{config}");
        let description = host(config).describe::<Vsphere>();
        assert_eq!(description.secrets.len(), 2, "those of vCenter");
        let wish = &description.http[1];
        let told = wish.reason.contains("clientCertificate: /c.pem, clientKey: /c.key");
        assert!(wish.host == "nsx.test" && told, "{wish:?}");
        assert!(!wish.methods.contains(&"POST".to_owned()), "{wish:?}");
        let host = host(config);
        let provider: Vsphere = host.provider();
        host.serve(|_| FakeAnswer::json(200, &json!({ "results": [], "result_count": 0 })));
        provider.list().unwrap();
        let requests = host.requests();
        assert_eq!(requests.len(), 1, "{requests:?}");
        for header in ["authorization", "cookie", "x-xsrf-token"] {
            assert_eq!(requests[0].header(header), None);
        }
        host.serve(|_| refused(403, 403, "The credentials were incorrect"));
        let failure = provider.list().unwrap_err();
        assert_eq!(failure.kind, FailureKind::Denied);
        let said = "as the principal identity of the grant's client certificate (clientCertificate: /c.pem, clientKey: /c.key): GET ";
        assert!(
            failure.message.starts_with(said) && failure.message.ends_with("The credentials were incorrect"),
            "{failure:?}"
        );
    }
    let both = yaml.replace("{host: nsx.test,", "{host: nsx.test, user: u, vmcAccessToken: t,");
    let found = problems(&both);
    assert!(
        found.len() == 2
            && found
                .iter()
                .all(|one| one.contains("no effect beside clientAuthCertFile")),
        "{found:?}"
    );
    let half = problems(&yaml.replace("clientAuthCertFile: /c.pem, ", ""));
    assert!(
        half[0].starts_with("nsxt.clientAuthCertFile: this is missing"),
        "{half:?}"
    );
}

#[test]
fn refusals_follow_status_and_proxy_page_is_no_denial() {
    let (host, manager) = Manager::start(CONFIG);
    let provider: Vsphere = host.provider();
    provider.list().unwrap();
    for (answer, kind) in [
        (refused(404, 500090, "gone"), FailureKind::NotFound),
        (refused(400, 220, "wrong"), FailureKind::Invalid),
        (refused(429, 98, "slow"), FailureKind::RateLimited),
        (FakeAnswer::new(404, &[], "<html>"), FailureKind::Unavailable),
        (
            FakeAnswer::new(503, &[("retry-after", "7")], "busy"),
            FailureKind::RateLimited,
        ),
    ] {
        manager.fails("GET", "static-routes", answer);
        assert_eq!(provider.list().unwrap_err().kind, kind);
    }
    // A GET is requested once again.
    manager.fails("GET", "static-routes", FakeAnswer::new(502, &[], "bad gateway"));
    provider.list().unwrap();
    assert!(host.requests().iter().all(|request| request.url.starts_with(URL)));
}

#[test]
fn pages_are_followed() {
    let config = "vcenter: {vc.test: {}}\nnsxt: {host: nsx.test, user: u, password: p, remoteAuth: true}\nroute: {routerPath: /infra/tier-1s/t}\n";
    let host = host(config);
    let provider: Vsphere = host.provider();
    let route = |id: &str| json!({ "id": id, "network": "10.0.0.0/24", "tags": [{ "scope": "vsphere.k8s.io/cluster-name", "tag": "test" }] });
    host.cluster("test", &[]);
    host.serve(move |request| match request.query("cursor").as_deref() {
        None => FakeAnswer::json(
            200,
            &json!({ "results": [route("a"), "odd"], "result_count": 2, "cursor": "c 1" }),
        ),
        Some("c 1") => FakeAnswer::json(200, &json!({ "results": [route("b")], "result_count": 2 })),
        other => panic!("{other:?}"),
    });
    assert_eq!(provider.list().unwrap().len(), 2);
}
