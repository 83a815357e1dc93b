//! What the fuzz targets under `tests/fuzz` check: one function for each, which takes any bytes and panics when a property is broken.
//!
//! `cargo xtask fuzz` runs them with libFuzzer where nightly is; `cargo test` runs them on a small corpus and on random input everywhere.
//!
//! | file | what it is about |
//! | ---- | ---------------- |
//! | [`host`] | the host's side of the boundary |
//! | [`sdk`] | readers of the guest SDK |
//! | [`manager`] | flags and headers of the manager |

pub mod host;
pub mod manager;
pub mod sdk;

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
