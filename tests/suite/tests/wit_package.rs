//! The contract as a package that tools of other languages read: it is encoded to a WIT package in binary form, as `wkg` and `wasm-tools component wit`
//! do before they publish one, and read back.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;

use cloudwit_suite::root;
use wit_component::DecodedWasm;
use wit_parser::{PackageId, Resolve, WorldId, WorldItem, WorldKey};

/// The worlds for toolchains that insist on each export, and what each exports.
const WORLDS: [(&str, &[&str]); 4] = [
    ("cloud-provider", &["info", "instances", "load-balancers", "routes"]),
    ("cloud-provider-instances", &["info", "instances"]),
    (
        "cloud-provider-instances-load-balancers",
        &["info", "instances", "load-balancers"],
    ),
    ("cloud-provider-instances-routes", &["info", "instances", "routes"]),
];

fn source() -> (Resolve, PackageId) {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(root().join("wit/v0.1")).unwrap();
    (resolve, package)
}

fn named(resolve: &Resolve, items: &BTreeMap<String, WorldKey>) -> Vec<String> {
    items.values().map(|key| resolve.name_world_key(key)).collect()
}

/// The interfaces that a world imports or exports, by their names.
fn interfaces<'i>(resolve: &Resolve, items: impl Iterator<Item = (&'i WorldKey, &'i WorldItem)>) -> Vec<String> {
    let keys = items.map(|(key, _)| (resolve.name_world_key(key), key.clone()));
    named(resolve, &keys.collect())
}

fn world(resolve: &Resolve, package: PackageId, name: &str) -> WorldId {
    let found = resolve.packages[package].worlds.get(name);
    *found.unwrap_or_else(|| {
        panic!(
            "there is no world {name} in {:?}",
            resolve.packages[package].worlds.keys()
        )
    })
}

#[test]
fn the_contract_is_encoded_as_a_package_and_read_back() {
    let (written, package) = source();
    let encoded = wit_component::encode(&written, package, false).unwrap();
    let DecodedWasm::WitPackage(read, again) = wit_component::decode(&encoded).unwrap() else {
        panic!("it is read as something else than a WIT package");
    };
    let name = |resolve: &Resolve, package: PackageId| resolve.packages[package].name.to_string();
    assert_eq!(name(&read, again), "cloudwit:provider@0.1.0");
    let names = |resolve: &Resolve, package: PackageId| {
        let package = &resolve.packages[package];
        let mut names: Vec<String> = package
            .worlds
            .keys()
            .chain(package.interfaces.keys())
            .cloned()
            .collect();
        names.sort();
        names
    };
    assert_eq!(names(&read, again), names(&written, package));
    for world_name in written.packages[package].worlds.keys() {
        let (one, other) = (world(&written, package, world_name), world(&read, again, world_name));
        let (one, other) = (&written.worlds[one], &read.worlds[other]);
        assert_eq!(
            interfaces(&written, one.imports.iter()),
            interfaces(&read, other.imports.iter()),
            "imports of {world_name}"
        );
        assert_eq!(
            interfaces(&written, one.exports.iter()),
            interfaces(&read, other.exports.iter()),
            "exports of {world_name}"
        );
        assert_eq!(one.docs, other.docs, "{world_name}");
    }
    // Encoding what was read gives the same bytes: nothing was lost.
    assert_eq!(wit_component::encode(&read, again, false).unwrap(), encoded);
}

#[test]
fn each_combination_of_a_real_cloud_has_a_world() {
    let (resolve, package) = source();
    let full = &resolve.worlds[world(&resolve, package, "cloud-provider")];
    for (name, exports) in WORLDS {
        let found = &resolve.worlds[world(&resolve, package, name)];
        let expected: Vec<String> = exports
            .iter()
            .map(|interface| format!("cloudwit:provider/{interface}@0.1.0"))
            .collect();
        assert_eq!(interfaces(&resolve, found.exports.iter()), expected, "{name}");
        for import in ["cloudwit:provider/keys@0.1.0", "wasi:http/outgoing-handler@0.2.12"] {
            let imports = interfaces(&resolve, found.imports.iter());
            assert!(imports.iter().any(|known| known == import), "{name}: {imports:?}");
            let all = interfaces(&resolve, full.imports.iter());
            assert!(imports.iter().all(|import| all.contains(import)), "{name}: {imports:?}");
        }
        assert!(found.docs.contents.is_some(), "{name} has no documentation");
    }
}
