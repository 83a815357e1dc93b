//! File systems: what is on a device, what to do with it, and the programs that do it.
//!
//! A device is formatted only if all of this holds: the cloud's serial or WWN proved it, it is to be written, `blkid` finds no signature of anything, it can be read,
//! and (unless the operator says otherwise) its first and last MiB are zeros.

pub mod content;
pub mod decide;
pub mod kind;
pub mod tools;

pub use content::{Content, EmptyCheck};
pub use decide::{Plan, decide};
pub use kind::FileSystem;
