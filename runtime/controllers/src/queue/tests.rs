//! The queue's promises, with time standing still until a test moves it.

use std::time::Duration;

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use tokio::time::{Instant, timeout};

use super::*;
use crate::metrics::Metrics;
use crate::report::snapshot::{Progress, Reports};
use crate::report::testing::FakeReport;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

fn queue_with(backoff: Backoff) -> Queue {
    Queue::new(backoff, Metrics::new(&mut Registry::default()).queue("test"))
}

fn queue() -> Queue {
    queue_with(Backoff::DEFAULT)
}

async fn next(queue: &Queue) -> Taken {
    timeout(SECOND * 2000, queue.take())
        .await
        .expect("a key comes")
        .expect("the queue is open")
}

async fn nothing_for(queue: &Queue, time: Duration) {
    assert!(timeout(time, queue.take()).await.is_err(), "a key came within {time:?}");
}

#[tokio::test(start_paused = true)]
async fn remaining_work_and_last_activity_are_reported() {
    let queue = queue();
    assert_eq!(Progress::from(&queue.snapshot()), Progress::default());
    queue.add("a");
    queue.add("b");
    queue.after("c", SECOND * 100);
    tokio::time::advance(SECOND * 5).await;
    let working = next(&queue).await;
    let mut expected = Progress {
        ready: 1,
        in_work: 1,
        later: 1,
        oldest: Some(SECOND * 5),
        ..Progress::default()
    };
    assert_eq!(Progress::from(&queue.snapshot()), expected);
    working.finish(Outcome::Retry(Retry::After(SECOND * 50)));
    (expected.in_work, expected.later) = (0, 2);
    assert_eq!(
        Progress::from(&queue.snapshot()),
        expected,
        "a try that comes back is nothing done"
    );
    next(&queue).await.finish(Outcome::Done);
    tokio::time::advance(SECOND * 2).await;
    let progress = Progress::from(&queue.snapshot());
    assert_eq!(
        (progress.ready, progress.later, progress.last_done),
        (0, 2, Some(SECOND * 2))
    );
    let mut keys = queue.keys();
    keys.sort();
    assert_eq!(keys, [Key::from("a"), Key::from("c")]);
}

#[tokio::test(start_paused = true)]
async fn a_storm_of_updates_costs_one_pending_entry() {
    let queue = queue();
    for _ in 0..10_000 {
        queue.add("a");
    }
    assert_eq!(queue.snapshot().ready, 1);
    next(&queue).await.finish(Outcome::Done);
    nothing_for(&queue, SECOND).await;
    assert!(queue.is_empty(), "nothing is remembered about a key that is done");
}

#[tokio::test(start_paused = true)]
async fn of_several_requests_the_earliest_wins() {
    let (queue, start) = (queue(), Instant::now());
    queue.after("a", SECOND * 10);
    queue.after("a", SECOND * 3);
    queue.after("a", SECOND * 20);
    next(&queue).await.finish(Outcome::Done);
    assert_eq!(start.elapsed().as_secs(), 3);
    queue.after("a", SECOND * 10);
    queue.add("a");
    next(&queue).await.finish(Outcome::Done);
    assert_eq!(start.elapsed().as_secs(), 3);
    nothing_for(&queue, SECOND * 60).await;
}

#[tokio::test(start_paused = true)]
async fn key_is_never_processed_twice_and_requeues_after() {
    let queue = queue();
    queue.add("a");
    let first = next(&queue).await;
    queue.add("a");
    queue.add("a");
    nothing_for(&queue, SECOND * 60).await;
    first.finish(Outcome::Done);
    next(&queue).await.finish(Outcome::Done);
    nothing_for(&queue, SECOND * 60).await;
}

#[tokio::test(start_paused = true)]
async fn key_backoff_doubles_from_5_ms_to_1000_s_with_jitter() {
    let queue = queue();
    queue.add("a");
    let mut taken = next(&queue).await;
    for failure in 0u32..20 {
        let expected = (MS * 5).saturating_mul(2u32.pow(failure)).min(SECOND * 1000);
        let start = Instant::now();
        taken.finish(Outcome::Retry(Retry::Backoff));
        taken = next(&queue).await;
        let pause = start.elapsed();
        assert!(
            pause >= expected && pause <= expected.mul_f64(1.1) + MS * 2,
            "failure {failure}: {pause:?}"
        );
    }
    assert_eq!(taken.failures(), 20);
    taken.finish(Outcome::Done);
    queue.add("a");
    assert_eq!(next(&queue).await.failures(), 0, "success forgets failures");
}

/// `TestServiceQueueDelay`: what the service controller relies on.
#[tokio::test(start_paused = true)]
async fn requeued_key_returns_on_time_and_is_no_failure() {
    let queue = queue_with(Backoff::SERVICE);
    queue.add("a");
    next(&queue).await.finish(Outcome::Retry(Retry::Backoff));
    let taken = next(&queue).await;
    let start = Instant::now();
    taken.finish(Outcome::Retry(Retry::After(SECOND * 42)));
    let taken = next(&queue).await;
    assert_eq!(start.elapsed().as_secs(), 42);
    assert_eq!(taken.failures(), 1, "neither counted nor forgotten");
    let start = Instant::now();
    taken.finish(Outcome::Retry(Retry::Backoff));
    next(&queue).await.finish(Outcome::Done);
    assert!((10.0..11.1).contains(&start.elapsed().as_secs_f64()));
}

#[tokio::test(start_paused = true)]
async fn each_class_of_failure_has_its_own_pause() {
    let queue = queue_with(Backoff::SERVICE);
    for (retry, range) in [(Retry::Soon, 0.005..0.01), (Retry::Slowly, 300.0..331.0)] {
        queue.add("a");
        let taken = next(&queue).await;
        let start = Instant::now();
        taken.finish(Outcome::Retry(retry));
        let taken = next(&queue).await;
        assert!(
            range.contains(&start.elapsed().as_secs_f64()),
            "{retry:?}: {:?}",
            start.elapsed()
        );
        taken.finish(Outcome::Done);
    }
    queue.add("a");
    next(&queue).await.finish(Outcome::Retry(Retry::Never));
    nothing_for(&queue, SECOND * 2000).await;
}

#[tokio::test(start_paused = true)]
async fn failed_batch_keys_return_together() {
    let queue = queue_with(Backoff::BATCHED);
    for i in 0..100 {
        queue.add(i.to_string());
    }
    // 18 failures make the pause 655 s and more; by then keys have drifted apart.
    for _ in 0..1800 {
        next(&queue).await.finish(Outcome::Retry(Retry::Backoff));
    }
    let mut batches = 0;
    let mut keys = 0;
    while keys < 100 {
        let batch = queue.take_batch(1000, MS * 20).await.unwrap();
        batches += 1;
        keys += batch.len();
        batch.into_iter().for_each(|taken| taken.finish(Outcome::Done));
    }
    assert!(batches <= 4, "{batches} batches");
}

#[tokio::test(start_paused = true)]
async fn a_change_of_the_object_cuts_a_pause_short() {
    let queue = queue_with(Backoff::SERVICE);
    queue.add("a");
    next(&queue).await.finish(Outcome::Retry(Retry::Slowly));
    let start = Instant::now();
    queue.add("a");
    next(&queue).await.finish(Outcome::Done);
    assert!(start.elapsed() < SECOND);
}

#[tokio::test(start_paused = true)]
async fn failed_is_retried_when_cause_may_be_gone_waiting_is_not() {
    let (queue, start) = (queue(), Instant::now());
    queue.add("denied");
    next(&queue).await.finish(Outcome::Retry(Retry::Slowly));
    queue.after("pending", SECOND * 20);
    queue.retry_failed_now();
    let taken = next(&queue).await;
    assert_eq!(
        (&**taken.key(), taken.failures(), start.elapsed().as_secs()),
        ("denied", 1, 0)
    );
    taken.finish(Outcome::Done);
    assert_eq!(&**next(&queue).await.key(), "pending");
    assert_eq!(start.elapsed().as_secs(), 20);
}

#[tokio::test(start_paused = true)]
async fn batch_takes_ready_items_in_order_up_to_limit() {
    let queue = queue();
    for i in 0..2500 {
        queue.add(format!("node-{i:04}"));
    }
    let mut sizes = Vec::new();
    let mut keys = Vec::new();
    for _ in 0..3 {
        let batch = queue.take_batch(1000, MS * 20).await.unwrap();
        sizes.push(batch.len());
        keys.extend(batch.iter().map(|taken| taken.key().to_string()));
        batch.into_iter().for_each(|taken| taken.finish(Outcome::Done));
    }
    assert_eq!(sizes, [1000, 1000, 500]);
    assert!(keys.is_sorted());
}

#[tokio::test(start_paused = true)]
async fn a_batch_waits_a_moment_for_those_that_come_together() {
    let queue = queue();
    queue.add("a");
    queue.after("b", MS * 10);
    queue.after("c", MS * 500);
    let batch = queue.take_batch(10, MS * 20).await.unwrap();
    assert_eq!(batch.iter().map(|taken| &**taken.key()).collect::<Vec<_>>(), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn work_that_is_dropped_counts_as_a_failure_and_comes_back() {
    let queue = queue();
    queue.add("a");
    drop(next(&queue).await);
    assert_eq!(next(&queue).await.failures(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_wanted_all_the_time_waits_its_turn() {
    let queue = queue();
    let keys = ["busy", "a", "b", "c"];
    keys.iter().for_each(|key| queue.add(*key));
    let mut order = Vec::new();
    for _ in 0..3 * keys.len() {
        let taken = next(&queue).await;
        order.push(taken.key().to_string());
        // One is changed while it is worked on, every time; so are the others, after it.
        queue.add(taken.key().clone());
        taken.finish(Outcome::Done);
        queue.add("busy");
    }
    let expected: Vec<&str> = keys.iter().copied().cycle().take(order.len()).collect();
    assert_eq!(order, expected);
}

#[tokio::test(start_paused = true)]
async fn many_workers_share_a_queue_without_losing_a_key() {
    let queue = queue();
    let workers: Vec<_> = (0..4)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move {
                let mut done = 0;
                while let Some(taken) = queue.take().await {
                    tokio::task::yield_now().await;
                    taken.finish(Outcome::Done);
                    done += 1;
                }
                done
            })
        })
        .collect();
    for i in 0..100 {
        queue.after(i.to_string(), MS * (i % 7));
    }
    while !queue.is_empty() {
        tokio::time::advance(MS).await;
        tokio::task::yield_now().await;
    }
    queue.close();
    let mut done = 0;
    for worker in workers {
        done += worker.await.unwrap();
    }
    assert_eq!(done, 100);
}

#[tokio::test(start_paused = true)]
async fn the_metrics_have_upstreams_names() {
    let mut registry = Registry::default();
    let queue = Queue::new(Backoff::DEFAULT, Metrics::new(&mut registry).queue("Nodes"));
    Reports::new(&mut registry).add(Arc::new(FakeReport {
        queues: vec![queue.clone()],
        ..FakeReport::of(Controller::CloudNode)
    }));
    queue.add("a");
    queue.add("b");
    let working = next(&queue).await;
    tokio::time::advance(SECOND * 3).await;
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    for line in [
        "workqueue_depth{name=\"Nodes\"} 1.0",
        "workqueue_adds_total{name=\"Nodes\"} 2",
        "workqueue_retries_total{name=\"Nodes\"} 0",
        "workqueue_queue_duration_seconds_count{name=\"Nodes\"} 1",
        "workqueue_work_duration_seconds_count{name=\"Nodes\"} 0",
        "cloudwit_workqueue_unfinished_keys{name=\"Nodes\"} 2.0",
        "workqueue_unfinished_work_seconds{name=\"Nodes\"} 3.0",
        "workqueue_longest_running_processor_seconds{name=\"Nodes\"} 3.0",
        "workqueue_queue_duration_seconds_bucket{le=\"1e-8\",name=\"Nodes\"}",
    ] {
        assert!(text.contains(line), "{line} is missing in:\n{text}");
    }
    working.finish(Outcome::Done);
}
