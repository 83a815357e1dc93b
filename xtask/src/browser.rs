//! The browser in which the status page is looked at: found in `PATH`, and installed from Debian's packages where that is possible.

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::{debian, tools};

/// Set to the reason when there can be no browser: the tests that need one say so and do nothing.
pub const LEFT_OUT: &str = "CLOUDWIT_NO_BROWSER";

/// Debian's packages.
const PACKAGES: [&str; 2] = ["chromium", "chromium-driver"];

/// Names under which Chromium is known.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// What is needed.
#[derive(Debug)]
pub struct Programs {
    /// The browser.
    pub chromium: PathBuf,
    /// What drives it.
    pub driver: PathBuf,
}

/// Finds both.
///
/// # Errors
///
/// When one is missing; says how to get it.
pub fn find() -> Result<Programs> {
    let chromium = NAMES.into_iter().find_map(tools::find);
    match (chromium, tools::find("chromedriver")) {
        (Some(chromium), Some(driver)) => Ok(Programs { chromium, driver }),
        (chromium, _) => bail!(
            "{} is missing, in which the status page is tested: install it (on Debian `apt-get install {}`), or set {LEFT_OUT} to \
             the reason why there can be none",
            if chromium.is_none() { "Chromium" } else { "chromedriver" },
            PACKAGES.join(" ")
        ),
    }
}

/// Finds both, after having installed what is missing if this is Debian and we may.
///
/// # Errors
///
/// When there is none and none can be had; says why.
pub fn get() -> Result<Programs> {
    let missing = match find() {
        Ok(programs) => return Ok(programs),
        Err(missing) => missing,
    };
    if !debian::install(&PACKAGES)? {
        return Err(missing);
    }
    find()
}
