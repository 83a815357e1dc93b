//! What a StorageClass requests of a disk, and how it is requested. Pure.
//!
//! Parameters are upstream's (`pkg/azureutils/azure_disk_utils.go`, `ParseDiskParameters`), in whatever case.

mod parameters;
pub(crate) mod sku;
pub(crate) mod tags;

use std::collections::BTreeMap;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::volumes::*;
use serde_json::{Value, json};

use crate::config::Config;
use crate::volumes::disk::ids::{is_group, is_plain};
use crate::volumes::disk::region;
use parameters::wrong;
use sku::{STANDARD, STANDARD_SSD, Sku, ULTRA};

pub(crate) use parameters::Parameters;

/// Parameters that a VolumeAttributesClass may have too.
pub(crate) const MUTABLE: [&str; 4] = [
    "skuname",
    "storageaccounttype",
    "diskiopsreadwrite",
    "diskmbpsreadwrite",
];

/// All others that have an effect, here or in upstream's plugin on the machine.
const PARAMETERS: [&str; 18] = [
    "cachingmode",
    "kind",
    "fstype",
    "location",
    "resourcegroup",
    "subscriptionid",
    "logicalsectorsize",
    "tags",
    "tagvaluedelimiter",
    "diskencryptionsetid",
    "diskencryptiontype",
    "writeacceleratorenabled",
    "maxshares",
    "networkaccesspolicy",
    "publicnetworkaccess",
    "diskaccessid",
    "enablebursting",
    "enableperformanceplus",
];

/// Parameters of upstream that only its plugin on the machine reads, or that have no effect here.
const ELSEWHERE: [&str; 5] = [
    "perfprofile",
    "useragent",
    "enableasyncattach",
    "zoned",
    "attachdiskinitialdelay",
];

/// How parameters begin that are settings of the device, for upstream's plugin.
const DEVICE_SETTING: &str = "device-setting/";

/// Operations and throughput that upstream gives to Ultra Disks of a class without the parameters (`getDefaultDiskIOPSReadWrite`, `getDefaultDiskMBPSReadWrite`).
const ULTRA_IOPS: (u64, u64) = (500, 160_000);
const ULTRA_MBPS: (u64, u64) = (100, 4_000);

/// What a class requests.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Class {
    /// The type.
    pub sku: Sku,
    /// Resource group; none for the configured one.
    pub group: Option<String>,
    /// Subscription; none for that of the machines.
    pub subscription: Option<String>,
    /// Region.
    pub location: String,
    /// Tags of the disk.
    pub tags: BTreeMap<String, String>,
    /// By how many machines it can be used at once.
    pub max_shares: u64,
    /// Operations a second.
    pub iops: Option<u64>,
    /// Throughput in MB a second.
    pub mbps: Option<u64>,
    sector: Option<u64>,
    performance_plus: bool,
    /// Further fields of a disk's properties.
    properties: Vec<(&'static str, Value)>,
    /// For upstream's plugin on the machine.
    pub context: Vec<Pair>,
}

impl Class {
    /// Reads parameters, those that can be changed later, and the tags that become tags of the disk.
    ///
    /// # Errors
    /// `invalid` with the parameter.
    pub(crate) fn read(new: &NewVolume, config: &Config) -> Result<Self, Failure> {
        Parameters::read(&new.mutable_parameters).known(&MUTABLE)?;
        let is_mutable = |pair: &&Pair| {
            new.mutable_parameters
                .iter()
                .any(|other| other.key.eq_ignore_ascii_case(&pair.key))
        };
        let fixed = new.parameters.iter().filter(|pair| !is_mutable(pair));
        let fixed = fixed.filter(|pair| !pair.key.to_ascii_lowercase().starts_with(DEVICE_SETTING));
        let all: Vec<Pair> = fixed.chain(&new.mutable_parameters).cloned().collect();
        let given = Parameters::read(&all);
        given.known(&[&MUTABLE[..], &PARAMETERS, &ELSEWHERE].concat())?;
        // An unmanaged disk (`dedicated`, `shared`) is a blob, of which Azure takes no more.
        given.word("kind", &["Managed"])?;
        let usual = if config.is_stack() { STANDARD } else { STANDARD_SSD };
        let sku = given.sku()?.unwrap_or(usual);
        let max_shares = given.number("maxshares")?.unwrap_or(1);
        let mut class = Self {
            sku,
            group: given.get("resourcegroup").map(str::to_owned),
            subscription: given.get("subscriptionid").map(str::to_owned),
            location: region(given.get("location").unwrap_or(&config.location)),
            tags: tags::with_class(&new.tags, given.get("tags"), given.get("tagvaluedelimiter"))?,
            max_shares,
            iops: given.number("diskiopsreadwrite")?,
            mbps: given.number("diskmbpsreadwrite")?,
            sector: given.number("logicalsectorsize")?,
            performance_plus: given.flag("enableperformanceplus")?,
            properties: Vec::new(),
            context: new.parameters.clone(),
        };
        class.check_place()?;
        class.check_speed()?;
        class.add_caching(&given)?;
        class.add_access(&given, config)?;
        class.add_encryption(&given)?;
        if given.flag("enablebursting")? {
            class.properties.push(("burstingEnabled", json!(true)));
        }
        if max_shares > 1 {
            class.properties.push(("maxShares", json!(max_shares)));
        }
        Ok(class)
    }

    fn check_place(&self) -> Result<(), Failure> {
        if let Some(group) = self.group.as_deref().filter(|group| !is_group(group)) {
            return Err(wrong("resourceGroup", group, "which is no name of a resource group"));
        }
        match self.subscription.as_deref() {
            Some(subscription) if !is_plain(subscription) => Err(wrong(
                "subscriptionID",
                subscription,
                "which is no id of a subscription",
            )),
            Some(subscription) if self.group.is_none() => Err(wrong(
                "subscriptionID",
                subscription,
                "and resourceGroup is missing, which it needs",
            )),
            _ => Ok(()),
        }
    }

    /// Only some types have a speed of their own.
    fn check_speed(&self) -> Result<(), Failure> {
        let given = [
            ("DiskIOPSReadWrite", self.iops),
            ("DiskMBpsReadWrite", self.mbps),
            ("LogicalSectorSize", self.sector),
        ];
        match given.into_iter().find_map(|(name, value)| Some((name, value?))) {
            Some((name, value)) if !self.sku.has_own_speed => Err(wrong(
                name,
                &value.to_string(),
                "only disks of the types UltraSSD_LRS and PremiumV2_LRS have one",
            )),
            _ => Ok(()),
        }
    }

    fn add_caching(&mut self, given: &Parameters) -> Result<(), Failure> {
        let caching = given.word("cachingmode", &["None", "ReadOnly", "ReadWrite"])?;
        if let Some(caching) = caching.filter(|caching| *caching != "None") {
            let reason = if self.sku.has_own_speed {
                "disks of the type have no cache"
            } else if self.max_shares > 1 {
                "disks of several machines have no cache"
            } else {
                self.tags.insert(tags::CACHING.to_owned(), caching.to_owned());
                return self.add_accelerator(given);
            };
            return Err(wrong("cachingMode", caching, reason));
        }
        if caching.is_some() {
            self.tags.insert(tags::CACHING.to_owned(), "None".to_owned());
        }
        self.add_accelerator(given)
    }

    fn add_accelerator(&mut self, given: &Parameters) -> Result<(), Failure> {
        if given.flag("writeacceleratorenabled")? {
            self.tags.insert(tags::WRITE_ACCELERATOR.to_owned(), "true".to_owned());
        }
        Ok(())
    }

    /// Network access policy for exports of the disk; `DenyAll` by default, as upstream's. Azure Stack has none.
    fn add_access(&mut self, given: &Parameters, config: &Config) -> Result<(), Failure> {
        let policy = given.word("networkaccesspolicy", &["AllowAll", "DenyAll", "AllowPrivate"])?;
        let public = given.word("publicnetworkaccess", &["Enabled", "Disabled"])?;
        let access = given.resource("diskaccessid")?;
        match (policy, access) {
            (Some("AllowPrivate"), None) => {
                return Err(wrong(
                    "networkAccessPolicy",
                    "AllowPrivate",
                    "diskAccessID is missing, which it needs",
                ));
            }
            (Some("AllowPrivate"), Some(access)) => self.properties.push(("diskAccessId", json!(access))),
            (_, Some(access)) => {
                return Err(wrong(
                    "diskAccessID",
                    &access,
                    "it needs networkAccessPolicy AllowPrivate",
                ));
            }
            (_, None) => {}
        }
        if !config.is_stack() {
            self.properties
                .push(("networkAccessPolicy", json!(policy.unwrap_or("DenyAll"))));
            self.properties
                .push(("publicNetworkAccess", json!(public.unwrap_or("Disabled"))));
        }
        Ok(())
    }

    fn add_encryption(&mut self, given: &Parameters) -> Result<(), Failure> {
        const KINDS: [&str; 2] = [
            "EncryptionAtRestWithCustomerKey",
            "EncryptionAtRestWithPlatformAndCustomerKeys",
        ];
        let kind = given.word("diskencryptiontype", &KINDS)?;
        match (given.resource("diskencryptionsetid")?, kind) {
            (Some(set), kind) => {
                let encryption = json!({ "diskEncryptionSetId": set, "type": kind.unwrap_or(KINDS[0]) });
                self.properties.push(("encryption", encryption));
                Ok(())
            }
            (None, Some(kind)) => Err(wrong(
                "diskEncryptionType",
                kind,
                "diskEncryptionSetID is missing, which it needs",
            )),
            (None, None) => Ok(()),
        }
    }

    /// A disk of this class, to create: of this size in GiB, in the zone of this number, and with the content of what has this id.
    pub(crate) fn body(&self, gib: u64, zone: Option<&str>, source: Option<&str>) -> Value {
        let mut creation = match source {
            Some(id) => json!({ "createOption": "Copy", "sourceResourceId": id }),
            None => json!({ "createOption": "Empty" }),
        };
        if let Some(sector) = self.sector {
            creation["logicalSectorSize"] = json!(sector);
        }
        if self.performance_plus {
            creation["performancePlus"] = json!(true);
        }
        let mut properties = json!({ "creationData": creation, "diskSizeGB": gib });
        let (iops, mbps) = self.speed(gib);
        let speed = [("diskIOPSReadWrite", iops), ("diskMBpsReadWrite", mbps)];
        let speed = speed
            .into_iter()
            .filter_map(|(name, value)| Some((name, json!(value?))));
        for (name, value) in self.properties.iter().cloned().chain(speed) {
            properties[name] = value;
        }
        let mut body = json!({
            "location": self.location, "tags": self.tags, "sku": { "name": self.sku.name }, "properties": properties,
        });
        if let Some(zone) = zone {
            body["zones"] = json!([zone]);
        }
        body
    }

    /// Operations and MB a second of a disk of this size; none where Azure chooses.
    fn speed(&self, gib: u64) -> (Option<u64>, Option<u64>) {
        if self.sku != ULTRA {
            return (self.iops, self.mbps);
        }
        if self.iops.is_some() || self.mbps.is_some() {
            return (self.iops.or(Some(ULTRA_IOPS.0)), self.mbps.or(Some(ULTRA_MBPS.0)));
        }
        let iops = gib.clamp(ULTRA_IOPS.0, ULTRA_IOPS.1);
        let mbps = iops.div_ceil(256).max(ULTRA_MBPS.0).min(iops.div_ceil(4));
        (Some(iops), Some(mbps.min(ULTRA_MBPS.1)))
    }
}

#[cfg(test)]
mod tests;
