use super::*;
use crate::volumes::testing::{SmallCompute, kind, token};

fn range(gib: u64, most: Option<u64>) -> SizeRange {
    SizeRange {
        at_least: gib * GIB,
        at_most: most.map(|most| most * GIB),
    }
}

#[test]
fn disk_grows_once_and_never_shrinks() {
    let cloud = SmallCompute::new();
    let disk = cloud.disk("d");
    cloud.state.borrow_mut().is_slow = true;
    let begun = token(cloud.call().expand_volume(&disk, range(4, None), None));
    cloud.finish();
    let grown = cloud.call().expand_volume(&disk, range(4, None), Some(&begun)).unwrap();
    assert_eq!((grown.size, grown.on_node), (4 * GIB, true));
    assert_eq!(
        cloud.call().expand_volume(&disk, range(3, None), None).unwrap().size,
        4 * GIB
    );
    assert_eq!(cloud.changes(), [format!("PATCH {disk}")]);
}

#[test]
fn growth_that_cannot_be_is_refused() {
    let cloud = SmallCompute::new();
    let disk = cloud.disk("d");
    assert_eq!(
        kind(cloud.call().expand_volume(&disk, range(32_768, None), None)),
        FailureKind::OutOfRange
    );
    let odd = SizeRange {
        at_least: 3 * GIB + 1,
        at_most: Some(4 * GIB - 1),
    };
    assert_eq!(
        kind(cloud.call().expand_volume(&disk, odd, None)),
        FailureKind::OutOfRange
    );
    assert_eq!(
        kind(cloud.call().expand_volume("no id", range(3, None), None)),
        FailureKind::NotFound
    );
    let attached = "Cannot resize disk d while it is attached to running VM one.";
    cloud.state.borrow_mut().refusals = vec![("PATCH", 409, "OperationNotAllowed", attached)];
    assert_eq!(
        kind(cloud.call().expand_volume(&disk, range(3, None), None)),
        FailureKind::FailedPrecondition
    );
}

#[test]
fn only_what_differs_is_changed() {
    let cloud = SmallCompute::new();
    let disk = cloud.disk("d");
    let faster = [
        Pair::new("skuName", "PremiumV2_LRS"),
        Pair::new("DiskIOPSReadWrite", "4000"),
        Pair::new("diskMBpsReadWrite", "200"),
    ];
    for _ in 0..2 {
        assert_eq!(cloud.call().modify_volume(&disk, &faster, None), Ok(()));
    }
    let changed = cloud.get(&disk);
    assert_eq!(changed["sku"]["name"], "PremiumV2_LRS");
    assert_eq!(changed["properties"]["diskIOPSReadWrite"], 4_000);
    assert_eq!(cloud.changes(), [format!("PATCH {disk}")]);
}

#[test]
fn parameters_that_cannot_change_are_invalid() {
    let cloud = SmallCompute::new();
    let disk = cloud.disk("d");
    for pair in [
        Pair::new("cachingMode", "None"),
        Pair::new("skuName", "Fast"),
        Pair::new("DiskIOPSReadWrite", "4000"),
        Pair::new("DiskMBpsReadWrite", "many"),
    ] {
        let refused = cloud
            .call()
            .modify_volume(&disk, std::slice::from_ref(&pair), None)
            .unwrap_err();
        assert!(
            refused.kind == FailureKind::Invalid
                && refused
                    .message
                    .to_ascii_lowercase()
                    .contains(&pair.key.to_ascii_lowercase()),
            "{refused:?}"
        );
    }
    let gone = cloud.call().modify_volume(&disk.replace("/d", "/gone"), &[], None);
    assert_eq!(kind(gone), FailureKind::NotFound);
    assert!(cloud.changes().is_empty());
}
