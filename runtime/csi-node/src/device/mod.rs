//! Finds the block device of a volume by hints of the cloud and sysfs.
//!
//! `find` decides over what `scan` read, so that every rule is a row of a table in its tests.

pub mod find;
pub mod hints;
pub mod open;
pub mod scan;
pub mod vpd;

pub use find::Match;
pub use hints::Hints;
pub use open::{Devices, OpenDevice};
pub use scan::BlockDevice;
