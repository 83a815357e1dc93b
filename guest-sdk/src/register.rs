//! Macro [`register_provider!`](crate::register_provider): from the component's exports to the traits.
//!
//! The macro names the interfaces, the component exports exactly those. Every exported function goes the same way: read the
//! configuration, make the provider, call it. Natively nothing is exported (the names of exports are no valid symbols there); the
//! macro then only checks that the traits are implemented.

use crate::bindings::{info, instances, load_balancers, routes, tagging};
use crate::provider::update_one;
use crate::types::*;
use crate::{Context, Instances, LoadBalancers, Provider, Routes, Tagging, config, host};

use info::exports::cloudwit::provider::info::Guest as InfoGuest;
use instances::exports::cloudwit::provider::instances::Guest as InstancesGuest;
use load_balancers::exports::cloudwit::provider::load_balancers::Guest as LoadBalancersGuest;
use routes::exports::cloudwit::provider::routes::Guest as RoutesGuest;
use tagging::exports::cloudwit::provider::tagging::Guest as TaggingGuest;

/// Makes the crate a provider: `register_provider!(Sim: Instances, LoadBalancers, Routes);`.
///
/// The type implements [`Provider`] and the named traits; an interface that is not named is not exported, and the
/// controller then treats it as missing in this cloud. Call it once, in a crate of type `cdylib`.
#[macro_export]
macro_rules! register_provider {
    ($provider:ty : $($interface:ident),+ $(,)?) => {
        const _: fn() = || {
            fn provides<P: $crate::Provider $(+ $crate::$interface)+>() {}
            provides::<$provider>();
        };
        #[cfg(target_family = "wasm")]
        const _: () = {
            type Registered = $provider;
            $crate::bindings::info::__export_info!(Registered with_types_in $crate::bindings::info);
            $($crate::__export_interface!(Registered, $interface);)+
        };
    };
}

/// Exports one interface.
#[doc(hidden)]
#[macro_export]
macro_rules! __export_interface {
    ($provider:ident, Instances) => {
        $crate::bindings::instances::__export_instances!($provider with_types_in $crate::bindings::instances);
    };
    ($provider:ident, LoadBalancers) => {
        $crate::bindings::load_balancers::__export_load_balancers!($provider with_types_in $crate::bindings::load_balancers);
    };
    ($provider:ident, Routes) => {
        $crate::bindings::routes::__export_routes!($provider with_types_in $crate::bindings::routes);
    };
    ($provider:ident, Tagging) => {
        $crate::bindings::tagging::__export_tagging!($provider with_types_in $crate::bindings::tagging);
    };
    ($provider:ident, Volumes) => {
        $crate::bindings::volumes::__export_volumes!($provider with_types_in $crate::bindings::volumes);
    };
    ($provider:ident, VolumeExpansion) => {
        $crate::bindings::volume_expansion::__export_volume_expansion!($provider with_types_in $crate::bindings::volume_expansion);
    };
    ($provider:ident, VolumeListing) => {
        $crate::bindings::volume_listing::__export_volume_listing!($provider with_types_in $crate::bindings::volume_listing);
    };
    ($provider:ident, VolumeSnapshots) => {
        $crate::bindings::volume_snapshots::__export_volume_snapshots!($provider with_types_in $crate::bindings::volume_snapshots);
    };
    ($provider:ident, VolumeModification) => {
        $crate::bindings::volume_modification::__export_volume_modification!($provider with_types_in $crate::bindings::volume_modification);
    };
    ($provider:ident, VolumeCapacity) => {
        $crate::bindings::volume_capacity::__export_volume_capacity!($provider with_types_in $crate::bindings::volume_capacity);
    };
    ($provider:ident, VolumeLabels) => {
        $crate::bindings::volume_labels::__export_volume_labels!($provider with_types_in $crate::bindings::volume_labels);
    };
    ($provider:ident, Clusters) => {
        $crate::bindings::clusters::__export_clusters!($provider with_types_in $crate::bindings::clusters);
    };
    ($provider:ident, Dns) => {
        $crate::bindings::dns::__export_dns!($provider with_types_in $crate::bindings::dns);
    };
    ($provider:ident, Location) => {
        $crate::bindings::location::__export_location!($provider with_types_in $crate::bindings::location);
    };
    ($provider:ident, SshKeys) => {
        $crate::bindings::ssh_keys::__export_ssh_keys!($provider with_types_in $crate::bindings::ssh_keys);
    };
    ($provider:ident, $other:ident) => {
        compile_error!(concat!(
            "`", stringify!($other), "` is no interface of the contract; there are Instances, LoadBalancers, Routes, Clusters, Dns, Location, SshKeys, Tagging, VolumeLabels, Volumes and beside it \
             VolumeExpansion, VolumeListing, VolumeSnapshots, VolumeModification and VolumeCapacity"
        ));
    };
}

/// Makes the provider for one call, from what the operator configured.
///
/// # Errors
/// `invalid` with every mistake of the configuration, or the error of the provider's own `new`.
pub(crate) fn start<P: Provider>() -> Result<P, Failure> {
    P::new(configured::<P>()?, Context::new())
}

/// What the operator configured, for a call that needs no provider.
///
/// # Errors
/// `invalid` with every mistake.
pub(crate) fn configured<P: Provider>() -> Result<P::Config, Failure> {
    let config = config::read::<P>().map_err(|problems| problems.into_failure())?;
    #[cfg(not(target_family = "wasm"))]
    crate::testing::describe(P::describe(Some(&config)));
    Ok(config)
}

impl<P: Provider> InfoGuest for P {
    fn describe() -> Description {
        P::describe(config::read::<P>().ok().as_ref())
    }

    fn check() -> Vec<Problem> {
        config::check::<P>()
    }

    fn probe() -> Result<(), Failure> {
        start::<P>()?.probe()
    }
}

impl<P: Instances> InstancesGuest for P {
    fn lookup(nodes: Vec<NodeRef>) -> Result<Vec<Result<Presence, Failure>>, Failure> {
        start::<P>()?.lookup(&nodes)
    }
}

impl<P: LoadBalancers> LoadBalancersGuest for P {
    fn name(service: Service) -> String {
        P::name(&host::cluster(), &service)
    }

    fn get(service: Service) -> Result<Option<Balancer>, Failure> {
        start::<P>()?.get(&service)
    }

    fn ensure(service: Service, targets: Vec<Target>, token: Option<String>) -> Result<Balancer, Failure> {
        start::<P>()?.ensure(&service, &targets, token.as_deref())
    }

    fn update_targets(
        updates: Vec<TargetUpdate>,
        targets: Vec<Target>,
    ) -> Result<Vec<Result<Vec<AnnotationChange>, Failure>>, Failure> {
        let provider = start::<P>()?;
        match updates.as_slice() {
            [only] => Ok(vec![update_one(&provider, only, &targets)]),
            many => provider.update_targets_of(many, &targets),
        }
    }

    fn delete(service: Service, token: Option<String>) -> Result<Vec<AnnotationChange>, Failure> {
        start::<P>()?.delete(&service, token.as_deref())
    }
}

impl<P: Tagging> TaggingGuest for P {
    fn tag(nodes: Vec<NodeRef>, tags: Vec<Pair>) -> Result<Vec<Result<(), Failure>>, Failure> {
        start::<P>()?.tag(&nodes, &tags)
    }

    fn untag(nodes: Vec<NodeRef>, tags: Vec<Pair>) -> Result<Vec<Result<(), Failure>>, Failure> {
        start::<P>()?.untag(&nodes, &tags)
    }
}

impl<P: Routes> RoutesGuest for P {
    fn list() -> Result<Vec<Route>, Failure> {
        start::<P>()?.list()
    }

    fn apply(create: Vec<NewRoute>, delete: Vec<Route>, tokens: RouteTokens) -> Result<RouteOutcome, Failure> {
        start::<P>()?.apply(&create, &delete, &tokens)
    }
}
