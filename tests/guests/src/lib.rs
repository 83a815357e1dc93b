//! What the guests under `examples/` share: a provider that behaves until it is asked about [`TRIGGER`].
//!
//! Each of them is a component of its own and misbehaves in one way, or tries one thing a guest might try. That it
//! behaves otherwise lets a test ask again after a fault and expect an answer.

pub use cloudwit_guest_sdk as sdk;
use cloudwit_guest_sdk::prelude::*;

/// The Node or Service at which a guest does what its name says.
pub const TRIGGER: &str = "trigger";

/// What `instances.lookup` answers.
pub type Lookup = Result<Vec<Result<Presence, Failure>>, Failure>;

/// The machine of a Node of this name.
pub fn machine(node: &str) -> Instance {
    let mut machine = Instance::new(format!("test://{node}"));
    machine
        .addresses
        .push(Address::new(AddressKind::InternalIp, "10.0.0.1"));
    machine
}

/// Every machine runs.
pub fn all_run(nodes: &[NodeRef]) -> Lookup {
    Ok(nodes
        .iter()
        .map(|node| Ok(Presence::Running(machine(&node.name))))
        .collect())
}

/// Whether this call is the one to misbehave in.
pub fn is_triggered(nodes: &[NodeRef]) -> bool {
    nodes.iter().any(|node| node.name == TRIGGER)
}

/// Registers a provider with the one interface `instances` that calls this function, of `&[NodeRef]` and [`Context`],
/// when it is asked about [`TRIGGER`], and else behaves.
#[macro_export]
macro_rules! misbehaves {
    ($misbehave:expr) => {
        struct Guest($crate::sdk::Context);

        impl $crate::sdk::Provider for Guest {
            type Config = $crate::sdk::NoConfig;

            fn describe(_: Option<&Self::Config>) -> $crate::sdk::Description {
                $crate::sdk::Description::new(module_path!(), env!("CARGO_PKG_VERSION")).prefix("test://")
            }

            fn new(_: Self::Config, context: $crate::sdk::Context) -> Result<Self, $crate::sdk::Failure> {
                Ok(Self(context))
            }

            fn probe(&self) -> Result<(), $crate::sdk::Failure> {
                Ok(())
            }
        }

        impl $crate::sdk::Instances for Guest {
            fn lookup(&self, nodes: &[$crate::sdk::NodeRef]) -> $crate::Lookup {
                if $crate::is_triggered(nodes) { $misbehave(nodes, self.0) } else { $crate::all_run(nodes) }
            }
        }

        $crate::sdk::register_provider!(Guest: Instances);
    };
}

/// The authors' guide, so that its examples are compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/authors/guide.md")]
pub struct Guide;
