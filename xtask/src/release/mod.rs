//! `cargo xtask release`: everything that is published of a version, in one folder.
//!
//! | file | what it is about |
//! | ---- | ---------------- |
//! | [`version`] | the version, and what has to say the same |
//! | [`notes`] | its section of the changelog |
//! | [`machine`] | static binaries |
//! | [`crates`], [`sbom`] | what an artifact is made of, and the bill that says so |
//! | [`chart`] | the package of the chart |
//! | [`packing`] | archives that are the same whenever they are made |
//! | [`checksums`] | the digests of all files |
//!
//! Nothing is uploaded, signed or tagged.

pub mod chart;
pub mod checksums;
pub mod crates;
pub mod machine;
pub mod notes;
pub mod packing;
pub mod sbom;
pub mod version;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::cli::ReleaseArgs;
use crate::commands::manifests;
use crate::kubernetes::oci::OciImage;
use crate::release::crates::Crates;
use crate::release::machine::Machine;
use crate::release::sbom::Artifact;
use crate::release::version::VERSION;
use crate::{guests, tools, workspace};

/// Where the image will be.
const IMAGE: &str = "ghcr.io/cloudwit/cloudwit";

/// The shells that the binary writes completions for.
const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];

/// A release that is being made.
struct Release {
    /// Where it goes.
    folder: PathBuf,
    /// For what comes in between.
    work: PathBuf,
    compiler: String,
}

/// Builds everything into `target/release-VERSION`, and lists it.
///
/// # Errors
///
/// When a tool is missing, versions differ, the changelog says nothing of the version, there are changes that are not committed, or something does not
/// build. The folder then has nothing in it.
pub fn run(args: &ReleaseArgs) -> Result<()> {
    let root = workspace::root();
    let read = |name: &str| fs::read_to_string(root.join(name)).with_context(|| format!("reading {name}"));
    version::check_chart(&read(version::CHART)?, VERSION)?;
    let heading = if args.draft { notes::UNRELEASED } else { VERSION };
    let notes = notes::section(&read("CHANGELOG.md")?, heading)?;
    if !args.draft {
        require_clean()?;
    }
    let mut machines = machine::ALL.to_vec();
    machines.retain(|machine| !args.without.contains(machine));
    for machine in &machines {
        machine.require()?;
    }
    tools::require_wasm_target()?;

    let folder = workspace::target().join(format!("release-{VERSION}"));
    let unfinished = workspace::target().join(format!("release-{VERSION}.unfinished"));
    for old in [&folder, &unfinished] {
        remove(old)?;
    }
    let release = Release {
        work: unfinished.join("work"),
        folder: unfinished.join("files"),
        compiler: machine::compiler()?,
    };
    for folder in [&release.work, &release.folder] {
        make(folder)?;
    }
    fs::write(release.folder.join("RELEASE_NOTES.md"), notes).context("writing the release notes")?;
    let digest = release.binaries_and_image(&machines)?;
    release.components()?;
    chart::package(&release.folder, &release.work)?;
    release.manifests()?;
    checksums::write(&release.folder)?;
    fs::rename(&release.folder, &folder).with_context(|| format!("moving all to {}", folder.display()))?;
    remove(&unfinished)?;
    print!("{}", listed(&folder)?);
    println!("\n{IMAGE}:{VERSION} is the image {digest}\n{}", folder.display());
    Ok(())
}

impl Release {
    /// For each machine an archive with binary, manual and completions; one image for all of them. Gives the image's digest.
    fn binaries_and_image(&self, machines: &[Machine]) -> Result<String> {
        let binaries = machines.iter().map(|machine| Ok((*machine, machine.binary()?)));
        let binaries: Vec<(Machine, PathBuf)> = binaries.collect::<Result<_>>()?;
        // The first one runs here; what it prints is the same for all.
        let (_, runs) = binaries.first().context("no binary was built")?;
        let mut roots = Vec::new();
        let mut in_image: Option<Crates> = None;
        for (machine, binary) in &binaries {
            let crates = Crates::of("cloudwit", machine.target())?;
            self.archive(*machine, binary, runs, &crates)?;
            let root = self.work.join("image").join(machine.in_images());
            // As deploy/image/Containerfile has it.
            install(binary, &root.join("usr/local/bin"))?;
            roots.push((machine.in_images(), root));
            in_image = Some(match in_image {
                Some(others) => others.and(crates),
                None => crates,
            });
        }
        let roots: Vec<(&str, &Path)> = roots.iter().map(|(machine, root)| (*machine, root.as_path())).collect();
        let name = format!("{IMAGE}:{VERSION}");
        let image = OciImage {
            name: &name,
            entrypoint: &["/usr/local/bin/cloudwit"],
            path: "/usr/local/bin",
            user: "65532:65532",
        };
        let base = format!("cloudwit-{VERSION}-image");
        let file = self.folder.join(format!("{base}.tar"));
        let digest = image.archive_for(&roots, &self.work.join("layout"), &file)?;
        let targets: Vec<&str> = machines.iter().map(|machine| machine.target()).collect();
        self.bill(&base, "container", &targets, &file, &in_image.unwrap_or_default())?;
        Ok(digest)
    }

    fn archive(&self, machine: Machine, binary: &Path, runs: &Path, crates: &Crates) -> Result<()> {
        let name = format!("cloudwit-{VERSION}-linux-{}", machine.name());
        let inside = self.work.join(&name);
        install(binary, &inside)?;
        fs::copy(workspace::root().join("LICENSE"), inside.join("LICENSE")).context("copying the licence")?;
        let printed = |file: PathBuf, arguments: &[&str]| {
            let text = tools::output(Command::new(runs).args(arguments))?;
            fs::write(&file, text).with_context(|| format!("writing {}", file.display()))
        };
        printed(inside.join("cloudwit.1"), &["man"])?;
        make(&inside.join("completions"))?;
        for shell in SHELLS {
            printed(
                inside.join("completions").join(format!("cloudwit.{shell}")),
                &["completion", shell],
            )?;
        }
        packing::pack(&self.work, &name, &self.folder.join(format!("{name}.tar.gz")))?;
        self.bill(&name, "application", &[machine.target()], binary, crates)
    }

    /// Each provider as it is and packed, under the name that a configuration has it by.
    fn components(&self) -> Result<()> {
        for name in guests::PROVIDERS {
            let built = guests::provider(name)?;
            let file = self.folder.join(format!("{name}.wasm"));
            fs::copy(&built, &file).with_context(|| format!("copying {}", built.display()))?;
            let packed = self.folder.join(format!("{name}.wasm.zst"));
            fs::write(&packed, guests::packed(&file)?).with_context(|| format!("writing {}", packed.display()))?;
            let crates = Crates::of(&format!("cloudwit-provider-{name}"), tools::WASM_TARGET)?;
            self.bill(name, "application", &[tools::WASM_TARGET], &file, &crates)?;
        }
        Ok(())
    }

    /// The chart as plain YAML; rendered now, so that it is that of this version.
    fn manifests(&self) -> Result<()> {
        for (file, text) in manifests::plain()? {
            let name = file.file_name().context("a manifest without a name")?;
            fs::write(self.folder.join(name), text).with_context(|| format!("writing {}", file.display()))?;
        }
        Ok(())
    }

    /// The bill of materials of a file.
    fn bill(&self, name: &str, kind: &str, targets: &[&str], file: &Path, crates: &Crates) -> Result<()> {
        let digest = checksums::digest(file)?;
        let artifact = Artifact {
            name,
            kind,
            targets,
            digest: &digest,
        };
        let bill = self.folder.join(format!("{name}.{}", sbom::EXTENSION));
        sbom::write(&bill, &artifact, crates, &self.compiler)
    }
}

/// What is released is a commit.
fn require_clean() -> Result<()> {
    let mut git = Command::new("git");
    git.args(["status", "--porcelain"]).current_dir(workspace::root());
    match tools::output(&mut git)?.lines().next() {
        Some(first) => {
            bail!("there are changes that are not committed, such as {first:?}; commit them, or try with --draft")
        }
        None => Ok(()),
    }
}

/// Copies a program into a folder, to be run by everybody.
fn install(program: &Path, folder: &Path) -> Result<()> {
    make(folder)?;
    let copy = folder.join("cloudwit");
    fs::copy(program, &copy).with_context(|| format!("copying {}", program.display()))?;
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o755))
        .with_context(|| format!("making {} a program", copy.display()))
}

fn make(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))
}

fn remove(folder: &Path) -> Result<()> {
    match folder.exists() {
        true => fs::remove_dir_all(folder).with_context(|| format!("removing {}", folder.display())),
        false => Ok(()),
    }
}

/// One line a file: its size and its name.
fn listed(folder: &Path) -> Result<String> {
    let entries = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    let line = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry?;
        Ok((entry.file_name(), entry.metadata()?.len()))
    };
    let mut files: Vec<_> = entries.map(line).collect::<Result<_>>()?;
    files.sort();
    Ok(files
        .iter()
        .map(|(name, size)| format!("{size:>10}  {}\n", name.to_string_lossy()))
        .collect())
}
