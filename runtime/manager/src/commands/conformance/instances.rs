//! `instances`: order, length and evidence; a cloud that fails is never absence.

use cloudwit_model::{Cloud as _, CloudError, Evidence, Failure, NodeRef, Presence};

use crate::commands::conformance::report::{Promise, Report};
use crate::commands::conformance::trial::Trial;

const PART: &str = "instances";

/// So many Nodes at most may cost one request, on average, in a look-up of many.
const NODES_A_REQUEST: usize = 5;

/// Nodes of a look-up of many.
const MANY: usize = 200;

/// An answer of a cloud that is broken.
struct Broken {
    status: u16,
    header: Option<(&'static str, &'static str)>,
    body: &'static str,
    /// Labels of the failures that say it as it is; any failure where there are none.
    expected: &'static [&'static str],
}

const fn broken(status: u16, body: &'static str, expected: &'static [&'static str]) -> Broken {
    let header = None;
    Broken {
        status,
        header,
        body,
        expected,
    }
}

const BROKEN: [Broken; 9] = [
    broken(500, "internal error", &["unavailable"]),
    broken(503, "", &["unavailable"]),
    Broken {
        header: Some(("retry-after", "7")),
        ..broken(429, "", &["rate_limited"])
    },
    broken(401, "{}", &["denied"]),
    broken(403, "{}", &["denied"]),
    Broken {
        header: Some(("content-type", "text/html")),
        ..broken(404, "<html>no such page</html>", &[])
    },
    broken(200, "", &[]),
    Broken {
        header: Some(("content-type", "text/html")),
        ..broken(200, "<html>a login page</html>", &[])
    },
    Broken {
        header: Some(("content-type", "application/json")),
        ..broken(200, "{\"a\": [", &[])
    },
];

/// Tries them, and gives the Nodes as they are once they are initialised.
pub async fn run(trial: &Trial, report: &mut Report) -> Vec<NodeRef> {
    let known = known(trial, report).await;
    order(trial, report).await;
    strangers(trial, &known, report).await;
    many(trial, report).await;
    for case in BROKEN {
        trial.faults.always(case.status, case.header, case.body);
        takes_nothing_away(trial, &known, &case, report).await;
        trial.faults.none();
    }
    known
}

/// The Nodes as they are once they are initialised: with the provider ids and the addresses that the cloud gives them.
async fn known(trial: &Trial, report: &mut Report) -> Vec<NodeRef> {
    let mut promise = Promise::of(
        PART,
        "each --node is found, by name and then by the id that was answered",
    );
    let mut known = Vec::new();
    let answers = promise.answered(trial.provider.lookup(&trial.nodes).await);
    for (node, answer) in trial.nodes.iter().zip(answers.unwrap_or_default()) {
        match answer {
            Ok(Presence::Running(machine) | Presence::Stopped(machine)) => known.push(NodeRef {
                provider_id: Some(machine.provider_id),
                addresses: machine.addresses,
                ..node.clone()
            }),
            other => promise.holds(false, || format!("{}: {other:?}", node.name)),
        }
    }
    let again = promise.answered(trial.provider.lookup(&known).await);
    for (node, answer) in known.iter().zip(again.unwrap_or_default()) {
        let id = answer.as_ref().ok().and_then(Presence::instance);
        let same = id.map(|machine| &machine.provider_id) == node.provider_id.as_ref();
        promise.holds(same, || format!("{} by its id: {answer:?}", node.name));
    }
    report.add(promise);
    known
}

async fn order(trial: &Trial, report: &mut Report) {
    let mut promise = Promise::of(
        PART,
        "answers have the order of the request, also with a Node requested twice",
    );
    let stranger = NodeRef {
        name: "conformance-no-such-machine".into(),
        ..NodeRef::default()
    };
    let mut nodes: Vec<NodeRef> = trial.nodes.iter().rev().cloned().collect();
    nodes.push(stranger);
    nodes.extend(trial.nodes.iter().cloned());
    if let Some(answers) = promise.answered(trial.provider.lookup(&nodes).await) {
        let half = trial.nodes.len();
        let (back, rest) = answers.split_at(half);
        for (at, answer) in back.iter().rev().enumerate() {
            let other = &rest[at + 1];
            let name = &trial.nodes[at].name;
            promise.holds(same(answer, other), || format!("{name}: {answer:?} and {other:?}"));
        }
    }
    report.add(promise);
}

fn same(one: &Result<Presence, Failure>, other: &Result<Presence, Failure>) -> bool {
    let id = |answer: &Result<Presence, Failure>| {
        let machine = answer.as_ref().ok().and_then(Presence::instance);
        machine.map(|machine| machine.provider_id.clone())
    };
    id(one).is_some() && id(one) == id(other)
}

async fn strangers(trial: &Trial, known: &[NodeRef], report: &mut Report) {
    let mut promise = Promise::of(PART, "an unknown name is absent by name, never by id");
    let stranger = NodeRef {
        name: "conformance-no-such-machine".into(),
        ..NodeRef::default()
    };
    if let Some(answers) = promise.answered(trial.provider.lookup(&[stranger]).await) {
        let by_name = matches!(answers.as_slice(), [Ok(Presence::Absent(Evidence::ByName))]);
        promise.holds(by_name, || format!("{answers:?}"));
    }
    report.add(promise);

    let mut promise = Promise::of(PART, "a malformed provider id does no harm to the Nodes beside it");
    let prefixes = &trial.provider.description().provider_id_prefixes;
    let odd = NodeRef {
        name: "conformance-odd".into(),
        provider_id: Some(format!("{}%/ \u{1}", prefixes.first().map_or("", String::as_str))),
        ..NodeRef::default()
    };
    let nodes: Vec<NodeRef> = [odd].into_iter().chain(known.iter().cloned()).collect();
    if let Some(answers) = promise.answered(trial.provider.lookup(&nodes).await) {
        let by_name = matches!(answers[0], Ok(Presence::Absent(Evidence::ByName)));
        promise.holds(!by_name, || "it is absent by name, and was looked up by id".into());
        for (node, answer) in known.iter().zip(&answers[1..]) {
            let found = answer.as_ref().is_ok_and(|presence| presence.instance().is_some());
            promise.holds(found, || format!("{}: {answer:?}", node.name));
        }
    }
    report.add(promise);
}

async fn many(trial: &Trial, report: &mut Report) {
    let text = format!("{MANY} Nodes cost no more than a request for {NODES_A_REQUEST} of them");
    let mut promise = Promise::of(PART, text);
    let stranger = |number| NodeRef {
        name: format!("conformance-no-such-machine-{number}"),
        ..NodeRef::default()
    };
    let nodes: Vec<NodeRef> = (0..MANY).map(stranger).collect();
    trial.faults.requests();
    promise.answered(trial.provider.lookup(&nodes).await);
    let requests = trial.faults.requests();
    let most = MANY / NODES_A_REQUEST;
    promise.holds(requests <= most, || {
        format!("{requests} requests, at most {most} are kind to a cloud")
    });
    report.add(promise);
}

/// A fresh provider, so that no session is left from before; and one that has a session.
async fn takes_nothing_away(trial: &Trial, known: &[NodeRef], case: &Broken, report: &mut Report) {
    let Broken {
        status, body, expected, ..
    } = case;
    let what = match *body {
        "" => format!("{status} and nothing else"),
        _ => format!("{status} and {body}"),
    };
    let mut promise = Promise::of(PART, format!("a cloud that answers {what} takes no machine away"));
    let Some(fresh) = promise.answered(trial.anew().await) else {
        return report.add(promise);
    };
    for (provider, state) in [(&fresh, "at first"), (&trial.provider, "later")] {
        match provider.lookup(known).await {
            Err(CloudError::Failure(failure)) => {
                let fits = expected.is_empty() || expected.contains(&failure.label());
                promise.holds(fits, || {
                    format!(
                        "{state}: {failure}, which is {}; it has to be {}",
                        failure.label(),
                        expected.join(" or ")
                    )
                });
            }
            Err(error) => promise.holds(false, || format!("{state}: {error}")),
            Ok(answers) => {
                for (node, answer) in known.iter().zip(&answers) {
                    promise.holds(answer.is_err(), || format!("{state}: {}: {answer:?}", node.name));
                }
            }
        }
    }
    report.add(promise);
}
