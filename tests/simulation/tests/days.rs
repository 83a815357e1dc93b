//! Simulated days, each from its seed.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use cloudwit_simulation::{Promise, Report, Sabotage, day};

/// Days in a usual run; another number is in `CLOUDWIT_SIMULATION_DAYS`.
const DAYS: u64 = 400;

/// Each seed has a thread for itself while it runs.
const THREADS: usize = 2;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

fn simulate(seed: u64, sabotage: Option<Sabotage>, tracing: bool) -> Report {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(day(seed, sabotage, tracing))
}

/// With `CLOUDWIT_SIMULATION_SEED=n` only that day, step by step (`--nocapture`).
#[test]
fn every_promise_is_kept_on_every_day() {
    if let Some(seed) = number("CLOUDWIT_SIMULATION_SEED") {
        let report = simulate(seed, None, true);
        assert_eq!(
            report.violation,
            None,
            "seed {seed}: {}",
            report.violation.as_ref().unwrap()
        );
        return;
    }
    let (days, next) = (number("CLOUDWIT_SIMULATION_DAYS").unwrap_or(DAYS), AtomicU64::new(0));
    let (mut failed, mut steps) = (Vec::new(), 0);
    thread::scope(|scope| {
        let work = || {
            let mut done = Vec::new();
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= days {
                    return done;
                }
                done.push((seed, simulate(seed, None, false)));
            }
        };
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        for (seed, report) in threads.into_iter().flat_map(|thread| thread.join().unwrap()) {
            steps += report.steps;
            failed.extend(
                report
                    .violation
                    .map(|violation| format!("CLOUDWIT_SIMULATION_SEED={seed}: {violation}")),
            );
        }
    });
    failed.sort();
    println!("{days} days, {steps} steps");
    assert!(
        failed.is_empty(),
        "{} of {days} days:\n{}",
        failed.len(),
        failed.join("\n")
    );
}

#[test]
fn a_seed_repeats_step_by_step() {
    for seed in [1, 2, 3] {
        assert_eq!(simulate(seed, None, false), simulate(seed, None, false));
    }
}

#[test]
fn each_promise_is_watched() {
    let all = [
        Promise::LivingNode,
        Promise::Proof,
        Promise::Brake,
        Promise::OneWriter,
        Promise::FinalizerFirst,
        Promise::FinalizerLast,
        Promise::ForeignEntries,
        Promise::Initialised,
        Promise::ProviderIdOnce,
        Promise::ShutdownTaint,
        Promise::Balancers,
        Promise::NoBalancerLeft,
        Promise::Routes,
        Promise::NoRouteLeft,
        Promise::Nodes,
        Promise::Lifecycle,
        Promise::NoNeedlessCall,
        Promise::Alive,
    ];
    let broken = |promise| {
        simulate(7, Some(Sabotage(promise)), false)
            .violation
            .map(|violation| violation.promise)
    };
    let missed: Vec<_> = all
        .iter()
        .map(|promise| (*promise, broken(*promise)))
        .filter(|(a, b)| Some(*a) != *b)
        .collect();
    assert!(missed.is_empty(), "broken on purpose, and what was found: {missed:?}");
}
