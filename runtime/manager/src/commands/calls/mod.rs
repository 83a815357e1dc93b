//! Calls of a provider's functions: arguments from manifests and the command line, and answers as JSON.

pub(crate) mod answer;
pub(crate) mod function;
pub(crate) mod objects;
pub(crate) mod small;
pub(crate) mod volumes;
