//! JavaScript: npm installs what the template's lock file pins, once for each version of it.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use crate::run::progress;
use crate::{tools, workspace};

const TEMPLATE: &str = "runtime/manager/templates/js";

/// Where from, for who lacks it.
const HOW: &str = "install Node.js 20 or newer with npm, from https://nodejs.org or your distribution";

/// Checks that Node.js and npm are there.
pub fn require() -> Result<()> {
    for program in ["node", "npm"] {
        if tools::find(program).is_none() {
            bail!("{program} is missing, which builds providers in JavaScript: {HOW}");
        }
    }
    let version = tools::output(Command::new("node").arg("--version"))?;
    let major = version
        .trim()
        .trim_start_matches('v')
        .split('.')
        .next()
        .unwrap_or_default();
    if major.parse::<u32>().is_ok_and(|major| major >= 20) {
        return Ok(());
    }
    bail!(
        "node is {}, too old to build providers in JavaScript: {HOW}",
        version.trim()
    )
}

/// The folder `node_modules` with componentize-js. Safe to call from several processes at once: the others wait for the first.
pub fn tools() -> Result<PathBuf> {
    require()?;
    let template = workspace::root().join(TEMPLATE);
    let read = |name: &str| fs::read(template.join(name)).with_context(|| format!("reading {name} of {TEMPLATE}"));
    let files = ["package.json", "package-lock.json"];
    let contents = [read("package.json.tmpl")?, read("package-lock.json.tmpl")?];
    let digest = Sha256::digest(contents.concat());
    let digest: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let tools_dir = workspace::target().join("tools");
    fs::create_dir_all(&tools_dir).with_context(|| format!("making {}", tools_dir.display()))?;
    let lock = File::create(tools_dir.join("componentize-js.lock")).context("making the lock of componentize-js")?;
    lock.lock()
        .context("waiting for another process that installs componentize-js")?;
    let folder = tools_dir.join(format!("componentize-js-{digest}"));
    if !folder.is_dir() {
        tools::remove_others(&tools_dir, "componentize-js-", &folder);
        let unfinished = tools_dir.join("componentize-js-unfinished");
        fs::create_dir_all(&unfinished).with_context(|| format!("making {}", unfinished.display()))?;
        for (name, content) in files.into_iter().zip(contents) {
            let text = String::from_utf8(content).with_context(|| format!("{name} is no text"))?;
            fs::write(unfinished.join(name), text.replace("{{name}}", "tools"))?;
        }
        let mut npm = Command::new("npm");
        npm.args(["ci", "--no-audit", "--no-fund"]).current_dir(&unfinished);
        progress::run(&mut npm, "fetching componentize-js", |line| Some(line.to_owned()))?;
        fs::rename(&unfinished, &folder).context("moving componentize-js to its place")?;
    }
    Ok(folder.join("node_modules"))
}

/// `npm run build`.
pub fn build(folder: &Path, world: &str) -> Result<()> {
    let modules = folder.join("node_modules");
    if modules.symlink_metadata().is_err() {
        symlink(tools()?, &modules).with_context(|| format!("linking {}", modules.display()))?;
    }
    let mut npm = Command::new("npm");
    npm.args(["run", "build"]).env("WORLD", world).current_dir(folder);
    tools::output(&mut npm).map(drop)
}

/// `npm test`.
pub fn test(folder: &Path) -> Result<String> {
    tools::output(Command::new("npm").arg("test").current_dir(folder))
}
