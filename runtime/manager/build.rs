//! Tells the linker of the static binary which functions lie side by side: those that run. The others are never in memory then.
//!
//! Linux maps the pages of a program 16 at a time, so a function that is called brings 64 KiB of its neighbours with it.

use std::env;
use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name, value| env::var(name).is_ok_and(|found| found == value);
    // The order was recorded for this target; names differ on others.
    if is("CARGO_CFG_TARGET_ENV", "musl") && is("CARGO_CFG_TARGET_ARCH", "x86_64") {
        let folder = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
        let order = Path::new(&folder).join("link_order.ld").display().to_string();
        println!("cargo::rerun-if-changed={order}");
        println!("cargo::rustc-link-arg-bins=-Wl,-T,{order}");
        // `cargo xtask image` reads there whether the order still fits.
        let out = env::var("OUT_DIR").unwrap_or_default();
        if let Some(profile) = Path::new(&out).ancestors().nth(3) {
            println!(
                "cargo::rustc-link-arg-bins=-Wl,-Map={}",
                profile.join("link_order.map").display()
            );
        }
    }
}
