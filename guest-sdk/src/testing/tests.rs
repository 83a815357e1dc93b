//! A provider of a few lines, called as the host calls it; and answers of the fake host to mistakes.

use serde::Deserialize;
use serde_json::json;

use super::*;
use crate::prelude::*;
use crate::types::FailureKind;

#[derive(Deserialize)]
struct LabConfig {
    endpoint: String,
}

struct Lab {
    api: Http,
    cloud: Context,
}

impl Provider for Lab {
    type Config = LabConfig;

    fn describe(config: Option<&LabConfig>) -> Description {
        let wish = config.and_then(|config| HttpWish::for_url(&config.endpoint, &["GET"], "its API"));
        Description::new("lab", "1.2.3")
            .prefix("lab://")
            .http(wish)
            .secret(SecretWish::new("token", &[SecretUse::Placeholder], "its token"))
    }

    fn validate(config: &LabConfig, problems: &mut Problems) {
        if !config.endpoint.starts_with("https://") {
            problems.add("endpoint", "this must begin with https://");
        }
    }

    fn new(config: LabConfig, cloud: Context) -> Result<Self, Failure> {
        Ok(Self {
            api: cloud.http().base(&config.endpoint),
            cloud,
        })
    }

    fn probe(&self) -> Result<(), Failure> {
        info!(who = "lab", tries = 2, "asking {}", "me");
        self.cloud.service_event(EventKind::Warning, "Slow", "it takes a while");
        self.cloud.node_event("n", EventKind::Normal, "Fast", "it does not");
        self.api.get("/me").send().map(drop)
    }
}

impl Instances for Lab {
    fn lookup(&self, nodes: &[NodeRef]) -> Result<Vec<Result<Presence, Failure>>, Failure> {
        Ok(nodes.iter().map(|_| Ok(Presence::Absent(Evidence::ByName))).collect())
    }
}

register_provider!(Lab: Instances);

fn host() -> FakeHost {
    let host = FakeHost::new();
    host.value("endpoint", "https://lab.test");
    host
}

#[test]
fn provider_is_built_from_configuration_and_called() {
    let host = host();
    host.expect("GET", "https://lab.test/me").answers(200, json!({}));
    assert_eq!(host.provider::<Lab>().probe(), Ok(()));
    assert_eq!(host.provider::<Lab>().lookup(&[NodeRef::named("a")]).unwrap().len(), 1);
    let description = host.describe::<Lab>();
    assert_eq!(
        (description.http[0].host.as_str(), description.http[0].port),
        ("lab.test", None)
    );
}

#[test]
fn exports_go_through_the_same_door() {
    use crate::bindings::info::exports::cloudwit::provider::info::Guest as Info;
    use crate::bindings::instances::exports::cloudwit::provider::instances::Guest as Exported;
    let host = host();
    assert_eq!(<Lab as Info>::check(), []);
    assert_eq!(<Lab as Exported>::lookup(vec![NodeRef::named("a")]).unwrap().len(), 1);

    host.value("endpoint", "ftp://lab.test");
    assert_eq!(<Lab as Info>::check()[0].at, "endpoint");
    assert_eq!(
        <Lab as Info>::describe().http,
        [],
        "a wrong configuration still gives a description"
    );
    let refused = <Lab as Exported>::lookup(vec![]).unwrap_err();
    assert!(
        matches!(&refused, Failure { kind: FailureKind::Invalid, message: text, .. } if text.contains("https://")),
        "{refused:?}"
    );
}

#[test]
fn logs_and_events_are_kept() {
    let host = host();
    host.expect("GET", "https://lab.test/me").answers(200, json!({}));
    host.provider::<Lab>().probe().unwrap();
    let line = LogLine {
        level: Level::Info,
        message: "asking me".into(),
        fields: vec![Pair::new("who", "lab"), Pair::new("tries", "2")],
    };
    assert_eq!(host.logs(), [line]);
    let events = host.events();
    assert_eq!((events[0].node.as_deref(), events[0].reason.as_str()), (None, "Slow"));
    assert_eq!(
        (events[1].node.as_deref(), events[1].kind),
        (Some("n"), EventKind::Normal)
    );
}

#[test]
fn the_cluster_is_visible_once_it_is_granted() {
    let host = host();
    let cloud = Context::new();
    assert!(matches!(
        cloud.nodes(),
        Err(Failure {
            kind: FailureKind::Denied,
            ..
        })
    ));
    let node = ClusterNode {
        ref_: NodeRef::named("a"),
        labels: vec![],
        pod_cidrs: vec![],
    };
    host.cluster("blue", &["10.0.0.0/8"]).view(vec![node], vec![]);
    assert_eq!((cloud.nodes().unwrap().len(), cloud.services().unwrap().len()), (1, 0));
    assert_eq!(
        (cloud.cluster().name, cloud.cluster().cidrs),
        ("blue".into(), vec!["10.0.0.0/8".into()])
    );
}

#[test]
#[should_panic(expected = "unexpected request, no further one is expected:\n  GET https://lab.test/me")]
fn a_request_too_many_is_named() {
    let _ = host().provider::<Lab>().probe();
}

#[test]
#[should_panic(expected = "expected:\n  PUT https://lab.test/me")]
fn another_request_is_shown_with_the_expected_one() {
    let host = host();
    host.expect("PUT", "https://lab.test/me").answers(200, json!({}));
    let _ = host.provider::<Lab>().probe();
}

#[test]
#[should_panic(expected = "1 expected request(s) were not made, first: GET https://lab.test/me")]
fn a_request_that_is_not_made_is_named() {
    host().expect("GET", "https://lab.test/me").answers(200, json!({}));
}

#[test]
#[should_panic(expected = "the provider cannot be made")]
fn a_wrong_configuration_is_shown() {
    FakeHost::new().provider::<Lab>();
}
