//! What the fuzz targets under `tests/fuzz` check: one function for each, which takes any bytes and panics when a property is broken.
//!
//! `cargo xtask fuzz` runs them with libFuzzer where nightly is; `cargo test` runs them on a small corpus and on random input everywhere.
//!
//! | file | what it is about |
//! | ---- | ---------------- |
//! | [`host`] | the host's side of the boundary |
//! | [`sdk`] | readers of the guest SDK |
//! | [`manager`] | flags and headers of the manager |

// Included files of the manager have unit tests of their own, which need more of it and run there.
#![cfg(not(test))]

// Files of the manager, which is a program and has no library. Not all of each is called here.
#[allow(
    dead_code,
    reason = "one file of several flags, of which the front proxy's are fuzzed"
)]
#[path = "../../../runtime/manager/src/delegation_args.rs"]
mod delegation_args;
#[allow(dead_code, reason = "shown in help texts only")]
#[path = "../../../runtime/manager/src/duration.rs"]
mod duration;
#[allow(dead_code, reason = "read by clap")]
#[path = "../../../runtime/manager/src/go_values.rs"]
mod go_values;
pub mod host;
pub mod manager;
#[allow(dead_code, reason = "made from flags in the program")]
#[path = "../../../runtime/manager/src/proxy_headers.rs"]
mod proxy_headers;
pub mod sdk;
#[allow(dead_code, reason = "one kind of user is made from headers")]
#[path = "../../../runtime/manager/src/user.rs"]
mod user;

/// A function that takes any bytes.
pub type Body = fn(&[u8]);

/// All of them, by the names of their targets.
pub const ALL: [(&str, Body); 17] = [
    ("redactor", host::redactor),
    ("placeholders", host::placeholders),
    ("target", host::target),
    ("special_addresses", host::special_addresses),
    ("grants", host::grants),
    ("retry_after", host::retry_after),
    ("unpacking", host::unpacking),
    ("cache_header", host::cache_header),
    ("conversions", host::conversions),
    ("proxy_headers", manager::proxy_headers),
    ("flag_values", manager::flag_values),
    ("gcfg", sdk::gcfg),
    ("json", sdk::json),
    ("xml", sdk::xml),
    ("yaml", sdk::yaml),
    ("cidr", sdk::cidr),
    ("names", sdk::names),
];

/// The bytes as text, and the rest behind the first NUL as a second one.
fn texts(data: &[u8]) -> (String, String) {
    let mut parts = data.splitn(2, |byte| *byte == 0);
    let mut next = || String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    (next(), next())
}
