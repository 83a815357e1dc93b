use std::collections::HashMap;
use std::path::Path;

use cloudwit_csi::proto::volume_capability::access_mode::Mode;
use cloudwit_csi::proto::volume_capability::{AccessMode, AccessType, MountVolume};
use cloudwit_csi::proto::*;
use tempfile::TempDir;
use tokio::sync::watch;

use super::*;
use crate::info::{Annotation, NodeInfo};
use crate::plugin::Options;

/// A plugin on a machine without devices, and the kubelet's folder.
fn plugin(annotation: Annotation) -> (Plugin, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    for name in ["kubelet/stage", "sys/block", "dev"] {
        std::fs::create_dir_all(folder.path().join(name)).unwrap();
    }
    let options = Options {
        driver: "a.test".into(),
        version: "0.0.0".into(),
        kubelet_dir: folder.path().join("kubelet"),
        sysfs: folder.path().join("sys"),
        dev: folder.path().join("dev"),
        empty: crate::EmptyCheck::Zeros,
    };
    let info = NodeInfo::new("a.test".into(), watch::channel(annotation).1);
    (Plugin::new(options, info), folder)
}

fn mount(fs_type: &str, flags: &[&str]) -> VolumeCapability {
    VolumeCapability {
        access_mode: Some(AccessMode {
            mode: Mode::SingleNodeWriter.into(),
        }),
        access_type: Some(AccessType::Mount(MountVolume {
            fs_type: fs_type.into(),
            mount_flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
            ..MountVolume::default()
        })),
    }
}

fn context() -> HashMap<String, String> {
    [(format!("{}serial", cloudwit_csi::DEVICE_HINT), "vol-1".to_owned())].into()
}

fn staged(path: &Path, capability: VolumeCapability) -> NodeStageVolumeRequest {
    NodeStageVolumeRequest {
        volume_id: "vol-1".into(),
        staging_target_path: path.display().to_string(),
        volume_capability: Some(capability),
        publish_context: context(),
        ..NodeStageVolumeRequest::default()
    }
}

#[tokio::test]
async fn all_mistakes_of_a_request_are_reported() {
    let (plugin, folder) = plugin(Annotation::Missing);
    let nothing = plugin
        .node_stage_volume(Request::new(NodeStageVolumeRequest::default()))
        .await;
    let nothing = nothing.unwrap_err();
    assert_eq!(nothing.code(), Code::InvalidArgument);
    for part in ["volume id", "staging target path", "capability", "publish context"] {
        assert!(nothing.message().contains(part), "{nothing}");
    }
    let place = folder.path().join("kubelet/stage/a");
    for (request, part) in [
        (
            staged(Path::new("/mnt/a"), mount("", &[])),
            "not below the kubelet's folder",
        ),
        (staged(&place.join("../../../a"), mount("", &[])), ".."),
        (staged(&place, mount("ntfs", &[])), "ntfs"),
        (staged(&place, mount("", &["loop"])), "loop"),
        (
            NodeStageVolumeRequest {
                publish_context: HashMap::new(),
                ..staged(&place, mount("", &[]))
            },
            "names no device",
        ),
    ] {
        let refused = plugin.node_stage_volume(Request::new(request)).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
        assert!(refused.message().contains(part), "{refused}");
    }
    assert!(!place.exists());
}

#[tokio::test]
async fn second_operation_of_a_volume_is_aborted() {
    let (plugin, folder) = plugin(Annotation::Missing);
    let request = NodeUnpublishVolumeRequest {
        volume_id: "vol-1".into(),
        target_path: folder.path().join("kubelet/pods/gone/mount").display().to_string(),
    };
    let held = plugin.changes.begin("vol-1", "NodeStageVolume").unwrap();
    let busy = plugin
        .node_unpublish_volume(Request::new(request.clone()))
        .await
        .unwrap_err();
    assert_eq!(busy.code(), Code::Aborted);
    drop(held);
    // What was never there is gone.
    plugin.node_unpublish_volume(Request::new(request)).await.unwrap();
}

#[tokio::test]
async fn paths_without_a_volume_have_neither_statistics_nor_growth() {
    let (plugin, folder) = plugin(Annotation::Missing);
    let stage = folder.path().join("kubelet/stage").display().to_string();
    for volume_path in ["some/path", "/mnt/elsewhere", &stage] {
        let stats = NodeGetVolumeStatsRequest {
            volume_id: "vol-1".into(),
            volume_path: volume_path.into(),
            ..NodeGetVolumeStatsRequest::default()
        };
        let refused = plugin.node_get_volume_stats(Request::new(stats)).await.unwrap_err();
        assert_eq!(refused.code(), Code::NotFound, "{volume_path}: {refused}");
        let expand = NodeExpandVolumeRequest {
            volume_id: "vol-1".into(),
            volume_path: volume_path.into(),
            ..NodeExpandVolumeRequest::default()
        };
        let refused = plugin.node_expand_volume(Request::new(expand)).await.unwrap_err();
        assert_eq!(refused.code(), Code::NotFound, "{volume_path}: {refused}");
    }
}

#[tokio::test]
async fn node_information_is_what_stands_on_the_node() {
    let value = r#"{"driver":"a.test","nodeID":"m-1","topology":{"zone":"z"},"maxVolumes":7}"#;
    let (known, _folder) = plugin(Annotation::Value(value.into()));
    let info = known
        .node_get_info(Request::new(NodeGetInfoRequest {}))
        .await
        .unwrap()
        .into_inner();
    assert_eq!((info.node_id.as_str(), info.max_volumes_per_node), ("m-1", 7));
    assert_eq!(info.accessible_topology.unwrap().segments["zone"], "z");
    let (unknown, _folder) = plugin(Annotation::Missing);
    let refused = unknown
        .node_get_info(Request::new(NodeGetInfoRequest {}))
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable);
}
