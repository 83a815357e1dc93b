use parking_lot::Mutex;
use tokio::time::sleep;

use super::*;
use crate::engine::testing::fault;

/// `a1`: kind `a`, lane `1`; `a-` has none.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Named(&'static str);

impl Entry for Named {
    type Answer = &'static str;
    type Kind = char;

    fn kind(&self) -> char {
        self.0.chars().next().unwrap()
    }

    fn lane(&self) -> Option<&str> {
        Some(&self.0[1..]).filter(|lane| *lane != "-")
    }
}

fn picked(waiting: &[&'static str], busy: &[&str], most: usize) -> Vec<&'static str> {
    let tasks = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let id = tasks.spawn(async {}).id();
    let queue: VecDeque<_> = waiting.iter().map(|name| (Named(name), ())).collect();
    let busy = busy.iter().map(|lane| ((*lane).to_owned(), id)).collect();
    pick(&queue, &busy, most)
        .into_iter()
        .map(|index| waiting[index])
        .collect()
}

#[test]
fn first_free_decides_kind_and_lane_order_holds() {
    assert_eq!(picked(&["a1", "b2", "a3", "a1"], &[], 10), ["a1", "a3", "a1"]);
    assert_eq!(picked(&["a1", "b2", "a3"], &["1"], 10), ["b2"]);
    assert_eq!(
        picked(&["a1", "b1", "a1", "a2"], &[], 10),
        ["a1", "a2"],
        "b1 comes before the second a1"
    );
    assert_eq!(picked(&["a1", "a2", "a3"], &[], 2), ["a1", "a2"]);
    assert_eq!(picked(&["a1"], &["1"], 2), [""; 0]);
    assert_eq!(picked(&["a-", "a-", "b-"], &[], 10), ["a-", "a-"]);
}

#[derive(Default)]
struct Recorder {
    calls: Mutex<Vec<Vec<&'static str>>>,
    fails_on: Option<&'static str>,
    fails: Option<CloudError>,
}

impl Calls<Named> for Recorder {
    async fn most(&self) -> Result<usize, CloudError> {
        Ok(4)
    }

    fn call<'a>(&'a self, entries: &'a [Named]) -> Answer<'a, Vec<Result<&'static str, Failure>>> {
        Box::pin(async move {
            let names: Vec<&str> = entries.iter().map(|entry| entry.0).collect();
            self.calls.lock().push(names.clone());
            sleep(GATHER * 3).await;
            if let Some(error) = self.fails.clone() {
                sleep(LONGEST_SEARCH / 2).await;
                return Err(error);
            }
            if names.iter().any(|name| self.fails_on == Some(name)) {
                return Err(fault());
            }
            Ok(names.into_iter().map(Ok).collect())
        })
    }
}

async fn asked(recorder: &Arc<Recorder>, entries: &[&'static str]) -> Vec<Result<&'static str, CloudError>> {
    let batches = Batches::start(recorder.clone());
    futures::future::join_all(entries.iter().map(|entry| batches.ask(Named(entry)))).await
}

#[tokio::test(start_paused = true)]
async fn concurrent_items_share_a_call_and_lanes_are_serial() {
    let recorder = Arc::new(Recorder::default());
    let begun = Instant::now();
    let answers = asked(&recorder, &["a1", "a2", "b1", "a3"]).await;
    assert_eq!(answers, [Ok("a1"), Ok("a2"), Ok("b1"), Ok("a3")]);
    assert_eq!(*recorder.calls.lock(), [vec!["a1", "a2", "a3"], vec!["b1"]]);
    assert!(begun.elapsed() >= GATHER * 7, "the second call waited for the first");
}

#[tokio::test(start_paused = true)]
async fn one_that_the_provider_fails_on_costs_itself() {
    let recorder = Arc::new(Recorder {
        fails_on: Some("a3"),
        ..Recorder::default()
    });
    let answers = asked(&recorder, &["a1", "a2", "a3", "a4"]).await;
    assert_eq!(answers, [Ok("a1"), Ok("a2"), Err(fault()), Ok("a4")]);
    let calls = recorder.calls.lock().clone();
    assert_eq!(
        calls,
        [
            vec!["a1", "a2", "a3", "a4"],
            vec!["a1", "a2"],
            vec!["a3", "a4"],
            vec!["a3"],
            vec!["a4"]
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn search_for_the_odd_one_ends() {
    let recorder = Arc::new(Recorder {
        fails: Some(fault()),
        ..Recorder::default()
    });
    let answers = asked(&recorder, &["a1", "a2", "a3", "a4"]).await;
    assert!(answers.iter().all(|answer| *answer == Err(fault())));
    assert_eq!(
        recorder.calls.lock().len(),
        3,
        "all, and two halves that are not taken apart any more"
    );
}

#[tokio::test(start_paused = true)]
async fn what_the_whole_call_does_not_find_is_no_answer_about_one() {
    let recorder = Arc::new(Recorder {
        fails: Some(Failure::NotFound("no such project".into()).into()),
        ..Recorder::default()
    });
    let answers = asked(&recorder, &["a1", "a2"]).await;
    let unavailable: CloudError = Failure::Unavailable("no such project".into()).into();
    assert_eq!(answers, [Err(unavailable.clone()), Err(unavailable)]);
}
