use std::collections::BTreeSet;
use std::task::{Context, Poll, Waker};

use super::*;
use crate::{FaultKind, Instance, ProviderFault};

/// A cloud that answers by its own rules and notes what it was asked.
struct Fake {
    name: &'static str,
    prefixes: Vec<String>,
    abilities: Abilities,
    /// Machines by Node name, with the ids they get.
    machines: BTreeMap<&'static str, &'static str>,
    down: Mutex<Option<CloudError>>,
    routes: Mutex<Vec<Route>>,
    calls: Mutex<Vec<String>>,
}

impl Fake {
    fn new(name: &'static str, prefix: &str) -> Self {
        Self {
            name,
            prefixes: Vec::from_iter((!prefix.is_empty()).then(|| prefix.to_owned())),
            abilities: Abilities {
                instances: true,
                load_balancers: true,
                routes: true,
            },
            machines: BTreeMap::new(),
            down: Mutex::default(),
            routes: Mutex::default(),
            calls: Mutex::default(),
        }
    }

    fn answer<T: Send + 'static>(&self, call: String, answer: T) -> Answer<'static, T> {
        self.calls.lock().unwrap().push(call);
        let down = self.down.lock().unwrap().clone();
        Box::pin(std::future::ready(down.map_or(Ok(answer), Err)))
    }

    fn calls(&self) -> Vec<String> {
        std::mem::take(&mut *self.calls.lock().unwrap())
    }

    fn fail(&self, error: impl Into<CloudError>) {
        *self.down.lock().unwrap() = Some(error.into());
    }
}

impl Cloud for Fake {
    fn identity(&self) -> ProviderIdentity {
        ProviderIdentity {
            name: "described".into(),
            version: "1".into(),
            digest: format!("digest-{}", self.name),
            provider_id_prefixes: self.prefixes.clone(),
        }
    }

    fn abilities(&self) -> Abilities {
        self.abilities
    }

    fn lookup<'a>(&'a self, nodes: &'a [NodeRef]) -> Answer<'a, Vec<Result<Presence, Failure>>> {
        let names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
        let answers = names.iter().map(|name| {
            Ok(self.machines.get(name).map_or(Presence::Absent(Evidence::ById), |id| {
                Presence::Running(Instance {
                    provider_id: (*id).into(),
                    ..Instance::default()
                })
            }))
        });
        self.answer(format!("lookup {}", names.join(" ")), answers.collect())
    }

    fn get_balancer<'a>(&'a self, _: &'a Service) -> Answer<'a, Option<Balancer>> {
        self.answer("get".into(), None)
    }

    fn ensure_balancer<'a>(
        &'a self,
        _: &'a Service,
        targets: &'a [Target],
        _: Option<&'a str>,
    ) -> Answer<'a, Balancer> {
        let change = |key: &str| AnnotationChange {
            key: key.into(),
            value: Some("x".into()),
        };
        let names: Vec<&str> = targets.iter().map(|target| target.node.name.as_str()).collect();
        let balancer = Balancer {
            ingress: Vec::new(),
            annotations: vec![change(BALANCER_PROVIDER), change(PROVIDER), change("cloud.example/id")],
        };
        self.answer(format!("ensure {}", names.join(" ")), balancer)
    }

    fn update_targets<'a>(
        &'a self,
        _: &'a Service,
        targets: &'a [Target],
        _: Option<&'a str>,
    ) -> Answer<'a, Vec<AnnotationChange>> {
        self.answer(format!("update {}", targets.len()), Vec::new())
    }

    fn delete_balancer<'a>(&'a self, _: &'a Service, _: Option<&'a str>) -> Answer<'a, Vec<AnnotationChange>> {
        self.answer("delete".into(), Vec::new())
    }

    fn list_routes(&self) -> Answer<'_, Vec<Route>> {
        self.answer("list".into(), self.routes.lock().unwrap().clone())
    }

    fn apply_routes<'a>(&'a self, create: &'a [NewRoute], delete: &'a [Route]) -> Answer<'a, RouteOutcome> {
        let create_to: Vec<&str> = create.iter().map(|route| route.node.name.as_str()).collect();
        let ids: Vec<&str> = delete.iter().map(|route| route.id.as_str()).collect();
        let outcome = RouteOutcome {
            created: vec![Ok(()); create.len()],
            deleted: vec![Ok(()); delete.len()],
        };
        self.answer(format!("apply +{} -{}", create_to.join(" "), ids.join(" ")), outcome)
    }
}

struct Stage {
    router: Router,
    a: Arc<Fake>,
    b: Arc<Fake>,
}

fn member(name: &str, cloud: &Arc<Fake>) -> Member {
    Member {
        name: name.into(),
        cloud: Arc::clone(cloud) as Arc<dyn Cloud>,
        provider_id_prefixes: None,
    }
}

fn join(a: Fake, b: Fake, rules: ServiceRules) -> Stage {
    let (a, b) = (Arc::new(a), Arc::new(b));
    let router = Router::new(vec![member("a", &a), member("b", &b)], "a", rules).unwrap();
    Stage { router, a, b }
}

fn two() -> Stage {
    let mut a = Fake::new("a", "a://");
    a.machines = [("n1", "a://1"), ("new", "a://9")].into();
    let mut b = Fake::new("b", "b://");
    b.machines = [("n2", "b://2"), ("new", "b://9")].into();
    join(a, b, ServiceRules::default())
}

fn node(name: &str, id: &str) -> NodeRef {
    NodeRef {
        name: name.into(),
        provider_id: (!id.is_empty()).then(|| id.to_owned()),
        ..NodeRef::default()
    }
}

fn now<T>(mut answer: Answer<'_, T>) -> Result<T, CloudError> {
    match answer.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("nothing here waits"),
    }
}

fn ids(answers: &[Result<Presence, Failure>]) -> Vec<String> {
    let text = |answer: &Result<Presence, Failure>| match answer {
        Ok(Presence::Absent(evidence)) => format!("{evidence:?}"),
        Ok(presence) => presence.instance().unwrap().provider_id.clone(),
        Err(failure) => format!("!{failure}"),
    };
    answers.iter().map(text).collect()
}

#[test]
fn each_node_is_asked_of_its_own_cloud_and_the_answers_keep_the_order() {
    let Stage { router, a, b } = two();
    let nodes = [
        node("n2", "b://2"),
        node("n1", "a://1"),
        node("gone", "b://3"),
        node("x", "c://1"),
    ];
    let answers = now(router.lookup(&nodes)).unwrap();
    let seen = ids(&answers);
    assert_eq!(seen[..3], ["b://2", "a://1", "ById"]);
    assert!(
        seen[3].starts_with("!invalid: the provider id c://1 is not of a configured provider"),
        "{seen:?}"
    );
    assert_eq!(
        (a.calls(), b.calls()),
        (vec!["lookup n1".into()], vec!["lookup n2 gone".into()])
    );
}

#[test]
fn one_cloud_that_fails_fails_only_its_own_nodes() {
    let Stage { router, b, .. } = two();
    b.fail(Failure::Unavailable("no route to host".into()));
    let nodes = [node("n1", "a://1"), node("n2", "b://2")];
    let answers = now(router.lookup(&nodes)).unwrap();
    assert_eq!(ids(&answers), ["a://1", "!unavailable: no route to host"]);
    let fault = ProviderFault {
        provider: "b".into(),
        kind: FaultKind::Trap,
        message: "unreachable".into(),
        output: String::new(),
    };
    b.fail(fault.clone());
    let answers = now(router.lookup(&nodes)).unwrap();
    assert!(
        matches!(&answers[1], Err(Failure::Unavailable(text)) if text.contains("crashed")),
        "{answers:?}"
    );
    assert_eq!(
        now(router.lookup(&nodes[1..])).unwrap_err(),
        CloudError::Fault(fault),
        "asked alone, as it is"
    );
}

#[test]
fn a_node_without_an_id_is_asked_of_the_provider_in_its_label_else_of_the_default() {
    let Stage { router, a, b } = two();
    let labelled = |name: &str| NodeRef {
        provider: Some(name.into()),
        ..node("new", "")
    };
    let answers = now(router.lookup(&[node("new", ""), labelled("b"), labelled("c"), node("unknown", "")])).unwrap();
    let seen = ids(&answers);
    assert_eq!(seen[..2], ["a://9", "b://9"]);
    assert!(
        seen[2].contains("names the provider \"c\", which is not configured"),
        "{seen:?}"
    );
    assert_eq!(
        seen[3], "ByName",
        "absence without an id is never more than a search that found nothing"
    );
    assert_eq!((a.calls().len(), b.calls().len()), (1, 1));
}

#[test]
fn a_machine_with_an_id_of_another_provider_is_not_taken_from_this_one() {
    let mut a = Fake::new("a", "a://");
    a.machines = [("new", "b://9"), ("odd", "z://1")].into();
    let stage = join(a, Fake::new("b", "b://"), ServiceRules::default());
    let answers = now(stage.router.lookup(&[node("new", ""), node("odd", "")])).unwrap();
    for (answer, id) in answers.iter().zip(["b://9", "z://1"]) {
        let text = answer.as_ref().unwrap_err().to_string();
        assert!(
            text.contains("provider \"a\" answers with the machine") && text.contains(id),
            "{text}"
        );
    }
}

#[test]
fn a_provider_without_machines_is_not_asked_about_any() {
    let mut b = Fake::new("b", "b://");
    b.abilities.instances = false;
    let stage = join(Fake::new("a", "a://"), b, ServiceRules::default());
    let answers = now(stage.router.lookup(&[node("n", "b://1")])).unwrap();
    assert!(
        answers[0]
            .as_ref()
            .unwrap_err()
            .to_string()
            .contains("cannot be asked about machines")
    );
    assert!(stage.b.calls().is_empty());
}

#[test]
fn owners_carry_the_operators_names_and_prefixes() {
    let (a, b) = (Arc::new(Fake::new("a", "os://")), Arc::new(Fake::new("b", "os://")));
    let clash = Router::new(vec![member("a", &a), member("b", &b)], "a", ServiceRules::default()).unwrap_err();
    assert!(
        clash[0].contains("both give out provider ids that begin with \"os://\""),
        "{clash:?}"
    );
    let mut members = vec![member("a", &a), member("b", &b)];
    members[0].provider_id_prefixes = Some(vec!["os://north/".into()]);
    members[1].provider_id_prefixes = Some(vec!["os://south/".into()]);
    let router = Router::new(members, "b", ServiceRules::default()).unwrap();
    assert_eq!(router.owners().place(Some("os://north/1"), None), Some(0));
    assert_eq!(router.owners().place(None, None), Some(1));
    assert_eq!(
        router.identity().digest,
        "digest-a, digest-b",
        "a swap of either is seen"
    );
}

#[test]
fn unknown_names_in_the_rules_are_all_told() {
    let a = Arc::new(Fake::new("a", "a://"));
    let rules = ServiceRules {
        classes: [("c".into(), "x".into())].into(),
        annotations: [(("k".into(), "v".into()), "y".into())].into(),
    };
    let mistakes = Router::new(vec![member("a", &a)], "z", rules).unwrap_err();
    for name in ["\"x\"", "\"y\"", "\"z\""] {
        assert!(
            mistakes
                .iter()
                .any(|one| one.contains(name) && one.ends_with("known: a")),
            "{mistakes:?}"
        );
    }
}

fn service(annotations: &[(&str, &str)], class: Option<&str>) -> Service {
    Service {
        name: "web".into(),
        annotations: annotations.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect(),
        load_balancer_class: class.map(Into::into),
        ..Service::default()
    }
}

#[test]
fn class_goes_before_annotation_and_annotation_before_the_default() {
    let rules = ServiceRules {
        classes: [
            ("example.com/a".into(), "a".into()),
            ("example.com/b".into(), "b".into()),
        ]
        .into(),
        annotations: [(("lb".into(), "south".into()), "b".into())].into(),
    };
    let stage = join(Fake::new("a", "a://"), Fake::new("b", "b://"), rules);
    let wanted = |service: &Service| stage.router.balancer_provider(service).unwrap().unwrap();
    assert_eq!(wanted(&service(&[], None)), "a");
    assert_eq!(wanted(&service(&[], Some("example.com/b"))), "b");
    assert_eq!(wanted(&service(&[(PROVIDER, "b")], None)), "b");
    assert_eq!(wanted(&service(&[("lb", "south")], None)), "b");
    assert_eq!(wanted(&service(&[("lb", "north")], None)), "a");
    assert_eq!(wanted(&service(&[(PROVIDER, "b")], Some("example.com/a"))), "a");
    assert_eq!(wanted(&service(&[(PROVIDER, "a"), ("lb", "south")], None)), "a");
    let wrong = stage
        .router
        .balancer_provider(&service(&[(PROVIDER, "c")], None))
        .unwrap_err();
    assert_eq!(wrong.to_string(), "invalid: there is no provider \"c\"; known: a, b");
}

#[test]
fn calls_follow_the_load_balancer_until_it_is_deleted_where_it_is() {
    let Stage { router, a, b } = two();
    let moved = service(&[(BALANCER_PROVIDER, "b"), (PROVIDER, "a")], None);
    assert_eq!(router.balancer_provider(&moved).unwrap().as_deref(), Some("a"));
    let changes = now(router.delete_balancer(&moved, None)).unwrap();
    let key = BALANCER_PROVIDER.to_owned();
    assert_eq!(
        changes,
        [AnnotationChange { key, value: None }],
        "the note goes with the load balancer"
    );
    now(router.get_balancer(&moved)).unwrap();
    assert_eq!((a.calls(), b.calls()), (vec![], vec!["delete".into(), "get".into()]));
    let lost = service(&[(BALANCER_PROVIDER, "c")], None);
    let text = now(router.delete_balancer(&lost, None)).unwrap_err().to_string();
    assert!(
        text.contains("provider \"c\"") && text.contains("not configured"),
        "{text}"
    );
    assert!(
        a.calls().is_empty() && b.calls().is_empty(),
        "nobody else is asked to delete it"
    );
}

#[test]
fn a_load_balancer_gets_only_the_nodes_of_its_cloud_and_cannot_move_itself() {
    let Stage { router, a, b } = two();
    let targets: Vec<Target> = [node("n1", "a://1"), node("n2", "b://2"), node("x", "c://1")]
        .map(|node| Target { node, ready: true })
        .into();
    let balancer = now(router.ensure_balancer(&service(&[(PROVIDER, "b")], None), &targets, None)).unwrap();
    let keys: Vec<&str> = balancer.annotations.iter().map(|change| change.key.as_str()).collect();
    assert_eq!(keys, ["cloud.example/id"]);
    now(router.update_targets(&service(&[], None), &targets, None)).unwrap();
    assert_eq!(
        (a.calls(), b.calls()),
        (vec!["update 1".into()], vec!["ensure n2".into()])
    );
}

#[test]
fn a_provider_without_load_balancers_says_so() {
    let mut b = Fake::new("b", "b://");
    b.abilities.load_balancers = false;
    let stage = join(Fake::new("a", "a://"), b, ServiceRules::default());
    let text = now(stage
        .router
        .ensure_balancer(&service(&[(PROVIDER, "b")], None), &[], None))
    .unwrap_err()
    .to_string();
    assert!(text.contains("provider \"b\" offers no load balancers"), "{text}");
    assert!(stage.router.abilities().load_balancers);
}

fn route(id: &str, destination: &str) -> Route {
    Route {
        id: id.into(),
        destination: destination.into(),
        node: None,
        next_hops: Vec::new(),
        blackhole: false,
    }
}

fn new_route(node: NodeRef) -> NewRoute {
    NewRoute {
        name_hint: "u".into(),
        destination: "10.0.0.0/24".into(),
        node,
    }
}

#[test]
fn routes_are_changed_by_the_provider_that_listed_them_or_has_the_node() {
    let Stage { router, a, b } = two();
    a.routes.lock().unwrap().push(route("r1", "10.0.1.0/24"));
    b.routes.lock().unwrap().push(route("r1", "10.0.2.0/24"));
    let listed = now(router.list_routes()).unwrap();
    let ids: BTreeSet<&str> = listed.iter().map(|route| route.id.as_str()).collect();
    assert_eq!(ids, ["a:r1", "b:r1"].into());
    let create = [new_route(node("n2", "b://2")), new_route(node("x", "c://1"))];
    let outcome = now(router.apply_routes(&create, &[listed[1].clone(), route("r1", "10.9.0.0/24")])).unwrap();
    assert!(outcome.created[0].is_ok() && outcome.created[1].is_err());
    assert!(outcome.deleted[0].is_ok() && outcome.deleted[1].is_err());
    assert_eq!(
        (a.calls(), b.calls()),
        (vec!["list".into()], vec!["list".into(), "apply +n2 -r1".into()])
    );
}

#[test]
fn a_cloud_that_cannot_list_any_more_is_left_out_until_it_can() {
    let Stage { router, a, b } = two();
    a.routes.lock().unwrap().push(route("r", "10.0.1.0/24"));
    b.routes.lock().unwrap().push(route("r", "10.0.2.0/24"));
    assert_eq!(now(router.list_routes()).unwrap().len(), 2);
    assert!(router.unlisted().is_empty());
    b.fail(Failure::Unavailable("down".into()));
    assert_eq!(now(router.list_routes()).unwrap()[0].id, "a:r");
    assert!(router.unlisted()[&1].contains("down"), "{:?}", router.unlisted());
    let outcome =
        now(router.apply_routes(&[new_route(node("n1", "a://1")), new_route(node("n2", "b://2"))], &[])).unwrap();
    assert!(outcome.created[0].is_ok() && outcome.created[1].is_err(), "{outcome:?}");
    a.fail(Failure::Unavailable("down too".into()));
    let error = now(router.list_routes()).unwrap_err().to_string();
    assert!(
        error.contains("down too"),
        "what was listed before is not taken for what is: {error}"
    );
}

#[test]
fn a_cloud_that_never_could_list_is_left_out_until_it_can_and_the_others_go_on() {
    let Stage { router, a, b } = two();
    a.routes.lock().unwrap().push(route("r", "10.0.1.0/24"));
    b.fail(Failure::Unavailable("down".into()));
    let listed = now(router.list_routes()).unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].id, "a:r");
    let unlisted = router.unlisted();
    assert_eq!(unlisted.keys().collect::<Vec<_>>(), [&1]);
    assert!(
        unlisted[&1].contains("provider \"b\"") && unlisted[&1].contains("down"),
        "{unlisted:?}"
    );
    let read_only = crate::ReadOnly::new(Arc::new(router), |_| {});
    assert_eq!(read_only.unlisted(), unlisted);
}

#[test]
fn where_no_cloud_ever_listed_there_is_no_list() {
    let Stage { router, a, b } = two();
    a.fail(Failure::Unavailable("down".into()));
    b.fail(Failure::Unavailable("too".into()));
    let error = now(router.list_routes()).unwrap_err().to_string();
    assert!(error.contains("down"), "{error}");
    assert_eq!(router.unlisted().len(), 2);
}

#[test]
fn a_read_only_router_still_knows_whose_everything_is() {
    let Stage { router, .. } = two();
    let owners = router.owners();
    let read_only = crate::ReadOnly::new(Arc::new(router), |_| {});
    assert_eq!(read_only.owners(), owners);
    let provider = read_only.balancer_provider(&service(&[(PROVIDER, "b")], None)).unwrap();
    assert_eq!(provider.as_deref(), Some("b"));
}
