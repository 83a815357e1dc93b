use std::sync::atomic::AtomicU64;

use axum::http::StatusCode;

use super::*;
use crate::process::work_runtime;
use crate::serving::health::checks::{Checks, Page, Wish};

/// A clock that is set by hand, in seconds.
fn clock() -> (Arc<AtomicU64>, Clock) {
    let now = Arc::new(AtomicU64::new(100));
    let read = now.clone();
    (now, Arc::new(move || Duration::from_secs(read.load(Ordering::SeqCst))))
}

#[test]
fn a_pause_warns_and_a_long_one_fails() {
    let (now, clock) = clock();
    let mut registry = Registry::default();
    let watchdog = Watchdog::new(clock, &mut registry);
    let at = |seconds: u64| {
        now.store(100 + seconds, Ordering::SeqCst);
        watchdog.check().state
    };
    assert_eq!(at(3), State::Healthy);
    assert_eq!(at(4), State::Warning("no heartbeat for 4 s".into()));
    assert_eq!(at(30), State::Warning("no heartbeat for 30 s".into()));
    assert_eq!(at(31), State::Failed("no heartbeat for 31 s".into()));
    assert!(!watchdog.check().readiness_only);
    let stalled = watchdog.look(false);
    assert!(stalled && watchdog.look(stalled), "counted once");
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    assert!(text.contains("cloudwit_working_thread_stalled_seconds 31"), "{text}");
    assert!(text.contains("cloudwit_working_thread_stalls_total 1\n"), "{text}");
    watchdog.beat();
    assert!(!watchdog.look(stalled));
    assert_eq!(watchdog.check().state, State::Healthy);
}

/// The clock is set by hand, so that no test waits for half a minute; the working thread really stands still.
#[test]
fn a_blocked_working_thread_leaves_livez_answering() {
    let (control, working) = (work_runtime::control().unwrap(), work_runtime::work().unwrap());
    let way = WorkRuntime::new(working.handle().clone());
    let (now, clock) = clock();
    let watchdog = Watchdog::new(clock, &mut Registry::default());
    let mut checks = Checks::beside(way.clone(), watchdog.clone());
    checks.add_of_work(|| vec![Check::live("a-controller", State::Healthy)]);
    let livez = || control.block_on(checks.look(Page::Livez, &Wish::default()));
    assert_eq!(livez(), (StatusCode::OK, "ok".into()));

    let (go, wait) = std::sync::mpsc::channel::<()>();
    let (begun, blocked) = std::sync::mpsc::channel();
    drop(working.spawn(async move {
        begun.send(()).unwrap();
        let _ = wait.recv();
    }));
    blocked.recv().unwrap();
    assert_eq!(livez(), (StatusCode::OK, "ok".into()), "what was seen last counts");
    now.store(131, Ordering::SeqCst);
    let (code, text) = livez();
    assert_eq!(code, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(
        text.contains("[-]working-thread failed") && text.contains("[+]a-controller ok"),
        "{text}"
    );

    go.send(()).unwrap();
    control.block_on(async {
        watchdog.start(&way);
        while watchdog.pause() > Duration::ZERO {
            tokio::task::yield_now().await;
        }
    });
    assert_eq!(livez(), (StatusCode::OK, "ok".into()));
    working.shutdown_background();
}
