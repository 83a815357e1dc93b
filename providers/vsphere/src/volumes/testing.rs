//! For tests: a vCenter that answers as `tests/vcsim` did when its answers were recorded, by the content of a request.

use cloudwit_guest_sdk::testing::volumes::new_volume;
use cloudwit_guest_sdk::testing::{FakeAnswer, FakeHost, SentRequest, recorded};
use cloudwit_guest_sdk::volumes::*;

use crate::Vsphere;

pub use cloudwit_guest_sdk::testing::volumes::token;

/// A recorded answer.
macro_rules! answer {
    ($file:literal) => {
        FakeAnswer::xml(
            200,
            cloudwit_guest_sdk::testing::recorded(include_str!(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/recorded/",
                $file
            ))),
        )
    };
}
pub(super) use answer;

/// The volume `pvc-1` of the recordings.
pub const ONE: &str = "2d52a9ee-c11e-4663-b20d-4c5595c9a18b";

/// Another one, which another machine has.
pub const OTHER: &str = "b00c06ce-4cb3-47c1-8bb6-ee8d3f8235de";

/// The machine that has [`ONE`].
pub const MACHINE: &str = "265104de-1472-547c-b873-6dc7883fb6cb";

/// What is answered to requests that have this text. The first that fits.
pub type Rules = Vec<(&'static str, FakeAnswer)>;

/// The recorded vCenter, with `first` before what it answers.
pub fn vcenter(first: Rules) -> FakeHost {
    let host = FakeHost::new();
    host.config("global:\n  server: vc.test\nvolumes: {clusterId: shop-7}\n");
    host.secret("vc.test.username", "u").secret("vc.test.password", "p");
    host.now(1_000_000);
    let login = recorded(include_str!("../../recorded/login.xml"));
    let cookie = [("Set-Cookie", "vmware_soap_session=s1; Path=/; HttpOnly")];
    // The machine of the older recordings under its id in the newer ones.
    let moved = |text: &str| FakeAnswer::xml(200, &recorded(text).replace("vm-91", "vm-52"));
    let usual: Rules = vec![
        ("<RetrieveServiceContent", answer!("cns_service_content.xml")),
        ("<Login ", FakeAnswer::new(200, &cookie, login)),
        ("<CreateContainerView", answer!("view.xml")),
        ("vsanServiceVersions.xml", answer!("cns_versions.xml")),
        ("<CurrentTime", answer!("cns_time.xml")),
        ("recentTask", answer!("cns_recent_tasks.xml")),
        ("<FindByUuid", moved(include_str!("../../recorded/found.xml"))),
        ("config.hardware.device", answer!("cns_devices.xml")),
        ("config.extraConfig", moved(include_str!("../../recorded/machines.xml"))),
        (
            "<pathSet>summary.config.uuid</pathSet>",
            moved(include_str!("../../recorded/machines.xml")),
        ),
        ("<name>stores</name>", answer!("cns_datastores.xml")),
        ("<RetrieveVStorageObjectAssociations", answer!("cns_associations.xml")),
        ("<PbmRetrieveServiceContent", answer!("pbm_content.xml")),
        ("<PbmQueryProfile", answer!("pbm_ids.xml")),
        ("<PbmRetrieveContent", answer!("pbm_profiles.xml")),
        ("<CnsQueryVolume", answer!("cns_no_volume.xml")),
        ("<CnsCreateVolume", answer!("cns_begun.xml")),
        ("<CnsDeleteVolume", answer!("cns_begun.xml")),
        ("<CnsAttachVolume", answer!("cns_begun.xml")),
        ("<CnsDetachVolume", answer!("cns_begun.xml")),
        ("<CnsQuerySnapshots", answer!("cns_begun.xml")),
        ("<CnsCreateSnapshots", answer!("cns_begun.xml")),
        ("<obj type=\"Task\">", answer!("cns_created.xml")),
    ];
    let rules: Rules = first.into_iter().chain(usual).collect();
    host.serve(move |request: &SentRequest| {
        let text = format!("{} {}", request.url, request.text());
        let rule = rules.iter().find(|(mark, _)| text.contains(mark));
        rule.map(|(_, answer)| answer.clone())
            .unwrap_or_else(|| panic!("no answer to {text}"))
    });
    host
}

/// The provider, for one call.
pub fn call(host: &FakeHost) -> Vsphere {
    host.provider()
}

/// The bodies of all requests that have this text.
pub fn sent(host: &FakeHost, part: &str) -> Vec<String> {
    let all = host.requests().into_iter().map(|request| request.text());
    all.filter(|text| text.contains(part)).collect()
}

/// A volume of two GiB.
pub fn wanted(name: &str) -> NewVolume {
    new_volume(name, 2 << 30)
}

pub fn attach(volume: &str, token: Option<&str>) -> NewAttachment {
    NewAttachment {
        volume: volume.into(),
        node_id: MACHINE.into(),
        read_only: false,
        volume_use: VolumeUse {
            block: false,
            fs_type: None,
            access: AccessMode::OneNode,
        },
        token: token.map(str::to_owned),
    }
}
