//! The host functions: those of the contract inside a component, stand-ins in native tests.

#[cfg(target_family = "wasm")]
mod component;
#[cfg(not(target_family = "wasm"))]
mod fake;
#[cfg(target_family = "wasm")]
mod wasi_http;

#[cfg(target_family = "wasm")]
pub use component::*;
#[cfg(not(target_family = "wasm"))]
pub use fake::*;
