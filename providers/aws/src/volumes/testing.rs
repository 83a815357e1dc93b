//! For tests: a small EC2 with volumes, snapshots and instances, which keeps its state, and is slow where a test needs that.

use std::cell::RefCell;
use std::rc::Rc;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::testing::volumes::new_volume;
use cloudwit_guest_sdk::testing::{FakeAnswer, FakeHost, SentRequest};
use cloudwit_guest_sdk::volumes::*;

use super::disk::GIB;
use super::{ZONE_KEY, ZONE_KEYS};
use crate::Aws;
use crate::testing::{actions, host, refusal};

pub use cloudwit_guest_sdk::testing::volumes::token;

/// A volume.
#[derive(Debug, Clone, Default)]
pub struct SmallDisk {
    pub id: String,
    pub gib: u64,
    pub zone: String,
    pub kind: String,
    pub iops: String,
    pub state: &'static str,
    pub shared: bool,
    pub snapshot: String,
    pub tags: Vec<(String, String)>,
    /// Instance, device, state.
    pub attachments: Vec<(String, String, &'static str)>,
    /// State and target size of its modification.
    pub modification: Option<(&'static str, u64)>,
}

/// A snapshot: id, volume, state, tags.
pub type SmallSnapshot = (String, String, &'static str, Vec<(String, String)>);

/// All that there is.
#[derive(Debug, Default)]
pub struct SmallState {
    pub disks: Vec<SmallDisk>,
    pub snapshots: Vec<SmallSnapshot>,
    /// Instances and their devices. All are in `us-east-1a`.
    pub machines: Vec<(String, Vec<String>)>,
    /// What new things are at first; `available` and so on when it is empty.
    pub begins: &'static str,
    /// These actions are refused once each, with code and message, first come first.
    pub refusals: Vec<(&'static str, &'static str, &'static str)>,
    made: u32,
}

/// The cloud and a host for the provider.
pub struct SmallEbs {
    pub host: FakeHost,
    pub state: Rc<RefCell<SmallState>>,
}

/// An id that EC2 could have given out.
pub fn vol(number: u32) -> String {
    format!("vol-{number:017x}")
}

/// The same for an instance.
pub fn instance(number: u32) -> String {
    format!("i-{number:017x}")
}

/// A volume of `us-east-1a`, of 4 GiB and type `gp3`, with the cluster's tag.
pub fn disk(number: u32) -> SmallDisk {
    SmallDisk {
        id: vol(number),
        gib: 4,
        zone: "us-east-1a".into(),
        kind: "gp3".into(),
        iops: "3000".into(),
        state: "available",
        tags: vec![("kubernetes.io/cluster/test".into(), "owned".into())],
        ..SmallDisk::default()
    }
}

/// 4 GiB for one machine, in one of two zones.
pub fn wanted(name: &str) -> NewVolume {
    NewVolume {
        uses: vec![volume_use(AccessMode::OneNode)],
        allowed: vec![
            Topology::of(ZONE_KEYS[1], "us-east-1b"),
            Topology::of(ZONE_KEY, "us-east-1a"),
        ],
        preferred: vec![Topology::of(ZONE_KEY, "us-east-1a")],
        tags: vec![Pair::new("kubernetes.io/created-for/pvc/name", "data")],
        ..new_volume(name, 4 * GIB)
    }
}

pub fn volume_use(access: AccessMode) -> VolumeUse {
    VolumeUse {
        block: access != AccessMode::OneNode,
        fs_type: None,
        access,
    }
}

pub fn to(volume: &str, node: &str) -> NewAttachment {
    NewAttachment {
        volume: volume.into(),
        node_id: node.into(),
        read_only: false,
        volume_use: volume_use(AccessMode::OneNode),
        token: None,
    }
}

pub fn from(volume: &str, node: &str) -> Detachment {
    Detachment {
        volume: volume.into(),
        node_id: node.into(),
        token: None,
    }
}

impl SmallEbs {
    /// With these volumes, and the instances 1 and 2.
    pub fn with(disks: Vec<SmallDisk>) -> Self {
        let host = host();
        let root = || vec!["/dev/xvda".to_owned()];
        let state = Rc::new(RefCell::new(SmallState {
            disks,
            machines: vec![(instance(1), root()), (instance(2), root())],
            ..SmallState::default()
        }));
        let of_server = Rc::clone(&state);
        host.serve(move |request| of_server.borrow_mut().answer(request));
        Self { host, state }
    }

    /// The provider of one call.
    pub fn aws(&self) -> Aws {
        self.host.provider()
    }

    /// The next request for this action is refused so.
    pub fn refuse(&self, action: &'static str, code: &'static str, message: &'static str) {
        self.state.borrow_mut().refusals.push((action, code, message));
    }

    /// New things are in this state, and so are those that change.
    pub fn begins(&self, state: &'static str) {
        self.state.borrow_mut().begins = state;
    }

    /// How often this action was requested.
    pub fn count(&self, action: &str) -> usize {
        actions(&self.host).iter().filter(|known| *known == action).count()
    }

    /// A field of the last request for this action.
    pub fn sent(&self, action: &str, field: &str) -> Option<String> {
        let requests = self.host.requests();
        let last = requests
            .iter()
            .rfind(|request| request.field("Action").as_deref() == Some(action));
        last.and_then(|request| request.field(field))
    }

    /// Changes a volume.
    pub fn change(&self, id: &str, change: impl FnOnce(&mut SmallDisk)) {
        let mut state = self.state.borrow_mut();
        change(state.disks.iter_mut().find(|disk| disk.id == id).unwrap());
    }
}

/// Values of a list in the request.
fn list(request: &SentRequest, prefix: &str) -> Vec<String> {
    let fields = request.form().into_iter();
    fields
        .filter(|(name, _)| name.starts_with(prefix))
        .map(|(_, value)| value)
        .collect()
}

/// Tags of a new thing.
fn new_tags(request: &SentRequest) -> Vec<(String, String)> {
    let keys = (1..).map_while(|at| request.field(&format!("TagSpecification.1.Tag.{at}.Key")));
    let value = |at: usize| {
        request
            .field(&format!("TagSpecification.1.Tag.{}.Value", at + 1))
            .unwrap()
    };
    keys.enumerate().map(|(at, key)| (key, value(at))).collect()
}

type Answer = Result<String, (&'static str, String)>;

impl SmallState {
    fn answer(&mut self, request: &SentRequest) -> FakeAnswer {
        let action = request.field("Action").unwrap();
        let refused = self.refusals.iter().position(|(refused, ..)| *refused == action);
        let answer = match refused.map(|at| self.refusals.remove(at)) {
            Some((_, code, message)) => Err((code, message.to_owned())),
            None => self.act(&action, request),
        };
        match answer {
            Ok(text) => FakeAnswer::xml(200, &format!("<{action}Response>{text}</{action}Response>")),
            Err((code, message)) => FakeAnswer::xml(400, &refusal(code, &message)),
        }
    }

    fn act(&mut self, action: &str, request: &SentRequest) -> Answer {
        let field = |name: &str| request.field(name).unwrap_or_default();
        match action {
            "DescribeVolumes" => self.describe(request),
            "DescribeInstances" => self.describe_machines(&list(request, "InstanceId.")),
            "DescribeSnapshots" => self.describe_snapshots(request),
            "DescribeVolumesModifications" => match self.disk(&field("VolumeId.1"))?.modification {
                None => Err(("InvalidVolumeModification.NotFound", "never".into())),
                Some((state, gib)) => Ok(format!(
                    "<volumeModificationSet><item>{}</item></volumeModificationSet>",
                    modification(state, gib)
                )),
            },
            "CreateVolume" => {
                self.made += 1;
                let made = SmallDisk {
                    id: vol(1_000 + self.made),
                    gib: field("Size").parse().unwrap(),
                    zone: field("AvailabilityZone"),
                    kind: field("VolumeType"),
                    iops: field("Iops"),
                    state: if self.begins.is_empty() {
                        "available"
                    } else {
                        self.begins
                    },
                    shared: field("MultiAttachEnabled") == "true",
                    snapshot: field("SnapshotId"),
                    tags: new_tags(request),
                    ..SmallDisk::default()
                };
                self.disks.push(made.clone());
                Ok(show(&made))
            }
            "DeleteVolume" => {
                if !self.disk(&field("VolumeId"))?.attachments.is_empty() {
                    return Err(("VolumeInUse", "it is attached".into()));
                }
                self.disks.retain(|disk| disk.id != field("VolumeId"));
                Ok(String::new())
            }
            "AttachVolume" => {
                let state = if self.begins.is_empty() {
                    "attached"
                } else {
                    self.begins
                };
                let (instance, device) = (field("InstanceId"), field("Device"));
                self.disk(&field("VolumeId"))?
                    .attachments
                    .push((instance, device, state));
                Ok("<status>attaching</status>".into())
            }
            "DetachVolume" => {
                let begins = self.begins;
                let disk = self.disk(&field("VolumeId"))?;
                match begins {
                    "" => disk
                        .attachments
                        .retain(|(instance, ..)| *instance != field("InstanceId")),
                    state => disk.attachments.iter_mut().for_each(|one| one.2 = state),
                }
                Ok("<status>detaching</status>".into())
            }
            "ModifyVolume" => {
                let begins = self.begins;
                let disk = self.disk(&field("VolumeId"))?;
                let gib = field("Size").parse().unwrap_or(disk.gib);
                let state = if begins.is_empty() { "completed" } else { begins };
                disk.modification = Some((state, gib));
                if begins.is_empty() {
                    disk.gib = gib;
                }
                Ok(format!(
                    "<volumeModification>{}</volumeModification>",
                    modification(state, gib)
                ))
            }
            "CreateSnapshot" => {
                self.made += 1;
                let state = if self.begins.is_empty() {
                    "completed"
                } else {
                    self.begins
                };
                let id = format!("snap-{:017x}", self.made);
                let made = (id, self.disk(&field("VolumeId"))?.id.clone(), state, new_tags(request));
                self.snapshots.push(made.clone());
                Ok(show_snapshot(&made))
            }
            "DeleteSnapshot" => {
                self.snapshots.retain(|(id, ..)| *id != field("SnapshotId"));
                Ok(String::new())
            }
            "DescribeAvailabilityZones" => Ok(["a", "b", "c"]
                .map(|letter| {
                    format!("<item><zoneName>us-east-1{letter}</zoneName><zoneType>availability-zone</zoneType></item>")
                })
                .concat())
            .map(|zones| format!("<availabilityZoneInfo>{zones}</availabilityZoneInfo>")),
            other => panic!("nothing wants {other} here"),
        }
    }

    fn disk(&mut self, id: &str) -> Result<&mut SmallDisk, (&'static str, String)> {
        let found = self.disks.iter_mut().find(|disk| disk.id == id);
        found.ok_or_else(|| ("InvalidVolume.NotFound", format!("The volume '{id}' does not exist.")))
    }

    fn describe(&mut self, request: &SentRequest) -> Answer {
        let (ids, names) = (list(request, "VolumeId."), list(request, "Filter.1.Value."));
        for id in &ids {
            self.disk(id)?;
        }
        let by_tag = request.field("Filter.1.Name").unwrap_or_default();
        let fits = |disk: &&SmallDisk| match by_tag.strip_prefix("tag:") {
            Some(key) => disk
                .tags
                .iter()
                .any(|(known, value)| known == key && names.contains(value)),
            None if by_tag == "tag-key" => disk.tags.iter().any(|(known, _)| names.contains(known)),
            None => ids.contains(&disk.id),
        };
        let items: String = self
            .disks
            .iter()
            .filter(fits)
            .map(|disk| format!("<item>{}</item>", show(disk)))
            .collect();
        Ok(format!("<volumeSet>{items}</volumeSet>"))
    }

    fn describe_machines(&self, ids: &[String]) -> Answer {
        let mut items = String::new();
        for id in ids {
            let Some((_, devices)) = self.machines.iter().find(|(known, _)| known == id) else {
                return Err((
                    "InvalidInstanceID.NotFound",
                    format!("The instance ID '{id}' does not exist"),
                ));
            };
            let attached = self.disks.iter().flat_map(|disk| &disk.attachments);
            let attached = attached
                .filter(|(instance, ..)| instance == id)
                .map(|(_, device, _)| device);
            let device = |name: &String| format!("<item><deviceName>{name}</deviceName></item>");
            let devices: String = devices.iter().chain(attached).map(device).collect();
            items += &format!(
                "<item><instanceId>{id}</instanceId><instanceState><name>running</name></instanceState>\
                 <placement><availabilityZone>us-east-1a</availabilityZone></placement>\
                 <blockDeviceMapping>{devices}</blockDeviceMapping></item>"
            );
        }
        Ok(format!(
            "<reservationSet><item><instancesSet>{items}</instancesSet></item></reservationSet>"
        ))
    }

    fn describe_snapshots(&self, request: &SentRequest) -> Answer {
        let ids = list(request, "SnapshotId.");
        let known = |id: &String| self.snapshots.iter().any(|(one, ..)| one == id);
        if let Some(id) = ids.iter().find(|id| !known(id)) {
            // EC2 does not name it.
            let _ = id;
            return Err(("InvalidSnapshot.NotFound", "It does not exist.".into()));
        }
        let values = list(request, "Filter.1.Value.");
        let filter = request.field("Filter.1.Name").unwrap_or_default();
        let fits = |(id, volume, _, tags): &&SmallSnapshot| match filter.strip_prefix("tag:") {
            Some(key) => tags.iter().any(|(known, value)| known == key && values.contains(value)),
            None if filter == "tag-key" => tags.iter().any(|(known, _)| values.contains(known)),
            None if filter == "volume-id" => values.contains(volume),
            None => ids.contains(id),
        };
        let items: String = self
            .snapshots
            .iter()
            .filter(fits)
            .map(|one| format!("<item>{}</item>", show_snapshot(one)))
            .collect();
        Ok(format!("<snapshotSet>{items}</snapshotSet>"))
    }
}

fn modification(state: &str, gib: u64) -> String {
    format!("<modificationState>{state}</modificationState><targetSize>{gib}</targetSize>")
}

fn show_tags(tags: &[(String, String)]) -> String {
    let item = |(key, value): &(String, String)| format!("<item><key>{key}</key><value>{value}</value></item>");
    format!("<tagSet>{}</tagSet>", tags.iter().map(item).collect::<String>())
}

fn show(disk: &SmallDisk) -> String {
    let attachment = |(instance, device, state): &(String, String, &str)| {
        format!("<item><instanceId>{instance}</instanceId><device>{device}</device><status>{state}</status></item>")
    };
    let attachments: String = disk.attachments.iter().map(attachment).collect();
    format!(
        "<volumeId>{}</volumeId><size>{}</size><availabilityZone>{}</availabilityZone><volumeType>{}</volumeType><iops>{}</iops>\
         <status>{}</status><snapshotId>{}</snapshotId><multiAttachEnabled>{}</multiAttachEnabled>{}\
         <attachmentSet>{attachments}</attachmentSet>",
        disk.id,
        disk.gib,
        disk.zone,
        disk.kind,
        disk.iops,
        disk.state,
        disk.snapshot,
        disk.shared,
        show_tags(&disk.tags)
    )
}

fn show_snapshot((id, volume, state, tags): &SmallSnapshot) -> String {
    format!(
        "<snapshotId>{id}</snapshotId><volumeId>{volume}</volumeId><volumeSize>4</volumeSize><status>{state}</status>\
         <startTime>2026-11-25T01:43:19.000Z</startTime>{}",
        show_tags(tags)
    )
}
