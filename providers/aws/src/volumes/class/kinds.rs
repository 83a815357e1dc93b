//! The types of volumes, and what EBS allows for each. Pure.
//!
//! Source of the numbers: Amazon EBS User Guide, "Amazon EBS volume types" and "Constraints on the size and configuration of an EBS volume"; gp3 with the limits
//! of September 2025. A region may allow less, and then returns an error.

use cloudwit_guest_sdk::prelude::*;

/// A type of volumes.
#[derive(Debug)]
pub(crate) struct DiskKind {
    /// As EC2 calls it.
    pub name: &'static str,
    /// Smallest and largest size in GiB.
    pub gib: (u64, u64),
    /// Operations a second, where they can be chosen.
    pub iops: Option<IopsRange>,
    /// Smallest and largest throughput in MiB a second, where it can be chosen.
    pub throughput: Option<(u32, u32)>,
    /// Whether several instances can have one.
    pub shareable: bool,
}

/// Operations a second that can be chosen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IopsRange {
    least: u32,
    most: u32,
    most_per_gib: u32,
    /// Whether a volume has to be given a number.
    pub required: bool,
}

const fn iops(least: u32, most: u32, most_per_gib: u32, required: bool) -> Option<IopsRange> {
    Some(IopsRange {
        least,
        most,
        most_per_gib,
        required,
    })
}

const KINDS: [DiskKind; 7] = [
    kind(
        "gp3",
        (1, 65_536),
        iops(3_000, 80_000, 500, false),
        Some((125, 2_000)),
        false,
    ),
    kind("gp2", (1, 16_384), None, None, false),
    kind("io1", (4, 16_384), iops(100, 64_000, 50, true), None, true),
    kind("io2", (4, 65_536), iops(100, 256_000, 1_000, true), None, true),
    kind("st1", (125, 16_384), None, None, false),
    kind("sc1", (125, 16_384), None, None, false),
    kind("standard", (1, 1_024), None, None, false),
];

const fn kind(
    name: &'static str,
    gib: (u64, u64),
    iops: Option<IopsRange>,
    throughput: Option<(u32, u32)>,
    shareable: bool,
) -> DiskKind {
    DiskKind {
        name,
        gib,
        iops,
        throughput,
        shareable,
    }
}

/// MiB a second for each operation a second, at most: a quarter.
const OPERATIONS_PER_MIB: u32 = 4;

/// The size of the largest volume of all types, in GiB.
pub(crate) const LARGEST: u64 = 65_536;

/// The type of this name, in any case; none for one that EBS may have got since.
pub(crate) fn kind_of(name: &str) -> Option<&'static DiskKind> {
    KINDS.iter().find(|kind| kind.name.eq_ignore_ascii_case(name))
}

/// The same for a type that a class requests.
///
/// # Errors
/// `invalid` with the names there are.
pub(crate) fn kind_named(name: &str) -> Result<&'static DiskKind, Failure> {
    kind_of(name).ok_or_else(|| {
        let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
        Failure::invalid(format!("parameter type is \"{name}\"; it can be {}", names.join(", ")))
    })
}

impl DiskKind {
    /// A size of this type that is in the range, in GiB: the smallest.
    ///
    /// # Errors
    /// `out-of-range` when there is none.
    pub(crate) fn size(&self, at_least: u64, at_most: Option<u64>) -> Result<u64, Failure> {
        let (least, most) = self.gib;
        let size = at_least.max(least);
        if size <= at_most.unwrap_or(most).min(most) {
            return Ok(size);
        }
        Err(Failure::out_of_range(format!(
            "a volume of type {} has {least} to {most} GiB, and wanted are {}",
            self.name,
            wanted(at_least, at_most)
        )))
    }

    /// So many operations a second as can be had for a size of so many GiB: no more than the type allows, as upstream's driver does it.
    ///
    /// # Errors
    /// `invalid` when the type has none to choose; `out-of-range` when it has to have more, unless they may be raised.
    pub(crate) fn iops(&self, wanted: u32, gib: u64, raise: bool) -> Result<u32, Failure> {
        let Some(range) = self.iops else {
            return Err(Failure::invalid(format!(
                "parameter iops does not fit type {}: only gp3, io1 and io2 have operations a second to choose",
                self.name
            )));
        };
        let of_size = u32::try_from(gib)
            .unwrap_or(u32::MAX)
            .saturating_mul(range.most_per_gib);
        let most = range.most.min(of_size.max(range.least));
        if wanted < range.least && !raise {
            return Err(Failure::out_of_range(format!(
                "{wanted} operations a second (iops) are too few for type {}, which has {} to {}",
                self.name, range.least, range.most
            )));
        }
        Ok(wanted.clamp(range.least, most))
    }

    /// Whether a volume of this type can have this throughput beside so many operations a second.
    ///
    /// # Errors
    /// `invalid` when the type has none to choose; `out-of-range`.
    pub(crate) fn check_throughput(&self, wanted: u32, iops: Option<u32>) -> Result<(), Failure> {
        let Some((least, most)) = self.throughput else {
            return Err(Failure::invalid(format!(
                "parameter throughput does not fit type {}: only gp3 has a throughput to choose",
                self.name
            )));
        };
        if !(least..=most).contains(&wanted) {
            return Err(Failure::out_of_range(format!(
                "parameter throughput is {wanted}; a volume of type {} has {least} to {most} MiB a second",
                self.name
            )));
        }
        let operations = iops.or(self.iops.map(|range| range.least)).unwrap_or_default();
        if wanted.saturating_mul(OPERATIONS_PER_MIB) > operations {
            return Err(Failure::out_of_range(format!(
                "a throughput of {wanted} MiB a second needs {} operations a second, and there are {operations}; raise iops",
                wanted.saturating_mul(OPERATIONS_PER_MIB)
            )));
        }
        Ok(())
    }
}

/// `at least 8 GiB`, `8 to 16 GiB`.
pub(crate) fn wanted(at_least: u64, at_most: Option<u64>) -> String {
    match at_most {
        None => format!("at least {at_least} GiB"),
        Some(most) => format!("{at_least} to {most} GiB"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> &'static DiskKind {
        kind_named(name).unwrap()
    }

    #[test]
    fn size_is_raised_to_type_minimum_within_range() {
        assert_eq!(named("gp3").size(1, None), Ok(1));
        assert_eq!(named("IO2").size(1, None), Ok(4));
        assert_eq!(named("st1").size(10, Some(200)), Ok(125));
        for (kind, least, most) in [
            ("st1", 10, Some(124)),
            ("standard", 1_025, None),
            ("gp2", 16_385, None),
            ("gp3", 65_537, None),
        ] {
            let refused = named(kind).size(least, most).unwrap_err();
            assert_eq!(refused.kind, FailureKind::OutOfRange);
            assert!(
                refused.message.contains(kind) && refused.message.contains(&least.to_string()),
                "{refused:?}"
            );
        }
    }

    #[test]
    fn operations_are_cut_to_what_type_and_size_allow() {
        for (kind, wanted, gib, expected) in [
            ("gp3", 3_000, 1, 3_000),
            ("gp3", 16_000, 8, 4_000),
            ("gp3", 100_000, 1_000, 80_000),
            ("io1", 5_000, 10, 500),
            ("io1", 200, 1, 100),
            ("io2", 300_000, 10_000, 256_000),
        ] {
            assert_eq!(
                named(kind).iops(wanted, gib, false),
                Ok(expected),
                "{kind} {wanted} {gib}"
            );
        }
        assert_eq!(named("gp3").iops(100, 8, true), Ok(3_000));
        let few = named("gp3").iops(100, 8, false).unwrap_err();
        assert_eq!(few.kind, FailureKind::OutOfRange);
        let none = named("gp2").iops(100, 8, true).unwrap_err();
        assert!(
            none.kind == FailureKind::Invalid && none.message.contains("iops"),
            "{none:?}"
        );
    }

    #[test]
    fn throughput_has_bounds_and_needs_operations() {
        assert_eq!(named("gp3").check_throughput(125, None), Ok(()));
        assert_eq!(named("gp3").check_throughput(750, Some(3_000)), Ok(()));
        for (kind, throughput, iops, expected) in [
            ("gp3", 124, None, FailureKind::OutOfRange),
            ("gp3", 2_001, Some(80_000), FailureKind::OutOfRange),
            ("gp3", 751, None, FailureKind::OutOfRange),
            ("io2", 500, Some(9_000), FailureKind::Invalid),
        ] {
            let refused = named(kind).check_throughput(throughput, iops).unwrap_err();
            assert_eq!(refused.kind, expected, "{refused:?}");
        }
    }

    #[test]
    fn unknown_type_is_named_with_those_there_are() {
        let refused = kind_named("gp4").unwrap_err();
        assert_eq!(refused.kind, FailureKind::Invalid);
        assert!(
            refused.message.contains("gp4") && refused.message.contains("gp3, gp2, io1"),
            "{refused:?}"
        );
    }
}
