//! Answers of guests about volumes: conversion, limits, secrets.

use cloudwit_model::volume::{NewVolume, SizeRange, VolumeFeature};
use cloudwit_model::{Failure, NodeRef};

use super::*;
use crate::call::answer::limits;
use crate::call::answer::{Checked, Screen};
use crate::call::walk::Walk;
use crate::contract::v0_1::answers::tests::{SECRET, pair, redactor, run};
use crate::contract::v0_1::generated::cloudwit::provider::common::Pair;
use crate::contract::v0_1::generated::cloudwit::provider::volume_types as types;
use crate::contract::v0_1::generated::exports::cloudwit::provider::{volume_expansion, volumes as exported};

fn pairs(count: usize) -> Vec<Pair> {
    (0..count).map(|number| pair(&format!("k{number}"), "v")).collect()
}

fn place(segments: Vec<Pair>) -> types::Topology {
    types::Topology { segments }
}

fn disk() -> types::Volume {
    types::Volume {
        id: "d-1".into(),
        size: 4,
        topology: vec![place(vec![pair("zone", "a")])],
        source: Some(types::VolumeSource::Snapshot("s-1".into())),
        context: vec![pair("path", "/dev/x")],
        attachments: vec![types::Attachment {
            node_id: "vm-1".into(),
            read_only: false,
        }],
        extra: Vec::new(),
    }
}

/// What comes of one volume in a list.
fn got(volume: types::Volume) -> Result<Option<cloudwit_model::volume::Volume>, Failure> {
    let redactor = redactor();
    let ids = ["d-1".to_owned()];
    let answers = vec![Ok(Some(volume))];
    let mut found = run(volumes(Screen(&redactor), &mut Walk::default(), &ids, answers)).unwrap();
    found.pop().unwrap()
}

fn description() -> exported::Driver {
    exported::Driver {
        name: "csi.test".into(),
        topology_keys: vec!["zone".into()],
        size_step: 2,
        smallest: 2,
        largest: 8,
        usual: 4,
        features: vec![exported::Feature::Clone],
        batch: Some(0),
        extra: Vec::new(),
    }
}

fn described(description: exported::Driver) -> Checked<cloudwit_model::volume::VolumeDriver> {
    driver(Screen(&redactor()), description)
}

#[test]
fn volume_is_converted_whole() {
    let volume = got(disk()).unwrap().unwrap();
    assert_eq!((volume.id.as_str(), volume.size), ("d-1", 4));
    assert_eq!(volume.topology[0].0["zone"], "a");
    // A label of a Node may be empty.
    let nowhere = types::Volume {
        topology: vec![place(vec![pair("zone", "")])],
        ..disk()
    };
    assert_eq!(got(nowhere).unwrap().unwrap().topology[0].0["zone"], "");
    assert_eq!(volume.context["path"], "/dev/x");
    assert_eq!(volume.attachments[0].node_id, "vm-1");
}

#[test]
fn invalid_volume_costs_its_item() {
    let long = |bytes: usize| "x".repeat(bytes);
    let attachment = |node_id: String| types::Attachment {
        node_id,
        read_only: false,
    };
    let odd = [
        types::Volume {
            id: "d-2".into(),
            ..disk()
        },
        types::Volume {
            id: String::new(),
            ..disk()
        },
        types::Volume {
            topology: vec![place(pairs(1)); limits::TOPOLOGIES + 1],
            ..disk()
        },
        types::Volume {
            topology: vec![place(pairs(limits::SEGMENTS + 1))],
            ..disk()
        },
        types::Volume {
            topology: vec![place(vec![pair("zone", "a"), pair("zone", "b")])],
            ..disk()
        },
        types::Volume {
            topology: vec![place(vec![pair("zone", &long(limits::SEGMENT_VALUE + 1))])],
            ..disk()
        },
        types::Volume {
            context: pairs(limits::CONTEXT + 1),
            ..disk()
        },
        types::Volume {
            context: vec![pair("k", &long(limits::CONTEXT_BYTES))],
            ..disk()
        },
        types::Volume {
            context: vec![pair("k", SECRET)],
            ..disk()
        },
        types::Volume {
            attachments: vec![attachment("n".into()); limits::ATTACHMENTS + 1],
            ..disk()
        },
        types::Volume {
            attachments: vec![attachment(long(limits::NODE_ID + 1))],
            ..disk()
        },
        types::Volume {
            source: Some(types::VolumeSource::Volume(String::new())),
            ..disk()
        },
        types::Volume {
            extra: vec![pair("k", &long(4000)); 20],
            ..disk()
        },
    ];
    for volume in odd {
        let shown = format!("{volume:?}");
        let answer = got(volume);
        let Err(Failure::InvalidResponse(problem)) = answer else {
            panic!("{shown}: {answer:?}")
        };
        assert!(!problem.contains(SECRET), "{problem}");
    }
}

#[test]
fn answers_have_the_length_of_the_question() {
    let redactor = redactor();
    let ids = ["d-1".to_owned(), "d-2".to_owned()];
    let answers = vec![Ok(None)];
    let error = run(volumes(Screen(&redactor), &mut Walk::default(), &ids, answers)).unwrap_err();
    assert_eq!(error.0, "volumes.get has 1 answers for 2 items");
    let node = NodeRef {
        name: "a".into(),
        ..NodeRef::default()
    };
    let error = run(nodes(Screen(&redactor), &mut Walk::default(), &[node], Vec::new())).unwrap_err();
    assert_eq!(error.0, "volumes.nodes has 0 answers for 1 items");
}

#[test]
fn driver_is_bounded_and_in_order() {
    let good = described(description()).unwrap();
    assert_eq!((good.features, good.batch), (vec![VolumeFeature::Clone], 1));
    let odd = [
        exported::Driver {
            name: "-csi".into(),
            ..description()
        },
        exported::Driver {
            name: "csi_test".into(),
            ..description()
        },
        exported::Driver {
            name: "c".repeat(limits::DRIVER_NAME + 1),
            ..description()
        },
        exported::Driver {
            size_step: 0,
            ..description()
        },
        exported::Driver {
            usual: 9,
            ..description()
        },
        exported::Driver {
            smallest: 5,
            ..description()
        },
        exported::Driver {
            topology_keys: vec![String::new()],
            ..description()
        },
        exported::Driver {
            topology_keys: vec!["k".into(); limits::SEGMENTS + 1],
            ..description()
        },
        exported::Driver {
            features: vec![exported::Feature::Clone; limits::VOLUME_FEATURES + 1],
            ..description()
        },
    ];
    for description in odd {
        let shown = format!("{description:?}");
        assert!(described(description).is_err(), "{shown}");
    }
}

#[test]
fn sizes_outside_of_what_was_requested_are_invalid() {
    let (redactor, size) = (
        redactor(),
        SizeRange {
            at_least: 4,
            at_most: Some(6),
        },
    );
    let new = NewVolume {
        name: "n".into(),
        size,
        uses: Vec::new(),
        parameters: Default::default(),
        mutable_parameters: Default::default(),
        source: None,
        allowed: Vec::new(),
        preferred: Vec::new(),
        tags: Default::default(),
    };
    for (bytes, good) in [(3, false), (4, true), (6, true), (7, false)] {
        let volume = types::Volume { size: bytes, ..disk() };
        assert_eq!(created(Screen(&redactor), &new, volume).is_ok(), good, "{bytes}");
        let grown = volume_expansion::Expanded {
            size: bytes,
            on_node: true,
        };
        assert_eq!(expanded(size, grown).is_ok(), bytes >= 4, "{bytes}");
    }
}

#[test]
fn page_omits_invalid_items_within_requested_length() {
    let redactor = redactor();
    let page = |volumes: Vec<types::Volume>, next: Option<String>, limit| {
        let page = types::VolumePage { volumes, next };
        run(volume_page(Screen(&redactor), &mut Walk::default(), limit, page))
    };
    let odd = types::Volume {
        id: String::new(),
        ..disk()
    };
    let page_of_two = page(vec![odd, disk()], Some("2".into()), 2).unwrap();
    assert_eq!((page_of_two.listed.items.len(), page_of_two.listed.left_out), (1, 1));
    assert_eq!(page_of_two.next.as_deref(), Some("2"));
    assert!(
        page_of_two
            .listed
            .first_problem
            .unwrap()
            .contains("the id of a volume is empty")
    );
    assert!(page(vec![disk(), disk()], None, 1).is_err());
    assert!(page(Vec::new(), Some("t".repeat(limits::TOKEN + 1)), 1).is_err());
}
