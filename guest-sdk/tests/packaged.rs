//! The SDK as it comes from a registry: packaged, in a workspace that is not ours, under the provider that README.md shows.
//!
//! Everything lies in `target/tmp` and stays there, so that the next run checks two crates only.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const CRATE: &str = concat!("cloudwit-guest-sdk-", env!("CARGO_PKG_VERSION"));

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Runs cargo without the network.
fn cargo(folder: &Path, arguments: &[&str], target: &Path) {
    run(Command::new(env!("CARGO"))
        .args(arguments)
        .args(["--offline", "--quiet", "--target-dir"])
        .arg(target)
        .env("RUSTDOCFLAGS", "-D warnings")
        .current_dir(folder));
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
}

/// A workspace of the unpacked package and the provider of README.md.
fn workspace(name: &str) -> PathBuf {
    let workspace = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let packaging = workspace.join("packaging");
    let _ = fs::remove_dir_all(workspace.join(CRATE));
    fs::create_dir_all(workspace.join("lab/src")).unwrap();
    let package = ["package", "--no-verify", "--allow-dirty", "--exclude-lockfile"];
    cargo(Path::new(env!("CARGO_MANIFEST_DIR")), &package, &packaging);
    // With times of now: those in the package are always the same, and cargo would take its files for unchanged.
    let packed = packaging.join(format!("package/{CRATE}.crate"));
    run(Command::new("tar").arg("-xzmf").arg(packed).arg("-C").arg(&workspace));

    let readme = fs::read_to_string(workspace.join(CRATE).join("README.md")).unwrap();
    let block = |language: &str| {
        let (_, rest) = readme.split_once(&format!("```{language}\n")).unwrap();
        rest.split("```").next().unwrap()
    };
    let path = format!("\"../{CRATE}\"");
    let manifest = block("toml").replace("\"../guest-sdk\"", &path);
    let (manifest, _) = manifest.split_once("[profile.release]").unwrap();
    let manifest = format!("[package]\nname = \"lab\"\nedition = \"2024\"\n\n{manifest}");
    let (code, _) = block("rust").split_once("// 3. Its test").unwrap();
    fs::write(workspace.join("lab/Cargo.toml"), manifest).unwrap();
    fs::write(workspace.join("lab/src/lib.rs"), code).unwrap();
    let members = format!("[workspace]\nresolver = \"3\"\nmembers = [\"lab\", \"{CRATE}\"]\n");
    fs::write(workspace.join("Cargo.toml"), members).unwrap();
    fs::copy(repository().join("Cargo.lock"), workspace.join("Cargo.lock")).unwrap();
    workspace
}

#[test]
fn provider_outside_of_the_workspace_builds_against_the_package() {
    let workspace = workspace("packaged");
    let check = ["check", "--package", "lab", "--target", "wasm32-wasip2"];
    cargo(&workspace, &check, &workspace.join("target"));

    let (packed, own) = (workspace.join(CRATE).join("wit/v0.1"), repository().join("wit/v0.1"));
    for file in fs::read_dir(&own).unwrap().map(|file| file.unwrap().file_name()) {
        if own.join(&file).is_file() {
            let contract = |folder: &Path| fs::read_to_string(folder.join(&file)).unwrap();
            assert_eq!(contract(&packed), contract(&own), "{file:?}");
        }
    }
    let manifest = fs::read_to_string(workspace.join(CRATE).join("Cargo.toml")).unwrap();
    assert!(manifest.contains("\nrust-version = \""), "{manifest}");
}

/// Takes the dependencies once more, for the machine itself.
#[test]
#[ignore = "takes a minute; `cargo xtask test --all` runs it"]
fn documentation_of_the_package_builds_alone() {
    let workspace = workspace("documented");
    let doc = ["doc", "--package", "cloudwit-guest-sdk", "--no-deps", "--all-features"];
    cargo(&workspace, &doc, &workspace.join("target"));
}
