//! What govc does to vcsim lasts, and what it refuses is an error.

use kube::{Client, Config};

use super::*;
use crate::clouds::vcsim::inventory::VirtualMachine;

#[tokio::test]
async fn guest_tags_and_power_last_as_long_as_the_server() {
    let vcsim = Vcsim::start(VcsimOptions::default()).await.unwrap();
    let machines = vcsim.machines().await.unwrap();
    assert_eq!(machines.len(), 8, "{machines:?}");
    let first = machines[0].clone();
    assert_eq!(
        (first.path.as_str(), first.guest.as_ref()),
        ("/DC0/vm/DC0_C0_RP0_VM0", None)
    );

    vcsim.set_guest(&first.path, "node-1", "10.0.0.5").await.unwrap();
    vcsim.power_off(&first.path).await.unwrap();
    vcsim.tag("k8s-zone", "a", "/DC0/host/DC0_C0").await.unwrap();
    vcsim.tag("k8s-zone", "b", "/DC1").await.unwrap();
    vcsim.destroy("/DC0/vm/DC0_C0_RP0_VM1").await.unwrap();
    let changed = vcsim.machine("DC0_C0_RP0_VM0").await.unwrap();
    let expected = VirtualMachine {
        power: "poweredOff".into(),
        guest: Some(("node-1".into(), "10.0.0.5".into())),
        ..first.clone()
    };
    assert_eq!(changed, expected);
    let gate = vcsim.gate().await.unwrap();
    let mut trusted = Config::new(gate.url().parse().unwrap());
    trusted.root_cert = Some(vec![crate::gate::tls::certificate(vcsim.authority()).unwrap()]);
    let about = http::Request::get("/about").body(Vec::new()).unwrap();
    let about = Client::try_from(trusted).unwrap().request_text(about).await.unwrap();
    assert!(about.contains("RetrieveServiceContent"), "{about}");
    let tags = vcsim
        .govc(&["tags.attached.ls", "-r", "/DC0/host/DC0_C0"])
        .await
        .unwrap();
    assert_eq!(tags.trim(), "a");
    assert!(vcsim.machine("DC0_C0_RP0_VM1").await.is_err());

    let vcsim = vcsim.restart().await.unwrap();
    assert_eq!(vcsim.machines().await.unwrap(), machines, "the same ids, and no guests");
}

#[tokio::test]
async fn what_govc_refuses_is_an_error_in_its_words() {
    let vcsim = Vcsim::start(VcsimOptions::default()).await.unwrap();
    let error = vcsim.power_off("/DC0/vm/nobody").await.unwrap_err();
    assert!(format!("{error:#}").contains("nobody"), "{error:#}");
    assert_eq!(vcsim.end_sessions().await.unwrap(), 0);
}
