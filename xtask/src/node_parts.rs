//! What a real Node is made of, besides the components of Kubernetes: containerd, runc, CNI plugins, nftables and an image to run.
//!
//! They are packages of Debian in pinned versions, unpacked under `target/tools` and not installed. The image holds busybox and is made here.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use crate::oci::{OciImage, hex};
use crate::{progress, tools, workspace};

/// The name of the image, which also holds the sandbox of a Pod.
pub const IMAGE: &str = "localhost/cloudwit-test:1";

/// Package, version, and SHA-256 of its file for amd64 (Debian 12). Libraries are those that the programs before them are linked with.
const PACKAGES: [(&str, &str, &str); 16] = [
    (
        "busybox-static",
        "1:1.35.0-4+deb12u1+b1",
        "3d3fdbe91d4660c873e14b092c213fe81c1da6362daa236eb25d0171eb108744",
    ),
    (
        "containerd",
        "1.6.20~ds1-1+deb12u3",
        "8669d264eeb0fcdb4a0b1ba436ab88ec5dafde4a66e1278ec279d830db4c2216",
    ),
    (
        "containernetworking-plugins",
        "1.1.1+ds1-3+b5",
        "4cac8143474d1249b19f7b0e80b8d0daaa6dfdaa8bd514bc468d38d4a108099f",
    ),
    (
        "libbsd0",
        "0.11.7-2",
        "bb31cc8b40f962a85b2cec970f7f79cc704a1ae4bad24257a822055404b2c60b",
    ),
    (
        "libedit2",
        "3.1-20221030-2",
        "1cf14abf2716d3279db12d0657a5737cf70074a1e71d3bdf73206625e3c89ce6",
    ),
    (
        "libgmp10",
        "2:6.2.1+dfsg1-1.1",
        "187aedef2ed763f425c1e523753b9719677633c7eede660401739e9c893482bd",
    ),
    (
        "libjansson4",
        "2.14-2",
        "3fc9742f9f1a37bcb9931df6074b4d1483419ef832ad5349f47323e75fc27864",
    ),
    (
        "libmd0",
        "1.0.4-2",
        "03539fd30c509e27101d13a56e52eda9062bdf1aefe337c07ab56def25a13eab",
    ),
    (
        "libmnl0",
        "1.0.4-3",
        "4581f42e3373cb72f9ea4e88163b17873afca614a6c6f54637e95aa75983ea7c",
    ),
    (
        "libnftables1",
        "1.0.6-2+deb12u2",
        "3a8223f9bfba99d97bf25296ac83de307ab036e1df63e5965f88809266851947",
    ),
    (
        "libnftnl11",
        "1.2.4-2",
        "9e619e1470a1915264e906020f3bfc046fd8458043b1342686d997b5078213af",
    ),
    (
        "libseccomp2",
        "2.5.4-1+deb12u1",
        "108fe67957ca7cf9ba51d801118a1b37d404bea7b6e365025cd00779e9eca38d",
    ),
    (
        "libtinfo6",
        "6.4-4",
        "072d908f38f51090ca28ca5afa3b46b2957dc61fe35094c0b851426859a49a51",
    ),
    (
        "libxtables12",
        "1.8.9-2",
        "cb841d66950a43af4a398625313d2f3da9065299c9738538de6c2c3495857040",
    ),
    (
        "nftables",
        "1.0.6-2+deb12u2",
        "966ff20ce58c17163a771c02ddbca264291408f94c512bd85dd18da0ebdbe88c",
    ),
    (
        "runc",
        "1.1.5+ds1-1+deb12u1",
        "a00351f8c0318de0b424ecf5cd0fdb69880a89f3511cae4f6fff7de3e57881c5",
    ),
];

/// Raised when the content of the folder changes for another reason than a package.
const LAYOUT: u32 = 1;

/// The folder with the parts.
#[derive(Debug, Clone)]
pub struct NodeParts(PathBuf);

impl NodeParts {
    /// The parts, got if they are not there yet. Safe to call from several processes at once: the others wait for the first.
    ///
    /// # Errors
    ///
    /// When a package cannot be had in its pinned version, or its content is another.
    pub fn get() -> Result<Self> {
        let tools_dir = workspace::target().join("tools");
        fs::create_dir_all(&tools_dir).with_context(|| format!("making {}", tools_dir.display()))?;
        let lock = File::create(tools_dir.join("node-parts.lock")).context("making the lock of the parts of a Node")?;
        lock.lock()
            .context("waiting for another process that gets the parts of a Node")?;
        let folder = tools_dir.join(format!("node-parts-{}", fingerprint()));
        if !folder.is_dir() {
            // Renamed when complete, so that what was interrupted leaves nothing that looks finished.
            let unfinished = tools_dir.join("node-parts.unfinished");
            if unfinished.exists() {
                fs::remove_dir_all(&unfinished).with_context(|| format!("removing {}", unfinished.display()))?;
            }
            unpack(&unfinished)?;
            make_image(&unfinished)?;
            fs::rename(&unfinished, &folder)
                .with_context(|| format!("moving the parts of a Node to {}", folder.display()))?;
            tools::remove_others(&tools_dir, "node-parts-", &folder);
        }
        Ok(Self(folder))
    }

    /// The folder that was unpacked into: `usr/bin`, `usr/sbin`, `usr/lib`, and the image as `image.tar`.
    pub fn folder(&self) -> &Path {
        &self.0
    }
}

fn fingerprint() -> String {
    let mut hash = Sha256::new();
    hash.update(format!("{LAYOUT} {IMAGE} {PACKAGES:?}"));
    hex(&hash.finalize()[..8])
}

/// Gets all packages, checks what they hold, and unpacks them.
fn unpack(folder: &Path) -> Result<()> {
    let downloads = folder.join("downloads");
    fs::create_dir_all(&downloads).with_context(|| format!("making {}", downloads.display()))?;
    let mut command = Command::new("apt-get");
    // As root, since the folder may be one that apt's own user cannot enter.
    command
        .args(["-o", "APT::Sandbox::User=root", "download"])
        .args(PACKAGES.map(|(package, version, _)| format!("{package}={version}")))
        .current_dir(&downloads);
    progress::run(&mut command, "fetching the parts of a Node (38 MB)", |line| {
        Some(line.to_owned())
    })
    .context("getting Debian's packages failed; if a version is not found, `apt-get update` learns of it, and one that Debian has replaced is to be replaced in xtask/src/node_parts.rs")?;
    let entries = fs::read_dir(&downloads).with_context(|| format!("reading {}", downloads.display()))?;
    let mut fetched = Vec::new();
    for entry in entries {
        let file = entry.context("reading the folder of packages")?.path();
        let content = fs::read(&file).with_context(|| format!("reading {}", file.display()))?;
        fetched.push((hex(&Sha256::digest(&content)), file));
    }
    let wrong: Vec<&str> = PACKAGES
        .iter()
        .filter(|(_, _, sum)| !fetched.iter().any(|(found, _)| found == sum))
        .map(|(package, _, _)| *package)
        .collect();
    if !wrong.is_empty() || fetched.len() != PACKAGES.len() {
        bail!(
            "packages whose content is not the pinned one: {}; nothing of them was unpacked",
            wrong.join(", ")
        );
    }
    for (_, file) in fetched {
        tools::output(Command::new("dpkg").arg("-x").arg(&file).arg(folder))?;
    }
    fs::remove_dir_all(&downloads).with_context(|| format!("removing {}", downloads.display()))
}

/// Makes the image: busybox under all its names.
fn make_image(folder: &Path) -> Result<()> {
    let work = folder.join("image");
    let root = work.join("root");
    let busybox = root.join("bin/busybox");
    for dir in [root.join("bin"), root.join("tmp"), root.join("etc")] {
        fs::create_dir_all(&dir).with_context(|| format!("making {}", dir.display()))?;
    }
    fs::copy(folder.join("bin/busybox"), &busybox).context("copying busybox into the image")?;
    let names = tools::output(Command::new(&busybox).arg("--list"))?;
    for name in names.lines().filter(|name| *name != "busybox") {
        std::os::unix::fs::symlink("busybox", root.join("bin").join(name))
            .with_context(|| format!("making the name {name} of busybox"))?;
    }
    // Pods give their own command; the sandbox of a Pod takes this one.
    let image = OciImage {
        name: IMAGE,
        entrypoint: &["/bin/busybox", "sleep", "2147483647"],
        path: "/bin",
        user: "0",
    };
    image.archive(&root, &work, &folder.join("image.tar"))?;
    fs::remove_dir_all(&work).with_context(|| format!("removing {}", work.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_package_is_pinned_once_with_a_whole_digest() {
        for (at, (package, version, sum)) in PACKAGES.iter().enumerate() {
            assert!(!version.is_empty() && sum.len() == 64, "{package}");
            assert!(sum.bytes().all(|byte| byte.is_ascii_hexdigit()), "{package}");
            let again = PACKAGES[at + 1..].iter().any(|(other, _, _)| other == package);
            assert!(!again, "{package} is listed twice");
        }
    }
}
