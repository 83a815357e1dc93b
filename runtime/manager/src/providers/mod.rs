//! Providers from their files: loading, and following changes of the files.

pub mod csi;
pub mod dir;
pub mod host;
pub mod load;
pub mod swap;
pub mod swap_plan;
