//! The command line.

pub mod args;
pub mod checks;
pub mod command_line;
pub mod controllers;
pub mod groups;
pub mod values;
