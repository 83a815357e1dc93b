//! Disks grow and change while they are used.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::volumes::*;
use serde_json::{Value, json};

use crate::Azure;
use crate::volumes::GIB;
use crate::volumes::class::sku::{LARGEST, Sku};
use crate::volumes::class::{MUTABLE, Parameters};
use crate::volumes::disk::Disk;
use crate::volumes::disk::find::no_disk;
use crate::volumes::progress::Progress;

/// The failure of a change that this disk cannot have in its current state, such as while it is attached.
fn as_it_stands(failure: Failure) -> Failure {
    let codes = ["OperationNotAllowed", "PropertyChangeNotAllowed"];
    match failure.code.as_deref() {
        Some(code) if failure.kind == FailureKind::Conflict && codes.contains(&code) => Failure {
            kind: FailureKind::FailedPrecondition,
            ..failure
        },
        _ => failure,
    }
}

/// The size in GiB that a disk grows to; none where it is large enough.
///
/// # Errors
/// `out-of-range`.
fn growth(disk: &Disk, size: SizeRange) -> Result<Option<u64>, Failure> {
    if disk.bytes() >= size.at_least {
        return Ok(None);
    }
    let gib = size.at_least.div_ceil(GIB);
    let largest = Sku::of(&disk.sku).map_or(LARGEST, |sku| sku.largest);
    let most = size.at_most.map_or(largest, |most| most / GIB).min(largest);
    if gib > most {
        return Err(Failure::out_of_range(format!(
            "{} would have {gib} GiB; it can have {most}, and disks of the type {} have at most {largest}",
            disk.id, disk.sku
        )));
    }
    Ok(Some(gib))
}

/// What is to be changed of a disk so that it is as a class requests; none where it is so.
///
/// # Errors
/// `invalid` with a parameter that is unknown, or that the disk cannot have.
fn change(disk: &Disk, parameters: &[Pair]) -> Result<Option<Value>, Failure> {
    let given = Parameters::read(parameters);
    given.known(&MUTABLE)?;
    let (sku, iops, mbps) = (
        given.sku()?,
        given.number("diskiopsreadwrite")?,
        given.number("diskmbpsreadwrite")?,
    );
    let name = sku.map_or(disk.sku.as_str(), |sku| sku.name);
    if (iops.is_some() || mbps.is_some()) && !Sku::of(name).is_some_and(|sku| sku.has_own_speed) {
        let text = "the parameters DiskIOPSReadWrite and DiskMBpsReadWrite are for disks of the types UltraSSD_LRS and PremiumV2_LRS";
        return Err(Failure::invalid(format!("{text}, and {} has the type {name}", disk.id)));
    }
    let mut body = json!({});
    if !name.eq_ignore_ascii_case(&disk.sku) {
        body["sku"] = json!({ "name": name });
    }
    for (field, wanted, now) in [
        ("diskIOPSReadWrite", iops, disk.iops),
        ("diskMBpsReadWrite", mbps, disk.mbps),
    ] {
        if wanted.is_some() && wanted != now {
            body["properties"][field] = json!(wanted);
        }
    }
    Ok(Some(body).filter(|body| *body != json!({})))
}

impl Azure {
    /// A disk that no change is under way of, after the operation of the token.
    fn settled(&self, id: &str, progress: &Progress, doing: &str) -> Result<Disk, Failure> {
        self.passed(progress, doing).map_err(as_it_stands)?;
        let disk = self.disk(id)?.ok_or_else(|| no_disk(id))?;
        match disk.is_changing() {
            true => Err(progress.clone().pending(None, doing)),
            false => Ok(disk),
        }
    }
}

impl VolumeExpansion for Azure {
    fn expand_volume(&self, id: &str, size: SizeRange, token: Option<&str>) -> Result<Expanded, Failure> {
        let (progress, doing) = (Progress::read(token), format!("growing {id}"));
        let disk = self.settled(id, &progress, &doing)?;
        let grown = growth(&disk, size)?;
        if let Some(gib) = grown {
            let body = json!({ "properties": { "diskSizeGB": gib } });
            let changed = self.change_disk("PATCH", id, Some(&body), (&progress, &doing));
            changed.map_err(as_it_stands)?;
        }
        Ok(Expanded {
            size: grown.unwrap_or(disk.gib).saturating_mul(GIB),
            on_node: true,
        })
    }
}

impl VolumeModification for Azure {
    fn modify_volume(&self, id: &str, parameters: &[Pair], token: Option<&str>) -> Result<(), Failure> {
        let (progress, doing) = (Progress::read(token), format!("changing {id}"));
        let disk = self.settled(id, &progress, &doing)?;
        match change(&disk, parameters)? {
            None => Ok(()),
            Some(body) => {
                let changed = self.change_disk("PATCH", id, Some(&body), (&progress, &doing));
                changed.map_err(as_it_stands)
            }
        }
    }
}

#[cfg(test)]
mod tests;
