//! Tags on machines through the real host: the provider `sim` on the simulated cloud, and a guest that answers wrongly.

use std::collections::BTreeMap;

use cloudwit_host::HostOptions;
use cloudwit_model::{Cloud as _, CloudError, Failure, FaultKind, MAX_TAGGED_NODES, NodeRef, TagChange, Tags};
use cloudwit_sim_cloud::{Fault, NewMachine, Operation, SimCloud, SimCloudOptions};
use cloudwit_suite::common::sim_provider;
use cloudwit_suite::hosting::{Hosting, node, settings};
use sim_provider::load_sim;

fn tags(pairs: &[(&str, &str)]) -> Tags {
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}

fn machine(id: &str) -> NodeRef {
    NodeRef {
        provider_id: Some(format!("sim://{id}")),
        ..node(id)
    }
}

#[tokio::test]
async fn sim_tags_machines_in_one_request_and_takes_only_its_own_off() {
    let cloud = SimCloud::start(SimCloudOptions::default()).await.unwrap();
    cloud.add_machines(["one", "two"].map(NewMachine::named));
    let loaded = load_sim(&cloud, "sim-token", |_| {}).await;
    let (provider, blue) = (&loaded.provider, tags(&[("team", "blue")]));
    let of_cloud = || -> BTreeMap<String, Tags> {
        let machines = cloud.machines().into_iter();
        machines.map(|machine| (machine.id, machine.tags)).collect()
    };
    let nodes = [machine("vm-1"), machine("vm-9"), machine("vm-2"), node("no-id")];
    let results = provider.change_tags(TagChange::Add, &nodes, &blue).await.unwrap();
    assert!(matches!(
        results.as_slice(),
        [Ok(()), Err(Failure::NotFound(_)), Ok(()), Err(Failure::Invalid(_))]
    ));
    assert_eq!(of_cloud()["vm-2"], blue);
    assert_eq!(cloud.counters().requests(Operation::ChangeTags), 1);

    let red = tags(&[("team", "red")]);
    provider.change_tags(TagChange::Add, &nodes[..1], &red).await.unwrap();
    let results = provider
        .change_tags(TagChange::Remove, &nodes[..3], &blue)
        .await
        .unwrap();
    assert_eq!(results, [Ok(()), Ok(()), Ok(())], "what does not exist has no tags");
    assert_eq!(
        (of_cloud()["vm-1"].clone(), of_cloud()["vm-2"].clone()),
        (red, Tags::new())
    );

    cloud.set_faults([Fault::slow_down(7).on(Operation::ChangeTags)]);
    let limited = provider.change_tags(TagChange::Add, &nodes[..1], &blue).await;
    assert!(
        matches!(limited, Err(CloudError::Failure(Failure::RateLimited { .. }))),
        "{limited:?}"
    );
}

#[tokio::test]
async fn wrong_answers_about_tags_are_not_used() {
    let hosting = Hosting::new(HostOptions::default());
    let provider = hosting.load("wrong_tags", settings()).await;
    assert_eq!(provider.abilities().names(), ["tagging"]);
    assert_eq!(
        provider.identity().tagging_label.as_deref(),
        Some("k8s.io/cloud-provider-wrong")
    );
    let nodes = [machine("a"), machine("b")];
    let tag = async |key: &str| provider.change_tags(TagChange::Add, &nodes, &tags(&[(key, "")])).await;
    let fault = |answer: Result<_, CloudError>| match answer {
        Err(CloudError::Fault(fault)) => (fault.kind, fault.message),
        other => panic!("{other:?}"),
    };
    let (kind, message) = fault(tag("fewer").await);
    assert_eq!(kind, FaultKind::BadAnswer);
    assert!(message.contains("1 answers for 2 items"), "{message}");
    assert_eq!(fault(tag("traps").await).0, FaultKind::Trap);
    let long = tag("long").await.unwrap();
    assert!(
        matches!(
            long.as_slice(),
            [Err(Failure::Pending { .. }), Err(Failure::InvalidResponse(_))]
        ),
        "{long:?}"
    );
    let denied = tag("other").await;
    assert!(
        matches!(denied, Err(CloudError::Failure(Failure::Denied(_)))),
        "{denied:?}"
    );
    let untagged = provider
        .change_tags(TagChange::Remove, &nodes, &tags(&[("a", "b")]))
        .await;
    assert_eq!(untagged.unwrap(), [Ok(()), Ok(())]);

    let many = vec![machine("a"); MAX_TAGGED_NODES + 1];
    assert_eq!(
        fault(provider.change_tags(TagChange::Add, &many, &tags(&[("a", "b")])).await).0,
        FaultKind::Host
    );
    let none = provider.change_tags(TagChange::Add, &[], &tags(&[("traps", "")])).await;
    assert_eq!(none.unwrap(), [], "nothing is asked about nothing");
}

#[tokio::test]
async fn provider_without_tagging_is_not_called() {
    let hosting = Hosting::new(HostOptions::default());
    let provider = hosting.load("only_instances", settings()).await;
    assert!(!provider.abilities().tagging);
    let answer = provider
        .change_tags(TagChange::Add, &[node("a")], &tags(&[("a", "b")]))
        .await;
    assert!(
        matches!(&answer, Err(CloudError::Fault(fault)) if fault.kind == FaultKind::NotExported),
        "{answer:?}"
    );
}
