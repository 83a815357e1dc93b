//! Volumes grow and change while they are used: `ModifyVolume`, one modification after the other.
//!
//! EC2 answers at once and works on it (`modifying`); what follows (`optimizing`) slows the volume, not the call. It takes few modifications in a day, and none that
//! changes nothing should be requested.

use cloudwit_guest_sdk::form::Form;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::volumes::*;
use cloudwit_guest_sdk::xml::Element;

use crate::Aws;
use crate::api::error::AwsError;
use crate::api::reading::text;
use crate::tags::tag;
use crate::volumes::class::Change;
use crate::volumes::class::kinds::kind_of;
use crate::volumes::class::tags::{grow_key, iops_per_gib_key};
use crate::volumes::disk::{Disk, GIB, gib_of, number};
use crate::volumes::{BEGUN, POLL};

/// What a volume is to become; what is none stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Target {
    gib: Option<u64>,
    kind: Option<&'static str>,
    iops: Option<u32>,
    throughput: Option<u32>,
}

impl Target {
    /// Whether the volume is so.
    fn is_reached(&self, disk: &Disk) -> bool {
        self.gib.is_none_or(|gib| disk.gib >= gib)
            && self.kind.is_none_or(|kind| disk.kind == kind)
            && self.iops.is_none_or(|iops| disk.iops == Some(iops))
            && self
                .throughput
                .is_none_or(|throughput| disk.throughput == Some(throughput))
    }

    fn form(&self, id: &str) -> Form {
        let form = Form::new().field("VolumeId", id).field_opt("Size", self.gib);
        let form = form.field_opt("VolumeType", self.kind).field_opt("Iops", self.iops);
        form.field_opt("Throughput", self.throughput)
    }
}

/// The latest modification of a volume.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Modification {
    state: String,
    /// When it began, as AWS writes it, so that texts are in the order of times.
    began: String,
    gib: Option<u64>,
    kind: String,
    iops: Option<u64>,
    throughput: Option<u64>,
}

impl Modification {
    fn read(item: &Element) -> Self {
        Self {
            state: text(item, "modificationState"),
            began: text(item, "startTime"),
            gib: number(item, "targetSize"),
            kind: text(item, "targetVolumeType"),
            iops: number(item, "targetIops"),
            throughput: number(item, "targetThroughput"),
        }
    }

    fn is_under_way(&self) -> bool {
        self.state == "modifying"
    }

    /// Whether it leads there, so that a description of the volume that does not show it is only late.
    fn leads_to(&self, target: &Target) -> bool {
        let same = |wanted: Option<u32>, told: Option<u64>| wanted.is_none_or(|wanted| told == Some(wanted.into()));
        matches!(self.state.as_str(), "optimizing" | "completed")
            && target.gib.is_none_or(|gib| self.gib.is_some_and(|told| told >= gib))
            && target.kind.is_none_or(|kind| self.kind == kind)
            && same(target.iops, self.iops)
            && same(target.throughput, self.throughput)
    }
}

/// What is to be done.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// It is as desired.
    Done,
    /// EC2 works on it, or does not show it yet.
    Wait,
    /// It has to be requested.
    Modify,
}

fn step(disk: &Disk, latest: Option<&Modification>, target: &Target) -> Step {
    match latest {
        // The volume may show what it becomes before it is so.
        Some(latest) if latest.is_under_way() => Step::Wait,
        _ if target.is_reached(disk) => Step::Done,
        Some(latest) if latest.leads_to(target) => Step::Wait,
        _ => Step::Modify,
    }
}

/// What a volume that grows becomes: larger, and faster where its class lets operations grow with it.
fn growth(disk: &Disk, size: SizeRange) -> Result<Target, Failure> {
    let gib = gib_of(size.at_least);
    let Some(kind) = kind_of(&disk.kind) else {
        let gib = Some(gib);
        return Ok(Target {
            gib,
            ..Target::default()
        });
    };
    let gib = kind.size(gib, size.at_most.map(|most| most / GIB))?;
    let each = tag(&disk.tags, &iops_per_gib_key()).and_then(|each| each.parse::<u32>().ok());
    let may_grow = tag(&disk.tags, &grow_key()) == Some("true") && kind.iops.is_some();
    let wanted = |each: u32| u32::try_from(gib).unwrap_or(u32::MAX).saturating_mul(each);
    let iops = each.filter(|_| may_grow).map(|each| kind.iops(wanted(each), gib, true));
    Ok(Target {
        gib: Some(gib),
        iops: iops.transpose()?,
        ..Target::default()
    })
}

/// What a class makes of a volume. The size stays.
fn change(disk: &Disk, change: &Change) -> Result<Target, Failure> {
    let mut target = Target {
        gib: None,
        kind: change.kind.map(|kind| kind.name),
        iops: change.iops,
        throughput: change.throughput,
    };
    let Some(kind) = change.kind.or(kind_of(&disk.kind)) else {
        return Ok(target);
    };
    kind.size(disk.gib, Some(disk.gib))?;
    target.iops = change.iops.map(|iops| kind.iops(iops, disk.gib, false)).transpose()?;
    if let Some(throughput) = change.throughput {
        let kept = disk.iops.filter(|_| kind.name == disk.kind);
        kind.check_throughput(throughput, target.iops.or(kept))?;
    }
    Ok(target)
}

impl VolumeExpansion for Aws {
    fn expand_volume(&self, id: &str, size: SizeRange, _: Option<&str>) -> Result<Expanded, Failure> {
        let disk = self.disk(id)?;
        let target = match disk.bytes() >= size.at_least {
            // Large enough, unless it is still becoming so.
            true => Target::default(),
            false => growth(&disk, size)?,
        };
        let now = self.modified(&disk, &target)?;
        Ok(Expanded {
            size: now.unwrap_or(disk.gib).saturating_mul(GIB),
            on_node: true,
        })
    }
}

impl VolumeModification for Aws {
    fn modify_volume(&self, id: &str, parameters: &[Pair], _: Option<&str>) -> Result<(), Failure> {
        let wanted = Change::read(parameters)?;
        let disk = self.disk(id)?;
        let target = change(&disk, &wanted)?;
        if target != Target::default() {
            self.modified(&disk, &target)?;
        }
        Ok(())
    }
}

impl Aws {
    /// Brings a volume there. Its size, where that has changed with this call.
    ///
    /// # Errors
    /// `pending` while EC2 works on it; EC2's error.
    fn modified(&self, disk: &Disk, target: &Target) -> Result<Option<u64>, Failure> {
        let wait = || Failure::pending(POLL, BEGUN, format!("AWS modifies volume {}", disk.id));
        let latest = self.latest_modification(&disk.id)?;
        match step(disk, latest.as_ref(), target) {
            Step::Done => Ok(None),
            Step::Wait => Err(wait()),
            Step::Modify => {
                let answer = self.api.ec2("ModifyVolume").form(&target.form(&disk.id)).send()?;
                let begun = Modification::read(answer.child("volumeModification").unwrap_or(&answer));
                match begun.leads_to(target) {
                    true => Ok(target.gib),
                    false => Err(wait()),
                }
            }
        }
    }

    fn latest_modification(&self, id: &str) -> Result<Option<Modification>, AwsError> {
        let call = self.api.ec2("DescribeVolumesModifications").list("VolumeId", [id]);
        let modifications = call.pages(&["volumeModificationSet"], |item| Ok(Modification::read(item)));
        match modifications {
            // Never modified.
            Err(error) if error.is(&["InvalidVolumeModification.NotFound"]) => Ok(None),
            modifications => Ok(modifications?
                .into_iter()
                .max_by(|one, other| one.began.cmp(&other.began))),
        }
    }
}

#[cfg(test)]
mod tests;
