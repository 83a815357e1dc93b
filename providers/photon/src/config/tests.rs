use cloudwit_guest_sdk::testing::{FakeHost, keys_of};

use super::*;
use crate::Photon;

const SOUND: &str = "[Global]\ntarget = https://photon.test\ntenant = t\nproject = p\n";

/// Where each problem is.
fn problems(text: &str) -> Vec<String> {
    let host = FakeHost::new();
    host.config(text);
    host.check::<Photon>()
        .iter()
        .map(|problem| problem.at.clone())
        .collect()
}

#[test]
fn the_in_tree_providers_file_is_read() {
    assert_eq!(
        problems(&format!("{SOUND}ignoreCertificate = false\noverrideIP = true\n")),
        [""; 0]
    );
    assert_eq!(
        problems(&format!("{SOUND}ignoreCertificate = true\n")),
        ["global.ignorecertificate"]
    );
    assert_eq!(problems(""), ["global.target", "global.project"]);
    // That of Kubernetes 1.7 and later.
    let later = "[Global]\ntarget = https://photon.test\nproject = 8a5b1c2d-0e3f\noverrideIP = false\nvmID = 1-2\n";
    assert_eq!(problems(&format!("{later}authentication = false\n")), ["global.vmid"]);
    assert_eq!(
        problems(&format!("{later}authentication = true\n")),
        ["global.vmid", "global.authentication"]
    );
    let lightwave = "authentication = true\nlightwave = https://lw.test\nusername = me\n";
    assert_eq!(problems(&format!("{later}{lightwave}")), ["global.vmid"]);
    assert_eq!(
        problems("[Global]\ntarget = https://photon.test\nproject = my project\n"),
        ["global.tenant"]
    );
    assert_eq!(
        problems(&format!("{SOUND}target = photon\napi-root = v1\n")),
        ["global.target", "global.api-root"]
    );
    assert_eq!(problems(&format!("{SOUND}lightwave = lw\n")), ["global.lightwave"]);
    assert_eq!(
        problems(&format!("{SOUND}lightwave = https://lw.test\n")),
        ["global.username"]
    );
    assert_eq!(problems(&format!("{SOUND}username = me\n")), ["global.username"]);
}

#[test]
fn what_is_requested_follows_from_target_and_lightwave() {
    let told = |more: &str| {
        let host = FakeHost::new();
        host.config(format!("{SOUND}{more}"));
        let told = host.describe::<Photon>();
        let hosts: Vec<String> = told.http.iter().map(HttpWish::binding).collect();
        (hosts, told.secrets.first().map(|secret| secret.hosts.clone()))
    };
    // Once to read, once for volumes.
    let api = ["photon.test", "photon.test"].map(str::to_owned);
    assert_eq!(told(""), (api.to_vec(), None));
    let lightwave = told("lightwave = https://lw.test:443\nusername = me\n");
    assert_eq!(
        lightwave,
        (
            [&api[..], &["lw.test:443".to_owned()]].concat(),
            Some(vec!["lw.test:443".into()])
        )
    );
}

#[test]
fn the_readme_has_every_key() {
    let readme = include_str!("../../README.md");
    for key in keys_of::<Global>() {
        assert!(readme.to_lowercase().contains(&format!("`{key}`")), "{key}");
    }
}
