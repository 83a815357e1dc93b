//! Providers from their files and from registries: loading, and following changes of the files.

pub mod component;
pub mod csi;
pub mod dir;
pub mod host;
pub mod load;
pub mod swap;
pub mod swap_plan;
