//! Packages of Debian, installed where that is possible without asking anybody.

use std::process::Command;

use anyhow::Result;

use crate::run::steps::shown;
use crate::tools;

/// Installs packages if this is Debian and we are root. Says whether it could try.
///
/// # Errors
///
/// When a package cannot be installed.
pub fn install(packages: &[&str]) -> Result<bool> {
    let user = tools::output(Command::new("id").arg("-u"))?;
    if user.trim() != "0" || tools::find("apt-get").is_none() {
        return Ok(false);
    }
    println!("installing {}", packages.join(" and "));
    let apt = |arguments: &[&str]| {
        shown(
            Command::new("apt-get")
                .args(arguments)
                .env("DEBIAN_FRONTEND", "noninteractive"),
        )
    };
    apt(&["update", "--quiet"])?;
    let install = ["install", "--quiet", "--assume-yes", "--no-install-recommends"];
    apt(&[&install, packages].concat())?;
    Ok(true)
}
