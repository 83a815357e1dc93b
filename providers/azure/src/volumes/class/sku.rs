//! Types of disks.

/// The largest disk of all types, in GiB (Microsoft, "Azure managed disk types").
pub(crate) const LARGEST: u64 = 65_536;

/// The largest of those types that have no speed of their own.
const LARGEST_USUAL: u64 = 32_767;

/// A type of disks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sku {
    /// Its name.
    pub name: &'static str,
    /// Whether operations and throughput are chosen for each disk; machines have no cache for these.
    pub has_own_speed: bool,
    /// Whether its disks have copies in several zones.
    pub is_in_many_zones: bool,
    /// The largest disk in GiB.
    pub largest: u64,
}

const fn usual(name: &'static str, is_in_many_zones: bool) -> Sku {
    Sku {
        name,
        has_own_speed: false,
        is_in_many_zones,
        largest: LARGEST_USUAL,
    }
}

const fn with_own_speed(name: &'static str) -> Sku {
    Sku {
        name,
        has_own_speed: true,
        is_in_many_zones: false,
        largest: LARGEST,
    }
}

/// Upstream's default where there is Standard SSD.
pub(crate) const STANDARD_SSD: Sku = usual("StandardSSD_LRS", false);

/// Upstream's default in Azure Stack.
pub(crate) const STANDARD: Sku = usual("Standard_LRS", false);

/// The type whose speed upstream chooses by the size.
pub(crate) const ULTRA: Sku = with_own_speed("UltraSSD_LRS");

/// All (`DiskStorageAccountTypes` of the API).
pub(crate) const ALL: [Sku; 7] = [
    STANDARD_SSD,
    STANDARD,
    usual("Premium_LRS", false),
    ULTRA,
    with_own_speed("PremiumV2_LRS"),
    usual("Premium_ZRS", true),
    usual("StandardSSD_ZRS", true),
];

impl Sku {
    /// The type of this name, in any case.
    pub(crate) fn of(name: &str) -> Option<Self> {
        ALL.into_iter().find(|sku| sku.name.eq_ignore_ascii_case(name))
    }
}
