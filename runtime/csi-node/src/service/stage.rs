//! Volumes mounted once per machine, and that taken back.

use cloudwit_csi::check::{self, Mistakes};
use cloudwit_csi::proto::{
    NodeStageVolumeRequest, NodeStageVolumeResponse, NodeUnstageVolumeRequest, NodeUnstageVolumeResponse,
};
use tonic::Status;
use tracing::warn;

use super::publish::read_only_already;
use super::target;
use crate::device::{Hints, OpenDevice};
use crate::filesystem::content::{self, Content};
use crate::filesystem::decide::Wanted;
use crate::filesystem::{EmptyCheck, FileSystem, Plan, decide, tools};
use crate::mounts::{MountOptions, Table, calls};
use crate::plugin::Plugin;
use crate::request::{self, Access};

pub(super) fn stage(plugin: &Plugin, request: NodeStageVolumeRequest) -> Result<NodeStageVolumeResponse, Status> {
    let mut mistakes = Mistakes::default();
    check::id("the volume id", &request.volume_id, &mut mistakes);
    request::path("the staging target path", &request.staging_target_path, &mut mistakes);
    let volume_use = request::volume_use(request.volume_capability.as_ref(), &mut mistakes);
    let hints = hints(&request.publish_context, &mut mistakes);
    let Some((volume_use, hints)) = mistakes.none_or(volume_use.zip(hints))? else {
        return Err(Status::invalid_argument("the request is incomplete"));
    };
    let path = target::place(plugin, &request.staging_target_path)?;
    let device = plugin.devices.wait_for(&hints)?;
    let Access::Mount { file_system, options } = volume_use.access else {
        // It is shown to Pods as it is, so there is nothing to mount yet.
        return proven(&device).map(|()| NodeStageVolumeResponse {});
    };
    let options = MountOptions {
        read_only: volume_use.read_only,
        ..options
    };
    target::folder(&path)?;
    let (mounted, grows) = match Table::read()?.at(&path) {
        None => {
            let wanted = Wanted {
                file_system,
                read_only: options.read_only,
                proven: device.proven,
            };
            let plan = prepare(plugin, &device, wanted)?;
            let (Plan::Format(file_system) | Plan::Mount(file_system)) = plan;
            let options = with_defaults(options.clone(), file_system);
            calls::mount(&device.path, &path, file_system.as_str(), &options)
                .map_err(|error| target::trouble("cannot be mounted", &device.path, &error))?;
            (file_system, plan == Plan::Mount(file_system))
        }
        Some(other) if other.device != device.number => {
            return Err(Status::failed_precondition(format!(
                "device {}:{} is mounted at {}, and the volume is {}:{}",
                other.device.0,
                other.device.1,
                path.display(),
                device.number.0,
                device.number.1
            )));
        }
        Some(same) if same.read_only && !options.read_only => {
            return Err(read_only_already(&path));
        }
        // A plugin that was killed may not have come to growing it.
        Some(same) => match FileSystem::parse(&same.file_system) {
            Some(file_system) => (file_system, !same.read_only),
            None => return Ok(NodeStageVolumeResponse {}),
        },
    };
    // A volume made of a snapshot may be larger than it was. One that cannot grow is as good as before; a claim that waits for growth gets the error of NodeExpandVolume.
    if grows && !options.read_only {
        let grown = tools::grow(&device.path, &path, mounted);
        grown.unwrap_or_else(|error| warn!(path = %path.display(), %error, "file system not grown"));
    }
    Ok(NodeStageVolumeResponse {})
}

/// Looks at the device, and formats or checks it.
fn prepare(plugin: &Plugin, device: &OpenDevice, wanted: Wanted) -> Result<Plan, Status> {
    let mut content = tools::look(&device.path)?;
    if content == Content::Empty {
        let unreadable = |error| target::trouble("cannot be read", &device.path, &error);
        let written = content::looks_written(&mut &device.file).map_err(unreadable)?;
        if written && plugin.options.empty == EmptyCheck::Zeros {
            content = Content::Other("data without a known signature (where nothing of it is to be kept, zero its first and last MiB, or see --empty-check)"
                    .to_owned());
        }
    }
    let plan = decide(&content, wanted)?;
    match plan {
        Plan::Format(file_system) => tools::format(&device.path, file_system)?,
        // A check writes.
        Plan::Mount(file_system) if !wanted.read_only => tools::check(&device.path, file_system)?,
        Plan::Mount(_) => {}
    }
    Ok(plan)
}

/// A volume made of another's snapshot has its UUID, and XFS mounts no two of one.
fn with_defaults(mut options: MountOptions, file_system: FileSystem) -> MountOptions {
    if file_system == FileSystem::Xfs {
        options.data.push("nouuid".to_owned());
    }
    options
}

/// A Pod may write anything to a raw device, so it has to be the right one.
pub(super) fn proven(device: &OpenDevice) -> Result<(), Status> {
    let unproven = || {
        Status::failed_precondition(format!(
            "neither serial nor WWN proves that {} is the volume; it is not given to Pods as a raw device",
            device.path.display()
        ))
    };
    device.proven.then_some(()).ok_or_else(unproven)
}

/// Reads the hints of the publish context.
pub(super) fn hints(context: &std::collections::HashMap<String, String>, mistakes: &mut Mistakes) -> Option<Hints> {
    Hints::parse(context).map_err(|mistake| mistakes.add(mistake)).ok()
}

pub(super) fn unstage(plugin: &Plugin, request: NodeUnstageVolumeRequest) -> Result<NodeUnstageVolumeResponse, Status> {
    let mut mistakes = Mistakes::default();
    check::id("the volume id", &request.volume_id, &mut mistakes);
    request::path("the staging target path", &request.staging_target_path, &mut mistakes);
    mistakes.none_or(())?;
    // The folder is the kubelet's, which removes it.
    if let Some(path) = target::existing(plugin, &request.staging_target_path)? {
        target::unmount(&path)?;
    }
    Ok(NodeUnstageVolumeResponse {})
}
