//! Builds programs that are written in Go, our own and those of others.

pub mod module;
pub mod tool;
