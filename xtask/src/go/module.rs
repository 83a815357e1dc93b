//! Our own Go programs under `tests`, built once for each version of their sources.
//!
//! A first build compiles 1,000 to 2,000 packages of Kubernetes (about five minutes on two cores), later ones come from Go's build cache in seconds.
//! The binary is kept under `target/tools`, named after a hash of everything that goes into it, so that a test costs no build.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use crate::run::progress;
use crate::run::steps::shown;
use crate::{tools, workspace};

/// Not inlined and without debug information: 250 s instead of 350 s for the first build of the API server, and it serves requests a little slower.
pub const QUICK: [&str; 2] = ["-trimpath", "-gcflags=all=-dwarf=false -l"];

/// As released programs are built.
pub const RELEASE: [&str; 1] = ["-trimpath"];

/// The file of a module that Go finds by itself.
pub const GO_MOD: &str = "go.mod";

/// A program.
#[derive(Debug, Clone, Copy)]
pub struct GoModule {
    /// What the binary under `target/tools` is called, without the hash.
    pub name: &'static str,
    /// The folder of its sources, from the root of the repository.
    pub folder: &'static str,
    /// The main package: `.` for the module's own, else the path of a tool that the module requires.
    pub package: &'static str,
    /// What it is, for messages.
    pub what: &'static str,
    /// The file that says which versions of other modules it has, in that folder: [`GO_MOD`] or another one instead.
    pub mod_file: &'static str,
    /// How it is compiled: [`QUICK`], [`RELEASE`], or these with build tags.
    pub compiler_flags: &'static [&'static str],
    /// What the linker is told, from its `go.mod`.
    pub linker_flags: fn(go_mod: &str) -> Result<String>,
}

impl GoModule {
    /// The program, built if it is not there yet. Safe to call from several processes at once: the others wait for the first.
    ///
    /// # Errors
    ///
    /// When Go is missing or it does not build.
    pub fn binary(&self) -> Result<PathBuf> {
        let Self { name, what, .. } = self;
        let tools_dir = workspace::target().join("tools");
        fs::create_dir_all(&tools_dir).with_context(|| format!("making {}", tools_dir.display()))?;
        let lock = File::create(tools_dir.join(format!("{name}.lock")))
            .with_context(|| format!("making the lock of the build of {what}"))?;
        lock.lock()
            .with_context(|| format!("waiting for another process that builds {what}"))?;
        let file = tools_dir.join(format!("{name}-{}", self.fingerprint()?));
        if !file.is_file() {
            self.build(&file)?;
            tools::remove_others(&tools_dir, &format!("{name}-"), &file);
        }
        Ok(file)
    }

    /// Looks at its format, builds, vets and tests it. Gives the binary.
    ///
    /// # Errors
    ///
    /// When gofmt would change a file, the compiler or vet complain, or a test fails.
    pub fn check(&self) -> Result<PathBuf> {
        self.format()?;
        let binary = self.binary()?;
        println!("vetting and testing {} (a minute the first time)", self.what);
        // The flags of the build, so that vet takes the packages from the cache instead of compiling all of them once more.
        for command in ["vet", "test"] {
            shown(go(&self.sources()).arg(command).args(self.compiler_flags).arg("."))?;
        }
        Ok(binary)
    }

    /// Looks at its format.
    ///
    /// # Errors
    ///
    /// When gofmt would change a file.
    pub fn format(&self) -> Result<()> {
        let unformatted = tools::output(Command::new("gofmt").args(["-l", "."]).current_dir(self.sources()))?;
        if !unformatted.trim().is_empty() {
            bail!(
                "gofmt would change {} in {}",
                unformatted.trim().replace('\n', ", "),
                self.folder
            );
        }
        Ok(())
    }

    fn sources(&self) -> PathBuf {
        workspace::root().join(self.folder)
    }

    fn linker(&self) -> Result<String> {
        let file = self.sources().join(self.mod_file);
        let text = fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
        (self.linker_flags)(&text).with_context(|| file.display().to_string())
    }

    /// A hash of all that goes into the binary: sources, versions of all modules, version of Go, flags.
    fn fingerprint(&self) -> Result<String> {
        let sources = self.sources();
        let mut names: Vec<PathBuf> = fs::read_dir(&sources)
            .with_context(|| format!("reading {}", sources.display()))?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<_, _>>()?;
        names.retain(|name| {
            name.extension()
                .is_some_and(|kind| ["go", "mod", "sum"].iter().any(|known| kind == *known))
        });
        if self.mod_file != GO_MOD {
            let file = sources.join(self.mod_file);
            names.extend([file.with_extension("sum"), file]);
        }
        names.sort();
        let mut hash = Sha256::new();
        for name in names {
            let content = fs::read(&name).with_context(|| format!("reading {}", name.display()))?;
            hash.update(name.file_name().unwrap_or_default().as_encoded_bytes());
            hash.update(content.len().to_le_bytes());
            hash.update(content);
        }
        hash.update(tools::output(go(&sources).arg("version"))?);
        hash.update(self.compiler_flags.concat());
        hash.update(self.linker()?);
        hash.update(self.package);
        Ok(hash
            .finalize()
            .iter()
            .take(8)
            .map(|byte| format!("{byte:02x}"))
            .collect())
    }

    fn module_flags(&self) -> Option<String> {
        (self.mod_file != GO_MOD).then(|| format!("-modfile={}", self.mod_file))
    }

    fn build(&self, file: &Path) -> Result<()> {
        let (sources, what) = (self.sources(), self.what);
        let mut fetched = 0;
        let packages = progress::run(
            go(&sources)
                .args(["list", "-deps"])
                .args(self.module_flags())
                .args(self.compiler_flags)
                .arg(self.package),
            &format!("fetching the sources of {what}"),
            |line| {
                let module = line.strip_prefix("go: downloading ")?;
                fetched += 1;
                Some(format!("module {fetched}, {module}"))
            },
        )?;
        let mut built = 0;
        // Renamed when complete, so that an interrupted build leaves nothing that looks finished.
        let unfinished = file.with_extension("unfinished");
        let mut command = go(&sources);
        command
            // As many packages at once as there are cores, unless GOFLAGS says another number.
            .args(["build", "-v"])
            .args(self.module_flags())
            .args(self.compiler_flags)
            .arg(self.linker()?)
            .arg("-o")
            .arg(&unfinished)
            .arg(self.package);
        let title = format!("building {what} (about 5 minutes the first time)");
        progress::run(&mut command, &title, |package| {
            built += 1;
            Some(format!("package {built} of at most {}, {package}", packages.len()))
        })?;
        fs::rename(&unfinished, file).with_context(|| format!("moving {what} to {}", file.display()))
    }
}

/// Go in that folder, with the environment of the build.
pub fn go(sources: &Path) -> Command {
    in_environment(Command::new("go"), sources)
}

/// The same for what is built while something else is waited for.
pub fn nice_go(sources: &Path) -> Command {
    let mut nice = Command::new("nice");
    nice.arg("go");
    in_environment(nice, sources)
}

fn in_environment(mut command: Command, sources: &Path) -> Command {
    // Collecting garbage less often shortens the build. No C compiler is needed, and a static binary starts everywhere.
    command.current_dir(sources).env("GOGC", "400").env("CGO_ENABLED", "0");
    command
}
