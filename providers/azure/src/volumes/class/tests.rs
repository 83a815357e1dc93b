use super::*;
use crate::volumes::testing::wanted;

fn config() -> Config {
    let mut config = Config::default();
    config.subscription_id = "s".into();
    config.resource_group = "group".into();
    config.location = "West Europe".into();
    config
}

fn read(parameters: &[(&str, &str)], mutable: &[(&str, &str)]) -> Result<Class, Failure> {
    let pairs = |all: &[(&str, &str)]| all.iter().map(|(key, value)| Pair::new(*key, *value)).collect();
    let new = NewVolume {
        parameters: pairs(parameters),
        mutable_parameters: pairs(mutable),
        ..wanted("pvc-1")
    };
    Class::read(&new, &config())
}

#[test]
fn defaults_are_upstreams() {
    let class = read(&[], &[]).unwrap();
    let body = class.body(8, Some("2"), None);
    assert_eq!(
        body,
        json!({
            "location": "westeurope", "zones": ["2"], "sku": { "name": "StandardSSD_LRS" }, "tags": { "k8s-azure-created-by": "kubernetes-azure-dd" },
            "properties": {
                "creationData": { "createOption": "Empty" }, "diskSizeGB": 8, "networkAccessPolicy": "DenyAll", "publicNetworkAccess": "Disabled",
            },
        })
    );
    let mut stack = config();
    stack.cloud = Some("AzureStackCloud".into());
    let body = Class::read(&wanted("pvc-1"), &stack).unwrap().body(8, None, None);
    assert_eq!(body["sku"]["name"], "Standard_LRS");
    assert_eq!(body["properties"].as_object().unwrap().len(), 2, "{body}");
}

#[test]
fn parameters_are_upstreams_in_any_case() {
    let set = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/diskEncryptionSets/e";
    let access = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/diskAccesses/a";
    let class = read(
        &[
            ("SKUname", "premiumv2_lrs"),
            ("kind", "managed"),
            ("cachingMode", "none"),
            ("location", "northeurope"),
            ("resourceGroup", "disks"),
            ("subscriptionID", "other"),
            ("DiskIOPSReadWrite", "4000"),
            ("DiskMBpsReadWrite", "200"),
            ("LogicalSectorSize", "512"),
            ("maxShares", "2"),
            ("diskEncryptionSetID", set),
            ("networkAccessPolicy", "AllowPrivate"),
            ("diskAccessID", access),
            ("enableBursting", "true"),
            ("enablePerformancePlus", "TRUE"),
            ("perfProfile", "basic"),
            ("device-setting/queue/max_sectors_kb", "211"),
            ("fsType", "xfs"),
            ("userAgent", ""),
        ],
        &[("diskMBpsReadWrite", "300")],
    )
    .unwrap();
    assert_eq!(
        (class.group.as_deref(), class.subscription.as_deref()),
        (Some("disks"), Some("other"))
    );
    assert_eq!(class.context.len(), 19);
    let body = class.body(64, None, Some("/id"));
    assert_eq!(body["location"], "northeurope");
    assert_eq!(body["tags"]["cloudwit-caching-mode"], "None");
    assert_eq!(
        body["properties"],
        json!({
            "creationData": { "createOption": "Copy", "sourceResourceId": "/id", "logicalSectorSize": 512, "performancePlus": true }, "diskSizeGB": 64,
            "diskIOPSReadWrite": 4000, "diskMBpsReadWrite": 300, "maxShares": 2, "burstingEnabled": true,
            "encryption": { "diskEncryptionSetId": set, "type": "EncryptionAtRestWithCustomerKey" },
            "networkAccessPolicy": "AllowPrivate", "diskAccessId": access, "publicNetworkAccess": "Disabled",
        })
    );
}

#[test]
fn speed_of_ultra_disks_grows_with_their_size_as_upstreams() {
    let ultra = read(&[("skuName", "UltraSSD_LRS")], &[]).unwrap();
    for (gib, expected) in [
        (4, (500, 100)),
        (1_024, (1_024, 100)),
        (51_200, (51_200, 200)),
        (65_536, (65_536, 256)),
    ] {
        assert_eq!(ultra.speed(gib), (Some(expected.0), Some(expected.1)), "{gib}");
    }
    let half = read(&[("skuName", "UltraSSD_LRS"), ("diskIOPSReadWrite", "9000")], &[]).unwrap();
    assert_eq!(half.speed(65_536), (Some(9_000), Some(100)));
    let v2 = read(&[("skuName", "PremiumV2_LRS")], &[]).unwrap();
    assert_eq!(v2.speed(8), (None, None));
}

#[test]
fn wrong_parameter_is_named() {
    for parameters in [
        &[("skuNmae", "Premium_LRS")][..],
        &[("skuName", "Premium")],
        &[("skuName", "Premium_LRS"), ("storageAccountType", "Standard_LRS")],
        &[("kind", "dedicated")],
        &[("cachingMode", "Sometimes")],
        &[("cachingMode", "ReadOnly"), ("skuName", "UltraSSD_LRS")],
        &[("cachingMode", "ReadWrite"), ("maxShares", "2")],
        &[("maxShares", "0")],
        &[("resourceGroup", "a/b")],
        &[("subscriptionID", "s")],
        &[("DiskIOPSReadWrite", "500")],
        &[("LogicalSectorSize", "512"), ("skuName", "Premium_LRS")],
        &[("DiskMBpsReadWrite", "many"), ("skuName", "UltraSSD_LRS")],
        &[("diskEncryptionSetID", "mine")],
        &[("diskEncryptionType", "EncryptionAtRestWithCustomerKey")],
        &[("networkAccessPolicy", "AllowPrivate")],
        &[("diskAccessID", "/subscriptions/s")],
        &[("enableBursting", "yes")],
        &[("tags", "team")],
    ] {
        let refused = read(parameters, &[]).unwrap_err();
        let name = parameters[0].0.to_ascii_lowercase();
        let named =
            refused.message.to_ascii_lowercase().contains(&name) || refused.message.contains("storageAccountType");
        assert!(
            refused.kind == FailureKind::Invalid && named,
            "{parameters:?}: {refused:?}"
        );
    }
    let refused = read(&[], &[("cachingMode", "None")]).unwrap_err();
    assert!(refused.message.contains("cachingmode"), "{refused:?}");
}
