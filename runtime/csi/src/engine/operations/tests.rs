use proptest::prelude::*;

use super::*;
use crate::engine::testing::{FakeCloud, from, new_volume, passphrase, pending, to};
use cloudwit_model::volume::Topology;

const SECOND: Duration = Duration::from_secs(1);

fn operations(cloud: &Arc<FakeCloud>) -> Operations {
    Operations::over(Steps::start(cloud.clone()))
}

fn within(time: Duration) -> Instant {
    Instant::now() + time
}

#[tokio::test(start_paused = true)]
async fn equal_requests_share_an_operation_others_are_notified() {
    let cloud = FakeCloud::new();
    let operations = operations(&cloud);
    let create = || operations.run(Work::Create(new_volume("n")), within(SECOND));
    let other = async {
        tokio::task::yield_now().await;
        let different = cloudwit_model::volume::NewVolume {
            parameters: [("type".to_owned(), "fast".to_owned())].into(),
            ..new_volume("n")
        };
        operations.run(Work::Create(different), within(SECOND)).await
    };
    let (one, two, different) = tokio::join!(create(), create(), other);
    assert!(one.is_ok() && one == two);
    assert_eq!(different, Err(Refused::Busy("create volume n".into())));
    assert_eq!(cloud.calls(), ["create n 2"]);
    assert_eq!(operations.count(), 0);
}

fn create_with(value: &str) -> Request {
    Request {
        work: Work::Create(new_volume("n")),
        secrets: passphrase(value),
    }
}

#[tokio::test(start_paused = true)]
async fn requests_with_other_secrets_share_no_operation() {
    let cloud = FakeCloud::new();
    let operations = operations(&cloud);
    let create = |value: &str| operations.run(create_with(value), within(SECOND));
    let (one, two, other) = tokio::join!(create("hunter2-one"), create("hunter2-one"), create("hunter2-two"));
    assert!(one.is_ok() && one == two);
    let busy = "create volume n, with other secrets";
    assert_eq!(other, Err(Refused::Busy(busy.into())));
    let called = ("create n 2".to_owned(), "hunter2-one".to_owned());
    assert_eq!(cloud.secret_calls(), [called]);
}

#[tokio::test(start_paused = true)]
async fn each_call_of_pending_work_has_its_secrets_and_nothing_shows_them() {
    let cloud = FakeCloud::new();
    let mut rounds = 0;
    cloud.script(move |_, _| {
        rounds += 1;
        (rounds < 3).then(|| pending("the disk is being made"))
    });
    let operations = operations(&cloud);
    let late = operations.run(create_with("hunter2-one"), within(SECOND / 2)).await;
    let shown = format!(
        "{late:?} {:?} {operations:?} {:?}",
        operations.all(),
        create_with("hunter2-one")
    );
    assert!(
        shown.contains("create volume n") && !shown.contains("hunter2"),
        "{shown}"
    );
    // No RPC waits for the first one, so one with another passphrase replaces it.
    let made = operations.run(create_with("hunter2-two"), within(SECOND * 60)).await;
    assert!(made.is_ok(), "{made:?}");
    let values: Vec<String> = cloud.secret_calls().into_iter().map(|(_, value)| value).collect();
    assert_eq!(values.first().map(String::as_str), Some("hunter2-one"));
    assert_eq!(values.last().map(String::as_str), Some("hunter2-two"));
    assert_eq!(values.len(), cloud.calls().len(), "no call went without");
}

#[tokio::test(start_paused = true)]
async fn pending_work_continues_with_its_token_when_the_rpc_is_gone() {
    let cloud = FakeCloud::new();
    let mut rounds = 0;
    cloud.script(move |call, token| {
        rounds += 1;
        assert_eq!((call, token.is_some()), ("create n 2", rounds > 1));
        (rounds < 5).then(|| pending("the disk is being made"))
    });
    let operations = operations(&cloud);
    let late = operations.run(Work::Create(new_volume("n")), within(SECOND / 2)).await;
    assert_eq!(late, Err(Refused::Deadline("the disk is being made".into())));
    let seen = operations.all();
    assert_eq!(
        (seen[0].work.as_str(), seen[0].waits_for.as_deref(), seen[0].waiting),
        ("create volume n", Some("the disk is being made"), 0)
    );
    let made = operations.run(Work::Create(new_volume("n")), within(SECOND * 60)).await;
    assert!(made.is_ok(), "{made:?}");
    assert_eq!(cloud.calls().len(), 5, "the second request joined the operation");
}

#[tokio::test(start_paused = true)]
async fn failure_after_pending_reports_started_work() {
    let cloud = FakeCloud::new();
    let denied: CloudError = Failure::Denied("no".into()).into();
    let error = denied.clone();
    cloud.script(move |_, token| Some(if token.is_none() { pending("x") } else { error.clone() }));
    let refused = operations(&cloud)
        .run(Work::Delete("v".into()), within(SECOND * 5))
        .await;
    let in_flight = true;
    assert_eq!(
        refused,
        Err(Refused::Trouble(Trouble {
            error: denied,
            in_flight
        }))
    );
}

/// A cloud in which a creation is begun, takes so many seconds, and finds no room.
fn full_after(rounds: usize) -> Arc<FakeCloud> {
    let cloud = FakeCloud::new();
    let mut left = 0;
    cloud.script(move |_, token| {
        left = if token.is_none() { rounds } else { left - 1 };
        let full = || Failure::Exhausted("no room".into()).into();
        Some(if left == 0 {
            full()
        } else {
            pending("the disk is being made")
        })
    });
    cloud
}

fn is_full(answer: &Result<Done, Refused>) -> bool {
    matches!(answer, Err(Refused::Trouble(trouble)) if trouble.is_exhausted() && trouble.in_flight)
}

#[tokio::test(start_paused = true)]
async fn no_room_is_read_by_all_who_wait_and_a_later_request_begins_anew() {
    let cloud = full_after(3);
    let operations = operations(&cloud);
    let create = || operations.run(Work::Create(new_volume("n")), within(SECOND * 10));
    let (one, two) = tokio::join!(create(), create());
    assert!(is_full(&one) && one == two, "{one:?}");
    assert_eq!(cloud.calls().len(), 4);
    assert!(is_full(&create().await));
    assert_eq!(cloud.calls().len(), 8, "begun anew");
}

#[tokio::test(start_paused = true)]
async fn no_room_that_is_found_between_two_rpcs_is_read_by_the_next() {
    let cloud = full_after(3);
    let operations = operations(&cloud);
    let create = |name: &str| operations.run(Work::Create(new_volume(name)), within(SECOND / 2));
    assert!(matches!(create("n").await, Err(Refused::Deadline(_))));
    tokio::time::sleep(SECOND * 10).await;
    assert_eq!((operations.count(), cloud.calls().len()), (0, 4));
    assert!(is_full(&create("n").await));
    assert_eq!(cloud.calls().len(), 4, "nothing is asked");
    assert!(matches!(create("n").await, Err(Refused::Deadline(_))), "begun anew");
    // For another place the volume is tried.
    tokio::time::sleep(SECOND * 10).await;
    let before = cloud.calls().len();
    let elsewhere = cloudwit_model::volume::NewVolume {
        allowed: vec![Topology([("zone".to_owned(), "b".to_owned())].into())],
        ..new_volume("n")
    };
    let late = operations.run(Work::Create(elsewhere), within(SECOND / 2)).await;
    assert!(matches!(late, Err(Refused::Deadline(_))), "{late:?}");
    assert_eq!(cloud.calls().len(), before + 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// However long the cloud takes, and whenever the sidecar retries: it gets that there is no room, after one creation.
    #[test]
    fn no_room_is_read_after_one_creation(rounds in 0_usize..40, rpcs in prop::collection::vec((1_u64..15_000, 1_u64..300_000), 1..20)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let cloud = full_after(rounds);
            let operations = operations(&cloud);
            let last = (60_000, 0);
            for (deadline, pause) in rpcs.into_iter().chain([last]) {
                let answer = operations.run(Work::Create(new_volume("n")), within(Duration::from_millis(deadline))).await;
                if !matches!(answer, Err(Refused::Deadline(_))) {
                    let full = matches!(&answer, Err(Refused::Trouble(trouble)) if trouble.is_exhausted());
                    prop_assert!(full, "{answer:?}");
                    prop_assert_eq!(cloud.calls().len(), rounds + 1);
                    return Ok(());
                }
                tokio::time::sleep(Duration::from_millis(pause)).await;
            }
            prop_assert!(false, "never read");
            Ok(())
        })?;
    }
}

#[tokio::test(start_paused = true)]
async fn attachment_that_never_ends_does_not_keep_its_volume() {
    let cloud = FakeCloud::new();
    cloud.add("v", None);
    cloud.script(|call, _| {
        call.starts_with("attach")
            .then(|| pending("the machine does not answer"))
    });
    let operations = operations(&cloud);
    let attach = operations.run(Work::Attach(to("v", "a")), within(SECOND * 15));
    let meanwhile = async {
        tokio::time::sleep(SECOND).await;
        operations.run(Work::Detach(from("v", "a")), within(SECOND * 15)).await
    };
    let (attached, refused) = tokio::join!(attach, meanwhile);
    assert_eq!(attached, Err(Refused::Deadline("the machine does not answer".into())));
    assert_eq!(
        refused,
        Err(Refused::Busy("attach volume v to a".into())),
        "somebody waits for it"
    );
    let detached = operations.run(Work::Detach(from("v", "a")), within(SECOND * 15)).await;
    assert_eq!(detached, Ok(Done::Gone), "nobody waits for it any more");
    assert_eq!(operations.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn operation_without_callers_ends() {
    let cloud = FakeCloud::new();
    cloud.script(|_, _| Some(pending("for ever")));
    let operations = operations(&cloud);
    let late = operations.run(Work::Create(new_volume("n")), within(SECOND)).await;
    assert!(matches!(late, Err(Refused::Deadline(_))));
    tokio::time::sleep(FORSAKEN - SECOND * 5).await;
    assert_eq!(operations.count(), 1);
    tokio::time::sleep(SECOND * 30).await;
    assert_eq!(operations.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn many_volumes_share_calls_and_no_machine_is_in_two_at_once() {
    const MANY: usize = 200;
    let cloud = FakeCloud::new();
    let operations = operations(&cloud);
    let volumes: Vec<String> = (0..MANY).map(|number| format!("v{number}")).collect();
    volumes.iter().for_each(|id| cloud.add(id, None));
    let attach = |(number, id): (usize, &String)| {
        operations.run(
            Work::Attach(to(id, &format!("node-{}", number % 5))),
            within(SECOND * 60),
        )
    };
    let attached = futures::future::join_all(volumes.iter().enumerate().map(attach)).await;
    assert!(attached.iter().all(Result::is_ok));
    assert!(
        volumes
            .iter()
            .all(|id| cloud.volume(id).unwrap().attachments.len() == 1)
    );
    assert_eq!(cloud.overlaps(), 0);
    let calls = cloud.calls();
    let of = |verb: &str| calls.iter().filter(|call| call.starts_with(verb)).count();
    assert_eq!((of("get"), of("attach")), (MANY / 10, MANY / 10), "batches of ten");
}
