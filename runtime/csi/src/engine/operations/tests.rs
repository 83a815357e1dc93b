use super::*;
use crate::engine::testing::{FakeCloud, from, new_volume, pending, to};

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
