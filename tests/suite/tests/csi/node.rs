//! The node service on real devices, with the process killed meanwhile.

use std::fs::{self, File};
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use cloudwit_csi::proto::volume_capability::AccessMode;
use cloudwit_csi::proto::volume_capability::access_mode::Mode;
use cloudwit_csi::proto::*;
use cloudwit_csi_node::registration_proto::registration_client::RegistrationClient;
use cloudwit_csi_node::registration_proto::{InfoRequest, RegistrationStatus};
use cloudwit_test_support::eventually;
use tonic::{Code, Status};

use crate::kubelet::{Kubelet, block, hint, mount};
use crate::machine::{DRIVER, Machine, SOON, program};
use crate::scene::dial_to_register;

const MIB: u64 = 1 << 20;

/// The first bytes of a file, as far as all signatures reach.
fn head(file: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    File::open(file).unwrap().take(4 * MIB).read_to_end(&mut bytes).unwrap();
    bytes
}

#[tokio::test(flavor = "multi_thread")]
async fn staging_and_publishing_survive_a_killed_plugin() {
    let Some(mut machine) = Machine::start("csi-node-killed").await else {
        return;
    };
    let id = machine.create("killed", 1, mount("ext4")).await;
    let context = machine.attach(&id, mount("ext4")).await;
    let mut kubelet = Kubelet::of(&machine).await;
    kubelet.stage(&id, "a", &context, mount("ext4")).await.unwrap();
    kubelet.stage(&id, "a", &context, mount("ext4")).await.unwrap();
    kubelet
        .publish((&id, "a", "one"), &context, mount("ext4"), false)
        .await
        .unwrap();
    fs::write(machine.inside("pods/one/data"), "kept").unwrap();
    machine.kill_plugin();
    machine.start_plugin().await;
    let mut kubelet = Kubelet::of(&machine).await;
    kubelet.stage(&id, "a", &context, mount("ext4")).await.unwrap();
    kubelet
        .publish((&id, "a", "one"), &context, mount("ext4"), false)
        .await
        .unwrap();
    kubelet
        .publish((&id, "a", "two"), &context, mount("ext4"), false)
        .await
        .unwrap();
    assert_eq!(fs::read_to_string(machine.inside("pods/two/data")).unwrap(), "kept");
    // Each is taken back once, and again.
    for _ in 0..2 {
        kubelet.unpublish(&id, "one").await.unwrap();
        assert!(!machine.inside("pods/one").exists());
    }
    assert_eq!(fs::read_to_string(machine.inside("pods/two/data")).unwrap(), "kept");
    kubelet.unpublish(&id, "two").await.unwrap();
    for _ in 0..2 {
        kubelet.unstage(&id, "a").await.unwrap();
        assert_eq!(fs::read_dir(machine.inside("stage/a")).unwrap().count(), 0);
    }
    // What was written is there when the volume comes back.
    kubelet.stage(&id, "a", &context, mount("")).await.unwrap();
    assert_eq!(fs::read_to_string(machine.inside("stage/a/data")).unwrap(), "kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_but_a_proven_empty_device_is_formatted() {
    let Some(machine) = Machine::start("csi-node-formatted").await else {
        return;
    };
    let mut kubelet = Kubelet::of(&machine).await;
    // What is written to the disk before, and what the refusal says of it.
    let luks: &[u8] = b"LUKS\xba\xbe\x00\x02";
    for (name, at, bytes, said) in [
        (
            "random",
            4096,
            b"data of somebody".as_slice(),
            "data without a known signature",
        ),
        (
            "tail",
            1024 * MIB - 8192,
            b"data of somebody",
            "data without a known signature",
        ),
        ("luks", 0, luks, "neither mounted nor formatted"),
    ] {
        let id = machine.create(name, 1, mount("")).await;
        let file = machine.disks.file(&id);
        let mut disk = File::create(&file).unwrap();
        disk.seek(SeekFrom::Start(at)).unwrap();
        disk.write_all(bytes).unwrap();
        let context = machine.attach(&id, mount("")).await;
        let before = head(&file);
        let refused = kubelet.stage(&id, name, &context, mount("")).await.unwrap_err();
        assert_eq!(refused.code(), Code::FailedPrecondition, "{name}: {refused}");
        assert!(refused.message().contains(said), "{name}: {refused}");
        assert!(head(&file) == before, "{name} was written to");
    }
    // Where only a path is known, the device may be another's.
    let id = machine.create("unproven", 1, mount("")).await;
    let context = machine.attach(&id, mount("")).await;
    let path = hint("path", &format!("/dev/{}", machine.disks.device(&id).unwrap()));
    for capability in [mount("ext4"), block()] {
        let refused = kubelet.stage(&id, "unproven", &path, capability).await.unwrap_err();
        assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
        assert!(refused.message().contains("serial nor WWN"), "{refused}");
    }
    assert!(head(&machine.disks.file(&id)).iter().all(|byte| *byte == 0));
    // Formatted by its serial, it may be mounted by its path; another file system is not put over it.
    kubelet.stage(&id, "unproven", &context, mount("ext4")).await.unwrap();
    kubelet.unstage(&id, "unproven").await.unwrap();
    let refused = kubelet
        .stage(&id, "unproven", &context, mount("xfs"))
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
    kubelet.stage(&id, "unproven", &path, mount("")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn devices_that_cannot_be_distinguished_are_refused() {
    let Some(machine) = Machine::start("csi-node-apart").await else {
        return;
    };
    let mut kubelet = Kubelet::of(&machine).await;
    let one = machine.create("one", 1, mount("")).await;
    let context = machine.attach(&one, mount("")).await;
    let other = machine.create("other", 1, mount("")).await;
    let others = machine.attach(&other, mount("")).await;
    machine.disks.set_serial(&other, &one);
    let refused = kubelet.stage(&one, "a", &context, mount("")).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
    assert!(refused.message().contains("several block devices"), "{refused}");
    machine.disks.set_serial(&other, &other);
    kubelet.stage(&one, "a", &context, mount("")).await.unwrap();
    // Another volume where this one is.
    let refused = kubelet.stage(&other, "a", &others, mount("")).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
    kubelet
        .publish((&one, "a", "pod"), &context, mount(""), false)
        .await
        .unwrap();
    let refused = kubelet
        .publish((&other, "a", "pod"), &others, mount(""), false)
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
    // Somewhere else than below the kubelet's folder, and up from it.
    for path in ["/mnt/elsewhere", "/etc"] {
        let request = NodeUnpublishVolumeRequest {
            volume_id: one.clone(),
            target_path: path.into(),
        };
        let refused = kubelet.client.node_unpublish_volume(request).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
    }
    // What somebody wrote where nothing was mounted.
    fs::create_dir_all(machine.kubelet("pods/foreign")).unwrap();
    fs::write(machine.kubelet("pods/foreign/data"), "x").unwrap();
    let refused = kubelet.unpublish(&one, "foreign").await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
    assert!(machine.kubelet("pods/foreign/data").exists());
}

/// Whether root may do that here: CAP_SYS_RESOURCE is number 24 (capabilities(7)).
fn may_grow_ext4() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap();
    u64::from_str_radix(effective.trim(), 16).unwrap() & (1 << 24) != 0
}

/// Whether there are the programs for XFS; on Debian they are installed.
fn has_xfs() -> bool {
    let there = || program("mkfs.xfs").is_some() && program("xfs_growfs").is_some();
    there() || (xtask::debian::install(&["xfsprogs"]).is_ok_and(|tried| tried) && there())
}

#[tokio::test(flavor = "multi_thread")]
async fn volumes_grow_while_they_are_used() {
    let Some(machine) = Machine::start("csi-node-grow").await else {
        return;
    };
    let mut file_systems = Vec::new();
    if may_grow_ext4() {
        file_systems.push("ext4");
    } else {
        eprintln!("SKIPPED growth of ext4 while it is used: root has no CAP_SYS_RESOURCE here");
    }
    if tokio::task::spawn_blocking(has_xfs).await.unwrap() {
        file_systems.push("xfs");
    } else {
        eprintln!("SKIPPED growth of XFS: there is no mkfs.xfs (Debian: xfsprogs)");
    }
    let mut kubelet = Kubelet::of(&machine).await;
    for fs_type in file_systems {
        let id = machine.create(fs_type, 1, mount(fs_type)).await;
        let context = machine.attach(&id, mount(fs_type)).await;
        kubelet.stage(&id, fs_type, &context, mount(fs_type)).await.unwrap();
        let published = kubelet.publish((&id, fs_type, fs_type), &context, mount(fs_type), false);
        published.await.unwrap();
        let (before, inodes) = kubelet.total(&id, fs_type).await.unwrap();
        assert!(
            before > 800 << 20 && inodes.is_some_and(|inodes| inodes > 0),
            "{before} {inodes:?}"
        );
        machine.grow(&id, 3).await;
        assert_eq!(kubelet.expand(&id, fs_type, 3).await.unwrap(), 3 << 30);
        let (after, _) = kubelet.total(&id, fs_type).await.unwrap();
        assert!(after > before + (1800 << 20), "{fs_type}: {before} then {after}");
        // Grown while it was not here: staging makes up for it.
        kubelet.unpublish(&id, fs_type).await.unwrap();
        kubelet.unstage(&id, fs_type).await.unwrap();
        machine.grow(&id, 4).await;
        // The device, which follows its file a moment later.
        let sectors = || {
            let size = Path::new("/sys/block").join(machine.disks.device(&id)?).join("size");
            fs::read_to_string(size).ok()?.trim().parse::<u64>().ok()
        };
        eventually(SOON, "the device has grown", async || {
            sectors() == Some((4 << 30) / 512)
        })
        .await;
        kubelet.stage(&id, fs_type, &context, mount("")).await.unwrap();
        let published = kubelet.publish((&id, fs_type, fs_type), &context, mount(""), false);
        published.await.unwrap();
        let (last, _) = kubelet.total(&id, fs_type).await.unwrap();
        assert!(last > after + (800 << 20), "{fs_type}: {after} then {last}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn raw_devices_and_read_only_volumes_are_shown_as_requested() {
    let Some(machine) = Machine::start("csi-node-raw").await else {
        return;
    };
    let mut kubelet = Kubelet::of(&machine).await;
    let raw = machine.create("raw", 1, block()).await;
    let context = machine.attach(&raw, block()).await;
    kubelet.stage(&raw, "raw", &context, block()).await.unwrap();
    for _ in 0..2 {
        kubelet
            .publish((&raw, "raw", "raw"), &context, block(), false)
            .await
            .unwrap();
    }
    let device = machine.inside("pods/raw");
    assert!(fs::metadata(&device).unwrap().file_type().is_block_device());
    let mut written = File::options().write(true).open(&device).unwrap();
    written.write_all(b"raw data").unwrap();
    written.sync_all().unwrap();
    drop(written);
    assert!(head(&machine.disks.file(&raw)).starts_with(b"raw data"));
    assert_eq!(kubelet.total(&raw, "raw").await.unwrap(), (1 << 30, None));
    machine.grow(&raw, 2).await;
    assert_eq!(kubelet.expand(&raw, "raw", 2).await.unwrap(), 2 << 30);
    for _ in 0..2 {
        kubelet.unpublish(&raw, "raw").await.unwrap();
        assert!(!device.exists());
    }
    kubelet.unstage(&raw, "raw").await.unwrap();

    let id = machine.create("read-only", 1, mount("")).await;
    let context = machine.attach(&id, mount("")).await;
    let reads = VolumeCapability {
        access_mode: Some(AccessMode {
            mode: Mode::SingleNodeReaderOnly.into(),
        }),
        ..mount("")
    };
    let refused = kubelet.stage(&id, "ro", &context, reads.clone()).await.unwrap_err();
    assert!(refused.message().contains("read only"), "an empty volume: {refused}");
    kubelet.stage(&id, "ro", &context, mount("")).await.unwrap();
    kubelet
        .publish((&id, "ro", "rw"), &context, mount(""), false)
        .await
        .unwrap();
    kubelet
        .publish((&id, "ro", "ro"), &context, mount(""), true)
        .await
        .unwrap();
    fs::write(machine.inside("pods/rw/data"), "x").unwrap();
    assert_eq!(fs::read_to_string(machine.inside("pods/ro/data")).unwrap(), "x");
    let refused = fs::write(machine.inside("pods/ro/data"), "y").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ReadOnlyFilesystem);
    let refused = kubelet
        .publish((&id, "ro", "ro"), &context, mount(""), false)
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::AlreadyExists, "{refused}");
    for pod in ["ro", "rw"] {
        kubelet.unpublish(&id, pod).await.unwrap();
    }
    kubelet.unstage(&id, "ro").await.unwrap();
    // Staged for reading, it is not given to who writes.
    kubelet.stage(&id, "read", &context, reads.clone()).await.unwrap();
    let refused = kubelet
        .publish((&id, "read", "writer"), &context, mount(""), false)
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::AlreadyExists, "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn kubelet_registers_the_plugin_once_the_node_is_known() {
    let Some(mut machine) = Machine::without_annotation("csi-node-registered").await else {
        return;
    };
    let mut client = machine.client().await;
    let unknown = |status: Status| {
        status
            .message()
            .contains("no annotation csi.cloudwit.dev/node")
            .then_some(status)
    };
    let refused = eventually(SOON, "the Node is read", || {
        let mut client = client.clone();
        async move {
            client
                .node_get_info(NodeGetInfoRequest {})
                .await
                .err()
                .and_then(unknown)
        }
    })
    .await;
    assert_eq!(refused.code(), Code::Unavailable);
    let socket = machine.registration_socket();
    assert!(!socket.exists());
    machine.annotate().await;
    let dialled = || {
        let socket = socket.clone();
        async move { tokio::net::UnixStream::connect(socket).await }
    };
    eventually(SOON, "the registration", dialled).await;
    let mut registration = RegistrationClient::new(dial_to_register(socket.clone()).await);
    let info = registration.get_info(InfoRequest {}).await.unwrap().into_inner();
    assert_eq!((info.r#type.as_str(), info.name.as_str()), ("CSIPlugin", DRIVER));
    assert_eq!(info.endpoint, machine.socket().display().to_string());
    assert_eq!(info.supported_versions, ["1.0.0"]);
    let node = client.node_get_info(NodeGetInfoRequest {}).await.unwrap().into_inner();
    assert_eq!((node.node_id.as_str(), node.max_volumes_per_node), ("vm-1", 16));
    // A refusal makes it come again, with a new socket; a plugin that was killed leaves its socket to the next one.
    let made = || fs::metadata(&socket).and_then(|socket| socket.modified());
    let first = made().unwrap();
    let refusal = RegistrationStatus {
        plugin_registered: false,
        error: "not now".into(),
    };
    registration.notify_registration_status(refusal).await.unwrap();
    eventually(SOON, "the refused registration to make way", async || {
        made().is_ok_and(|next| next != first)
    })
    .await;
    eventually(SOON, "the next registration", dialled).await;
    machine.kill_plugin();
    assert!(socket.exists());
    machine.start_plugin().await;
    eventually(SOON, "the registration of the next plugin", dialled).await;
    let mut registration = RegistrationClient::new(dial_to_register(socket.clone()).await);
    let registered = RegistrationStatus {
        plugin_registered: true,
        error: String::new(),
    };
    registration.notify_registration_status(registered).await.unwrap();
    machine.stop_plugin().await;
    assert!(!socket.exists() && !machine.socket().exists());
}
