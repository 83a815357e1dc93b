//! The configuration file, and the settings that follow from it and from the flags.

pub mod check;
pub mod document;
pub mod file;
pub mod mistakes;
pub mod options;
pub mod schema;
pub mod settings;
pub mod tree;
pub mod yaml;
