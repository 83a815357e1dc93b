//! Mounts: the table of what is there, the options of a request, and the calls that change it.

pub mod calls;
pub mod options;
pub mod table;

pub use options::MountOptions;
pub use table::{Mount, Table};
