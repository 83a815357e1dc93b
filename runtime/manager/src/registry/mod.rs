//! Components from OCI registries: pulled by digest, verified by signature, kept for restarts.
//!
//! ```text
//!   reference (oci://...@sha256:) -> pull -> store: already there, verified anew?   -> a file that the host loads
//!                                      |  no
//!                                      v
//!            client (challenge, credentials) -> manifest -> layer, each by its digest
//!                                      |
//!                                      v
//!            signatures: simple_signing | bundle, by keys -> store
//! ```
//!
//! `publish` is the other direction, for `cloudwit provider push` and `sign`.
//!
//! The client is ours, over the HTTP client and the TLS that the host has already. `oci-client` 0.18 (Apache-2.0, well kept) and `oci-wasm` 0.6 would do the exchange of
//! manifests too, with some thirty more crates; they use neither the host's resolver, which keeps requests from special addresses, nor bounds
//! on what a registry sends, nor which host a redirect may show a credential to. What is left to write beside these is small.
//!
//! Signatures without a key (certificates of an identity, a transparency log) are not known yet.

pub mod access;
mod challenge;
mod client;
mod credentials;
mod manifest;
pub mod publish;
pub mod pull;
pub mod reference;
pub(crate) mod signatures;
mod store;
