//! Python: pip installs what the template's requirements pin, in an environment of its own.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::servers::python::Environment;
use crate::tools;

/// The environment with componentize-py.
pub fn tools() -> Result<Environment> {
    Environment::get("componentize", "runtime/manager/templates/python/requirements.txt.tmpl")
}

/// `make`.
pub fn build(folder: &Path, world: &str) -> Result<()> {
    let program = tools()?.program("componentize-py");
    let mut make = Command::new("make");
    make.arg(format!("COMPONENTIZE={}", program.display()))
        .arg(format!("WORLD={world}"))
        .current_dir(folder);
    tools::output(&mut make).map(drop)
}

/// `make test`.
pub fn test(folder: &Path) -> Result<String> {
    let mut make = Command::new("sh");
    // The runner prints to standard error.
    make.args(["-c", "make test 2>&1"]).current_dir(folder);
    tools::output(&mut make)
}
