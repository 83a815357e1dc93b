//! Volumes: the disks of the simulated cloud as devices, and who talks to Cloudwit about them.

mod disks;
mod images;
mod objects;
mod sidecars;

pub use disks::{Disks, sysfs};
pub use images::{NODE_IMAGE, SIDECARS, archives};
pub use objects::{LOOK, claim, keeper, prepare, snapshot};
pub use sidecars::{SidecarFiles, Sidecars};

/// The driver, as the provider `sim` names it.
pub const DRIVER: &str = "sim.csi.cloudwit.dev";

/// What stands for `/sys` on a machine: the devices that it has.
pub const SYSFS: &str = "/var/lib/kubelet/sys";

/// The zone of machines that disks move between.
pub const ZONE: &str = "sim-1a";
