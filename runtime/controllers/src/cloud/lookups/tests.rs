//! What one Node on which calls fault costs the others: calls, and nothing else.

use std::collections::BTreeMap;

use cloudwit_model::FaultKind;
use prometheus_client::registry::Registry;

use super::*;
use crate::testing::{FakeCloud, fault, running};

fn refs(count: usize) -> Vec<NodeRef> {
    let node = |number: usize| NodeRef {
        name: format!("n{number}"),
        provider_id: Some(format!("sim://n{number}")),
        ..NodeRef::default()
    };
    (0..count).map(node).collect()
}

struct Story {
    cloud: Arc<FakeCloud>,
    lookups: Arc<NodeLookups>,
}

impl Story {
    /// A cloud that faults whenever one of these is in the list.
    fn new(faulty: &[&str]) -> Self {
        let cloud = FakeCloud::new(Ok(running("sim://x")));
        *lock(&cloud.faulty) = faulty.iter().map(|name| (*name).to_owned()).collect();
        let lookups = NodeLookups::new(
            crate::testing::only(cloud.clone()),
            Metrics::new(&mut Registry::default()),
        );
        Self { cloud, lookups }
    }

    /// Whether there is an answer about each Node, and how many calls that took.
    async fn ask(&self, count: usize) -> (BTreeMap<usize, bool>, usize) {
        let before = self.cloud.count();
        let parts = self.lookups.about(Purpose::Init, refs(count), Span::none());
        let parts: Vec<LookupPart> = parts.collect().await;
        let mut answered = BTreeMap::new();
        for part in &parts {
            for at in &part.at {
                assert_eq!(answered.insert(*at, part.answer.is_ok()), None, "{at} is in two parts");
            }
        }
        assert_eq!(answered.len(), count, "each is in a part");
        (answered, self.cloud.count() - before)
    }

    fn unanswered(answered: &BTreeMap<usize, bool>) -> Vec<usize> {
        let without = answered.iter().filter(|(_, answered)| !**answered);
        without.map(|(at, _)| *at).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_faults_on_one_node_costs_that_node() {
    let story = Story::new(&["n617"]);
    let (answered, calls) = story.ask(1000).await;
    assert_eq!(Story::unanswered(&answered), [617]);
    assert_eq!(calls, 21, "one, and four in each of five rounds");
    let (answered, calls) = story.ask(1000).await;
    assert_eq!(
        (Story::unanswered(&answered), calls),
        (vec![617], 1),
        "it is not asked about at once"
    );
    tokio::time::sleep(FIRST_PAUSE).await;
    let (answered, calls) = story.ask(1000).await;
    assert_eq!(
        (Story::unanswered(&answered), calls),
        (vec![617], 2),
        "alone, beside the others"
    );
}

#[tokio::test(start_paused = true)]
async fn a_node_that_no_longer_faults_is_one_of_many_again() {
    let story = Story::new(&["n3"]);
    story.ask(10).await;
    lock(&story.cloud.faulty).clear();
    tokio::time::sleep(FIRST_PAUSE).await;
    let (answered, calls) = story.ask(10).await;
    assert_eq!((Story::unanswered(&answered), calls), (Vec::new(), 2));
    assert_eq!(story.ask(10).await.1, 1);
}

#[tokio::test(start_paused = true)]
async fn many_faulty_nodes_are_found_with_a_bounded_number_of_calls() {
    let faulty: Vec<String> = (0..10).map(|number| format!("n{}", number * 100 + 50)).collect();
    let story = Story::new(&faulty.iter().map(String::as_str).collect::<Vec<_>>());
    let (answered, calls) = story.ask(1000).await;
    assert_eq!(
        Story::unanswered(&answered).len(),
        10,
        "the others have their answer at once"
    );
    assert!(calls <= 4 * 50 + 1, "{calls} calls");
}

#[tokio::test(start_paused = true)]
async fn more_faulty_nodes_than_the_budget_finds_are_found_later() {
    let faulty: Vec<String> = (0..40).map(|number| format!("n{}", number * 25)).collect();
    let story = Story::new(&faulty.iter().map(String::as_str).collect::<Vec<_>>());
    let mut unanswered = 1000;
    for _ in 0..60 {
        let (answered, calls) = story.ask(1000).await;
        assert!(calls <= 4 * 64 + 1 + 40, "{calls} calls in a round");
        let now = Story::unanswered(&answered).len();
        assert!(now <= unanswered, "{now} after {unanswered}");
        unanswered = now;
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
    assert_eq!(unanswered, 40);
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_always_faults_is_not_called_over_and_over() {
    let all: Vec<String> = (0..1000).map(|number| format!("n{number}")).collect();
    let story = Story::new(&all.iter().map(String::as_str).collect::<Vec<_>>());
    let (mut calls, rounds) = (0, 100);
    for _ in 0..rounds {
        calls += story.ask(1000).await.1;
    }
    assert!(calls <= rounds + 4 * 64, "{calls} calls at once");
}

#[tokio::test(start_paused = true)]
async fn a_failure_of_the_whole_call_is_not_narrowed_down() {
    let story = Story::new(&[]);
    for error in [
        Failure::Unavailable("down".into()).into(),
        Failure::Denied("no".into()).into(),
        fault(FaultKind::Host),
        fault(FaultKind::NotExported),
    ] {
        *lock(&story.cloud.answer) = Err(error);
        assert_eq!(story.ask(100).await.1, 1);
    }
}

#[test]
fn another_provider_begins_with_nothing_against_any_node() {
    let now = Instant::now();
    let mut faults = LookupFaults::new(now);
    let refs = refs(3);
    faults.batches("one", &refs, now);
    faults.faulted("n1", &fault(FaultKind::Trap), now);
    let batches = faults.batches("one", &refs, now);
    assert_eq!((batches.together, batches.early.len()), (vec![0, 2], 1));
    assert_eq!(faults.batches("another", &refs, now).together, [0, 1, 2]);
}

#[test]
fn what_is_remembered_of_faulty_nodes_is_bounded_and_dropped() {
    let now = Instant::now();
    let mut faults = LookupFaults::new(now);
    for number in 0..10_000 {
        faults.faulted(&format!("n{number}"), &fault(FaultKind::Trap), now);
    }
    assert_eq!(faults.nodes.len(), REMEMBERED);
    faults.faulted("late", &fault(FaultKind::Trap), now + FORGOTTEN * 2);
    assert_eq!(faults.nodes.len(), 1, "the others were not asked about any more");
}
