//! Parameters of StorageClasses, VolumeAttributesClasses and VolumeSnapshotClasses, with upstream's names in any case. Pure.
//!
//! What upstream's driver takes and this one cannot honour is refused by its name: a class that is half honoured makes wrong disks.

pub(crate) mod kinds;
pub(crate) mod tags;

use std::collections::BTreeMap;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::volumes::known_parameters;

use crate::volumes::class::kinds::{DiskKind, kind_named};
use crate::volumes::class::tags::{TAG_PARAMETER, read_tags};

/// Names of the parameters of a StorageClass. `fstype` is read by the provisioner, `blockExpress` has no effect any more.
const CLASS: [&str; 18] = [
    "type",
    "iops",
    "iopsPerGB",
    "allowAutoIOPSPerGBIncrease",
    "allowAutoIOPSIncreaseOnModify",
    "throughput",
    "encrypted",
    "kmsKeyId",
    "volumeInitializationRate",
    "blockExpress",
    "fstype",
    "blockSize",
    "inodeSize",
    "bytesPerInode",
    "numberOfInodes",
    "ext4BigAlloc",
    "ext4ClusterSize",
    "ext4EncryptionSupport",
];

/// The last of them: how upstream's plugin on the machine formats, which reads them in the volume's context.
const FORMATTING: std::ops::Range<usize> = 11..18;

/// Parameters that can be changed later. `volumeType` is upstream's older word for `type`.
const MUTABLE: [&str; 4] = ["type", "volumeType", "iops", "throughput"];

/// The type of a volume for which the class names none, as upstream's.
const USUAL_TYPE: &str = "gp3";

/// Operations a second that a class requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WantedIops {
    /// So many.
    Total(u32),
    /// So many for each GiB.
    PerGib(u32),
}

/// What a class requests.
#[derive(Debug)]
pub(crate) struct Class {
    /// The type.
    pub kind: &'static DiskKind,
    /// Operations a second.
    pub iops: Option<WantedIops>,
    /// Whether too few operations are raised to the type's least.
    pub raise: bool,
    /// Whether operations for each GiB grow with the volume.
    pub grow: bool,
    /// MiB a second.
    pub throughput: Option<u32>,
    /// Whether it is encrypted, where the class sets it.
    pub encrypted: Option<bool>,
    /// The key; empty for the account's own.
    pub key: String,
    /// MiB a second at which the content of a snapshot is loaded.
    pub initialization_rate: Option<u32>,
    /// For the plugin on the machine.
    pub context: Vec<Pair>,
    /// The class's own tags.
    pub tags: Vec<Pair>,
}

/// Parameters under their proper names.
struct Named<'p>(BTreeMap<&'static str, &'p str>);

impl<'p> Named<'p> {
    /// Refuses unknown ones, all at once, and those that are there twice in different capitals.
    fn read(parameters: &'p [Pair], names: &[&'static str], has_tags: bool) -> Result<Self, Failure> {
        let mut named = BTreeMap::new();
        let mut unknown = Vec::new();
        for pair in parameters {
            let name = names.iter().find(|name| name.eq_ignore_ascii_case(&pair.key));
            match name {
                Some(name) => {
                    if named.insert(*name, pair.value.as_str()).is_some() {
                        return Err(Failure::invalid(format!("parameter {name} is given twice")));
                    }
                }
                None if has_tags && pair.key.starts_with(TAG_PARAMETER) => {}
                None => unknown.push(pair.clone()),
            }
        }
        known_parameters(&unknown, names)?;
        Ok(Self(named))
    }

    fn get(&self, name: &str) -> Option<&'p str> {
        self.0.get(name).copied()
    }

    fn number(&self, name: &str) -> Result<Option<u32>, Failure> {
        let Some(text) = self.get(name) else { return Ok(None) };
        match text.parse() {
            Ok(number) if number > 0 => Ok(Some(number)),
            _ => Err(wrong(name, text, "it has to be a number above 0")),
        }
    }

    fn flag(&self, name: &str) -> Result<Option<bool>, Failure> {
        match self.get(name) {
            None => Ok(None),
            Some(text) if text.eq_ignore_ascii_case("true") => Ok(Some(true)),
            Some(text) if text.eq_ignore_ascii_case("false") => Ok(Some(false)),
            Some(text) => Err(wrong(name, text, "it can be true or false")),
        }
    }
}

fn wrong(name: &str, value: &str, advice: &str) -> Failure {
    Failure::invalid(format!("parameter {name} is \"{value}\"; {advice}"))
}

impl Class {
    /// Reads a StorageClass's parameters and a VolumeAttributesClass's, which count where both have one. `about` is what is known of the claim, for the values
    /// of tags.
    ///
    /// # Errors
    /// `invalid` with the parameter.
    pub(crate) fn read(parameters: &[Pair], mutable: &[Pair], about: &[Pair]) -> Result<Self, Failure> {
        let class = Named::read(parameters, &CLASS, true)?;
        let change = Change::read(mutable)?;
        let per_gib = class.number("iopsPerGB")?.map(WantedIops::PerGib);
        let total = class.number("iops")?.map(WantedIops::Total);
        if per_gib.is_some() && total.is_some() {
            return Err(Failure::invalid(
                "parameters iops and iopsPerGB exclude each other; leave one of them out",
            ));
        }
        let key = class.get("kmsKeyId").unwrap_or_default();
        let encrypted = class.flag("encrypted")?;
        check_key(key, encrypted)?;
        let kind = match change.kind {
            Some(kind) => kind,
            None => kind_named(class.get("type").filter(|name| !name.is_empty()).unwrap_or(USUAL_TYPE))?,
        };
        Ok(Self {
            kind,
            iops: change.iops.map(WantedIops::Total).or(total).or(per_gib),
            raise: class.flag("allowAutoIOPSPerGBIncrease")?.unwrap_or_default(),
            grow: class.flag("allowAutoIOPSIncreaseOnModify")?.unwrap_or_default(),
            throughput: change.throughput.or(class.number("throughput")?),
            encrypted: encrypted.or((!key.is_empty()).then_some(true)),
            key: key.into(),
            initialization_rate: class.number("volumeInitializationRate")?,
            context: context(&class)?,
            tags: read_tags(parameters, about)?,
        })
    }

    /// Operations a second of a volume with so many GiB; none for the type's own.
    ///
    /// # Errors
    /// As [`DiskKind::iops`]; `invalid` when the type needs a number and the class has none.
    pub(crate) fn iops_of(&self, gib: u64) -> Result<Option<u32>, Failure> {
        let wanted = match self.iops {
            Some(WantedIops::Total(total)) => total,
            Some(WantedIops::PerGib(each)) => u32::try_from(gib).unwrap_or(u32::MAX).saturating_mul(each),
            None if self.kind.iops.is_some_and(|range| range.required) => {
                return Err(Failure::invalid(format!(
                    "a volume of type {} needs one of the parameters iops and iopsPerGB",
                    self.kind.name
                )));
            }
            None => return Ok(None),
        };
        self.kind.iops(wanted, gib, self.raise).map(Some)
    }
}

/// What changes about a volume.
#[derive(Debug, Default)]
pub(crate) struct Change {
    /// To which type.
    pub kind: Option<&'static DiskKind>,
    /// To so many operations a second.
    pub iops: Option<u32>,
    /// To so many MiB a second.
    pub throughput: Option<u32>,
}

impl Change {
    /// Reads the parameters of a VolumeAttributesClass.
    ///
    /// # Errors
    /// `invalid` with the parameter.
    pub(crate) fn read(parameters: &[Pair]) -> Result<Self, Failure> {
        let named = Named::read(parameters, &MUTABLE, false)?;
        let kind = named.get("type").or(named.get("volumeType"));
        Ok(Self {
            kind: kind.map(kind_named).transpose()?,
            iops: named.number("iops")?,
            throughput: named.number("throughput")?,
        })
    }
}

/// Refuses parameters of a VolumeSnapshotClass but tags.
///
/// # Errors
/// `invalid` with their names.
pub(crate) fn check_snapshot_class(parameters: &[Pair]) -> Result<(), Failure> {
    Named::read(parameters, &["tagSpecification_1"], true).map(drop)
}

/// A key is an ARN of the key service, an alias, or an id.
fn check_key(key: &str, encrypted: Option<bool>) -> Result<(), Failure> {
    if key.is_empty() {
        return Ok(());
    }
    if encrypted == Some(false) {
        return Err(wrong(
            "encrypted",
            "false",
            "parameter kmsKeyId has no meaning then; leave one of them out",
        ));
    }
    let is_arn = key.starts_with("arn:");
    if is_arn && (crate::config::account_of(key).is_none() || key.split(':').nth(2) != Some("kms")) {
        let advice =
            "it has to be a key's ARN, such as arn:aws:kms:eu-central-1:123456789012:key/ID, an alias or an id";
        return Err(wrong("kmsKeyId", key, advice));
    }
    Ok(())
}

/// What upstream's plugin on the machine reads: how to format, under names in small letters.
fn context(class: &Named<'_>) -> Result<Vec<Pair>, Failure> {
    let mut context = Vec::new();
    for name in &CLASS[FORMATTING] {
        let Some(value) = class.get(name) else { continue };
        let is_flag = matches!(*name, "ext4BigAlloc" | "ext4EncryptionSupport");
        match is_flag {
            true if class.flag(name)? == Some(false) => continue,
            false if value.is_empty() || !value.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
                return Err(wrong(name, value, "it has to be of letters and digits"));
            }
            _ => {}
        }
        let value = if is_flag { "true" } else { value };
        context.push(Pair::new(name.to_ascii_lowercase(), value));
    }
    if class.get("ext4ClusterSize").is_some() && class.flag("ext4BigAlloc")? != Some(true) {
        return Err(Failure::invalid(
            "parameter ext4ClusterSize needs ext4BigAlloc: \"true\"",
        ));
    }
    Ok(context)
}

#[cfg(test)]
mod tests;
