//! What a real Node is made of, besides the components of Kubernetes: containerd, runc, CNI plugins, nftables, programs for file systems, and an image to
//! run.
//!
//! They are packages of Debian in pinned versions, unpacked under `target/tools` and not installed. The image holds busybox and is made here.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use crate::kubernetes::oci::{OciImage, hex};
use crate::run::progress;
use crate::{tools, workspace};

/// The name of the image, which also holds the sandbox of a Pod.
pub const IMAGE: &str = "localhost/cloudwit-test:1";

/// Name, version, digest.
type Package = (&'static str, &'static str, &'static str);

/// Package, version, and SHA-256 of its file for amd64 (Debian 12). Libraries are those that the programs before them are linked with.
const PACKAGES: [Package; 23] = [
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
        "e2fsprogs",
        "1.47.0-2+b2",
        "fedd424691c08ef0739729026be298e7be8236337bf8e031b3c7ec66794e6fc2",
    ),
    (
        "libbsd0",
        "0.11.7-2",
        "bb31cc8b40f962a85b2cec970f7f79cc704a1ae4bad24257a822055404b2c60b",
    ),
    (
        "libcom-err2",
        "1.47.0-2+b2",
        "a2bac7015e78fbc0c504df3e441f3a22292f1d2d77f9ccda760057f3690e22f2",
    ),
    (
        "libedit2",
        "3.1-20221030-2",
        "1cf14abf2716d3279db12d0657a5737cf70074a1e71d3bdf73206625e3c89ce6",
    ),
    (
        "libext2fs2",
        "1.47.0-2+b2",
        "dff731f2318df99da4b8bf5f330f415f95b94c609bac29e7b2edba0a38f22a98",
    ),
    (
        "libgmp10",
        "2:6.2.1+dfsg1-1.1",
        "187aedef2ed763f425c1e523753b9719677633c7eede660401739e9c893482bd",
    ),
    (
        "libinih1",
        "55-1",
        "1286ddab2ef1050389e585ad3bfd0a0d9bdd26475003a33b4eec884bccd50477",
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
        "libss2",
        "1.47.0-2+b2",
        "24115749c09b4e259acff1f799faccd1748ff322bd638b09d820729cb3b24579",
    ),
    (
        "libtinfo6",
        "6.4-4",
        "072d908f38f51090ca28ca5afa3b46b2957dc61fe35094c0b851426859a49a51",
    ),
    (
        "liburcu8",
        "0.13.2-1",
        "8647049698200fb5e20a130a09059b51878bb98643a120c7b0c6cbfd3f9b42dd",
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
    (
        "xfsprogs",
        "6.1.0-1",
        "e2d2a60dd29d568b5724b66d9ff864305cec61a15e6ba842079398524e1c5718",
    ),
];

/// The folder with a root of its own that has the programs for file systems and all that they need: what an image of `cloudwit csi-node` holds besides it.
pub const FILE_SYSTEMS: &str = "file-systems";

/// Packages that only that root has: the machine's own are others' as well.
const LIBRARIES: [Package; 4] = [
    (
        "libblkid1",
        "2.38.1-5+deb12u3",
        "5a083377f29191cafcdf0f91ec124349b4a7895b531556633a136e43c6d53943",
    ),
    (
        "libc6",
        "2.36-9+deb12u14",
        "ba4f88f73dbc3ae9055f3c20f4523bfdbaf1ad13ff95e258924f77d20b4fbedf",
    ),
    (
        "libuuid1",
        "2.38.1-5+deb12u3",
        "5fff398321da62d28a842bcbabd193d72ae21724962c029dc32b1dc6b2deaeaf",
    ),
    (
        "util-linux",
        "2.38.1-5+deb12u3",
        "8eb241ff24b2e1ee9c0373f4fc9bc728b85bf5966c1496154df7da01c0e42f34",
    ),
];

/// Packages that are in both.
const SHARED: [&str; 7] = [
    "e2fsprogs",
    "libcom-err2",
    "libext2fs2",
    "libinih1",
    "libss2",
    "liburcu8",
    "xfsprogs",
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
    hash.update(format!("{LAYOUT} {IMAGE} {PACKAGES:?} {LIBRARIES:?} {SHARED:?}"));
    hex(&hash.finalize()[..8])
}

fn all() -> impl Iterator<Item = &'static Package> {
    PACKAGES.iter().chain(&LIBRARIES)
}

/// Gets all packages, checks what they hold, and unpacks them.
fn unpack(folder: &Path) -> Result<()> {
    let downloads = folder.join("downloads");
    fs::create_dir_all(&downloads).with_context(|| format!("making {}", downloads.display()))?;
    let mut command = Command::new("apt-get");
    // As root, since the folder may be one that apt's own user cannot enter.
    command
        .args(["-o", "APT::Sandbox::User=root", "download"])
        .args(all().map(|(package, version, _)| format!("{package}={version}")))
        .current_dir(&downloads);
    progress::run(&mut command, "fetching the parts of a Node (44 MB)", |line| {
        Some(line.to_owned())
    })
    .context("getting Debian's packages failed; if a version is not found, `apt-get update` learns of it, and one that Debian has replaced is to be replaced in xtask/src/kubernetes/node_parts.rs")?;
    let entries = fs::read_dir(&downloads).with_context(|| format!("reading {}", downloads.display()))?;
    let mut fetched = Vec::new();
    for entry in entries {
        let file = entry.context("reading the folder of packages")?.path();
        let content = fs::read(&file).with_context(|| format!("reading {}", file.display()))?;
        fetched.push((hex(&Sha256::digest(&content)), file));
    }
    let wrong: Vec<&str> = all()
        .filter(|(_, _, sum)| !fetched.iter().any(|(found, _)| found == sum))
        .map(|(package, _, _)| *package)
        .collect();
    if !wrong.is_empty() || fetched.len() != all().count() {
        bail!(
            "packages whose content is not the pinned one: {}; nothing of them was unpacked",
            wrong.join(", ")
        );
    }
    let unpack = |(_, _, sum): &Package, folder: &Path| {
        let mut files = fetched.iter().filter(|(found, _)| found == sum);
        files.try_for_each(|(_, file)| tools::output(Command::new("dpkg").arg("-x").arg(file).arg(folder)).map(drop))
    };
    for package in &PACKAGES {
        unpack(package, folder)?;
    }
    let root = folder.join(FILE_SYSTEMS);
    for package in all().filter(|package| LIBRARIES.contains(package) || SHARED.contains(&package.0)) {
        unpack(package, &root)?;
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
        for (at, (package, version, sum)) in all().enumerate() {
            assert!(!version.is_empty() && sum.len() == 64, "{package}");
            assert!(sum.bytes().all(|byte| byte.is_ascii_hexdigit()), "{package}");
            let again = all().skip(at + 1).any(|(other, _, _)| other == package);
            assert!(!again, "{package} is listed twice");
        }
        for package in SHARED {
            assert!(PACKAGES.iter().any(|(known, _, _)| *known == package), "{package}");
        }
    }
}
