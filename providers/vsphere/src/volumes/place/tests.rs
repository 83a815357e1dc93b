//! Which datastores a volume may be on.

use super::*;
use crate::vcenter::soap::Reference;

fn keys() -> [String; 2] {
    topology_keys(&Categories {
        zone: "k8s-zone".into(),
        region: "k8s-region".into(),
    })
    .unwrap()
}

fn zone(name: &str) -> Zone {
    (name.into(), "north".into())
}

fn place(name: &str) -> Topology {
    topology(&keys(), &zone(name))
}

fn store(name: &str, zones: &[&str]) -> Store {
    Store {
        reference: Reference::new("Datastore", name),
        name: name.into(),
        url: format!("ds:///vmfs/volumes/{name}/"),
        is_usable: true,
        is_shared: false,
        zones: zones.iter().map(|name| zone(name)).collect(),
    }
}

fn chosen(wish: &Wish, stores: &[Store], keys: Option<&[String; 2]>) -> Result<Vec<String>, Failure> {
    let chosen = wish.choose(stores, keys)?;
    Ok(chosen.into_iter().map(|store| store.name.clone()).collect())
}

#[test]
fn keys_are_upstreams_and_no_label_is_no_key() {
    assert_eq!(
        keys(),
        ["topology.csi.vmware.com/k8s-region", "topology.csi.vmware.com/k8s-zone"]
    );
    for (zone, region) in [
        ("my zone", "region"),
        ("zone", ""),
        ("same", "same"),
        ("-zone", "region"),
    ] {
        let categories = Categories {
            zone: zone.into(),
            region: region.into(),
        };
        assert_eq!(topology_keys(&categories), None, "{zone} {region}");
    }
}

#[test]
fn best_place_with_a_datastore_wins() {
    let stores = [store("a1", &["a"]), store("both", &["a", "b"]), store("b1", &["b"])];
    let mut wish = Wish {
        places: vec![place("c"), place("b"), place("a")],
        ..Wish::default()
    };
    assert_eq!(chosen(&wish, &stores, Some(&keys())).unwrap(), ["both", "b1"]);
    wish.source = Some("ds:///vmfs/volumes/a1".into());
    assert_eq!(chosen(&wish, &stores, Some(&keys())).unwrap(), ["a1"]);
    wish.source = None;
    wish.places = vec![place("c")];
    let none = chosen(&wish, &stores, Some(&keys())).unwrap_err();
    assert_eq!(none.kind, FailureKind::Exhausted);
}

#[test]
fn named_datastore_is_found_by_url_and_name_and_refused_elsewhere() {
    let mut stores = [store("a1", &["a"]), store("b1", &["b"])];
    let wish = |store: &str, zone: &str| Wish {
        places: vec![place(zone)],
        store: Some(store.into()),
        source: None,
    };
    for name in ["ds:///vmfs/volumes/b1/", "ds:///vmfs/volumes/b1", "b1"] {
        assert_eq!(
            chosen(&wish(name, "b"), &stores, Some(&keys())).unwrap(),
            ["b1"],
            "{name}"
        );
    }
    stores[1].is_usable = false;
    for (name, zone) in [("b1", "a"), ("b1", "b"), ("nowhere", "a")] {
        let refused = chosen(&wish(name, zone), &stores, Some(&keys())).unwrap_err();
        let named = refused.message.contains("datastoreurl") && refused.message.contains(name);
        assert!(refused.kind == FailureKind::Invalid && named, "{name}: {refused:?}");
    }
}

#[test]
fn without_zones_only_shared_datastores_count() {
    let mut stores = [store("local", &[]), store("shared", &[])];
    stores[1].is_shared = true;
    assert_eq!(chosen(&Wish::default(), &stores, None).unwrap(), ["shared"]);
    stores[1].is_shared = false;
    assert_eq!(
        chosen(&Wish::default(), &stores, None).unwrap_err().kind,
        FailureKind::Exhausted
    );
}

#[test]
fn datastore_is_in_zones_whose_hosts_all_have_it() {
    let set = |hosts: &[&str]| {
        hosts
            .iter()
            .map(|host| (*host).to_owned())
            .collect::<BTreeSet<String>>()
    };
    let zones = [(zone("a"), set(&["h1", "h2"])), (zone("b"), set(&["h3"]))];
    assert_eq!(zones_of(&set(&["h1", "h2", "h3"]), &zones), [zone("a"), zone("b")]);
    assert_eq!(zones_of(&set(&["h1", "h3"]), &zones), [zone("b")]);
    assert_eq!(zones_of(&set(&["h1"]), &zones), [] as [Zone; 0]);
}
