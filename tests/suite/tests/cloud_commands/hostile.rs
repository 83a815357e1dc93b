//! A component that answers what no answer may be: nothing of it reaches flags, files or a table.

use cloudwit_host::HostOptions;
use cloudwit_model::{
    Cloud as _, CloudError, DnsScrubber as _, EnsuredKey, Failure, FaultKind, KnownClusters as _, Location as _,
    Resolver, SshKey, SshKeys as _,
};
use cloudwit_suite::hosting::{Hosting, settings};

use crate::KEY;

fn fault(error: &CloudError) -> FaultKind {
    match error {
        CloudError::Fault(fault) => fault.kind,
        CloudError::Failure(Failure::InvalidResponse(_)) => FaultKind::BadAnswer,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn invalid_answers_are_faults_and_name_what_is_wrong() {
    let hosting = Hosting::new(HostOptions::default());
    let provider = hosting.load("wrong_machine", settings()).await;
    assert_eq!(
        provider.abilities().names(),
        ["clusters", "dns", "location", "ssh-keys"]
    );
    assert_eq!(provider.locate("good").await.unwrap().node, "node-1");
    for (hostname, words) in [
        ("shell", "\"node-1;reboot\""),
        ("foreign", "begins with no prefix"),
        ("lines", "control characters"),
        ("flood", "10000 bytes"),
    ] {
        let error = provider.locate(hostname).await.unwrap_err();
        assert_eq!(fault(&error), FaultKind::BadAnswer, "{hostname}");
        assert!(error.to_string().contains(words), "{hostname}: {error}");
    }
    assert_eq!(fault(&provider.locate("traps").await.unwrap_err()), FaultKind::Trap);
    let resolver = Resolver::default();
    let error = provider.scrub_dns(&resolver).await.unwrap_err();
    assert!(error.to_string().contains("not an IP address"), "{error}");
    let error = provider.known_clusters().await.unwrap_err();
    assert!(error.to_string().contains("1001 entries"), "{error}");
}

#[tokio::test]
async fn pending_key_is_continued_by_its_token() {
    let hosting = Hosting::new(HostOptions::default());
    let provider = hosting.load("wrong_machine", settings()).await;
    let key = SshKey::new("core", KEY).unwrap();
    let Err(CloudError::Failure(Failure::Pending { token, .. })) = provider.ensure_ssh_key(&key, None).await else {
        panic!("it is done at once")
    };
    assert_eq!(token, "core");
    assert_eq!(provider.ensure_ssh_key(&key, Some(&token)).await, Ok(EnsuredKey::Added));
}

#[tokio::test]
async fn what_is_not_exported_is_a_fault_of_its_own() {
    let hosting = Hosting::new(HostOptions::default());
    let provider = hosting.load("only_instances", settings()).await;
    let error = provider.locate("node-1").await.unwrap_err();
    assert_eq!(fault(&error), FaultKind::NotExported);
}
