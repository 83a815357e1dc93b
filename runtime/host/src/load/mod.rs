//! From a file to code that can be instantiated: artifact, version, compiler, cache.

pub(crate) mod artifact;
pub(crate) mod cache;
pub(crate) mod code;
pub(crate) mod compiler;
pub(crate) mod compiler_process;
pub(crate) mod component_file;
pub(crate) mod engine;
pub(crate) mod requests;
pub(crate) mod toolchain;
pub(crate) mod version;
