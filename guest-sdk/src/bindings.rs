//! Bindings of `wit/v0.1` by wit-bindgen. Internal: the crate root re-exports the types by hand.
//!
//! One world for each exported interface, all sharing the types of the imports world. Because each has an export macro of
//! its own, a component exports exactly the interfaces its author registers: see `register.rs`.

/// Types and host functions.
pub mod imports {
    #![expect(missing_docs, reason = "generated")]
    wit_bindgen::generate!({
        path: "wit/v0.1",
        world: "imports",
        generate_all,
        generate_unused_types: true,
        additional_derives: [PartialEq, Clone],
    });
}

/// One world with one exported interface.
macro_rules! exported {
    ($module:ident, $world:literal, $export_macro:literal, $path:literal $(, with $interface:literal in $types:path)?) => {
        pub mod $module {
            #![expect(missing_docs, reason = "generated")]
            wit_bindgen::generate!({
                path: "wit/v0.1",
                world: $world,
                with: {
                    "cloudwit:provider/common@0.1.0": crate::bindings::imports::cloudwit::provider::common,
                    "cloudwit:provider/services@0.1.0": crate::bindings::imports::cloudwit::provider::services,
                    "cloudwit:provider/call@0.1.0": crate::bindings::imports::cloudwit::provider::call,
                    "cloudwit:provider/config@0.1.0": crate::bindings::imports::cloudwit::provider::config,
                    "cloudwit:provider/keys@0.1.0": crate::bindings::imports::cloudwit::provider::keys,
                    "cloudwit:provider/state@0.1.0": crate::bindings::imports::cloudwit::provider::state,
                    "cloudwit:provider/log@0.1.0": crate::bindings::imports::cloudwit::provider::log,
                    "cloudwit:provider/events@0.1.0": crate::bindings::imports::cloudwit::provider::events,
                    "cloudwit:provider/cluster@0.1.0": crate::bindings::imports::cloudwit::provider::cluster,
                    $($interface: $types,)?
                },
                generate_unused_types: true,
                additional_derives: [PartialEq, Clone],
                pub_export_macro: true,
                export_macro_name: $export_macro,
                default_bindings_module: $path,
                runtime_path: "::cloudwit_guest_sdk::__private::wit_bindgen::rt",
            });
        }
    };
}

exported!(
    info,
    "provides-info",
    "__export_info",
    "cloudwit_guest_sdk::bindings::info"
);
exported!(
    instances,
    "provides-instances",
    "__export_instances",
    "cloudwit_guest_sdk::bindings::instances"
);
exported!(
    load_balancers,
    "provides-load-balancers",
    "__export_load_balancers",
    "cloudwit_guest_sdk::bindings::load_balancers"
);
exported!(
    routes,
    "provides-routes",
    "__export_routes",
    "cloudwit_guest_sdk::bindings::routes"
);
exported!(
    tagging,
    "provides-tagging",
    "__export_tagging",
    "cloudwit_guest_sdk::bindings::tagging"
);
exported!(
    clusters,
    "provides-clusters",
    "__export_clusters",
    "cloudwit_guest_sdk::bindings::clusters"
);
exported!(dns, "provides-dns", "__export_dns", "cloudwit_guest_sdk::bindings::dns");
exported!(
    location,
    "provides-location",
    "__export_location",
    "cloudwit_guest_sdk::bindings::location"
);
exported!(
    ssh_keys,
    "provides-ssh-keys",
    "__export_ssh_keys",
    "cloudwit_guest_sdk::bindings::ssh_keys"
);
// Its types are those of the others that are about volumes.
exported!(
    volumes,
    "provides-volumes",
    "__export_volumes",
    "cloudwit_guest_sdk::bindings::volumes"
);
exported!(
    volume_expansion,
    "provides-volume-expansion",
    "__export_volume_expansion",
    "cloudwit_guest_sdk::bindings::volume_expansion",
    with "cloudwit:provider/volume-types@0.1.0" in crate::bindings::volumes::cloudwit::provider::volume_types
);
exported!(
    volume_listing,
    "provides-volume-listing",
    "__export_volume_listing",
    "cloudwit_guest_sdk::bindings::volume_listing",
    with "cloudwit:provider/volume-types@0.1.0" in crate::bindings::volumes::cloudwit::provider::volume_types
);
exported!(
    volume_snapshots,
    "provides-volume-snapshots",
    "__export_volume_snapshots",
    "cloudwit_guest_sdk::bindings::volume_snapshots",
    with "cloudwit:provider/volume-types@0.1.0" in crate::bindings::volumes::cloudwit::provider::volume_types
);
exported!(
    volume_capacity,
    "provides-volume-capacity",
    "__export_volume_capacity",
    "cloudwit_guest_sdk::bindings::volume_capacity",
    with "cloudwit:provider/volume-types@0.1.0" in crate::bindings::volumes::cloudwit::provider::volume_types
);
exported!(
    volume_labels,
    "provides-volume-labels",
    "__export_volume_labels",
    "cloudwit_guest_sdk::bindings::volume_labels"
);
exported!(
    volume_modification,
    "provides-volume-modification",
    "__export_volume_modification",
    "cloudwit_guest_sdk::bindings::volume_modification"
);
