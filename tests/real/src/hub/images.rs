//! Images of one static program, as containerd imports them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use xtask::kubernetes::oci::OciImage;

/// Makes the image `localhost/NAME:sandbox` of this program, as `deploy/image/Containerfile` does for Cloudwit. Gives a tar archive.
///
/// # Errors
///
/// When a file cannot be read or written.
pub fn archive(name: &str, program: &Path, folder: &Path) -> Result<PathBuf> {
    let work = folder.join("image");
    let place = work.join("root/usr/local/bin");
    fs::create_dir_all(&place).with_context(|| format!("making {}", place.display()))?;
    fs::copy(program, place.join(name)).with_context(|| format!("copying {}", program.display()))?;
    let file = folder.join(format!("{name}-image.tar"));
    let image = OciImage {
        name: &format!("localhost/{name}:{TAG}"),
        entrypoint: &[&format!("/usr/local/bin/{name}")],
        path: "/usr/local/bin",
        user: "65532:65532",
    };
    image.archive(&work.join("root"), &work, &file)?;
    fs::remove_dir_all(&work).with_context(|| format!("removing {}", work.display()))?;
    Ok(file)
}

/// The tag of all images.
pub const TAG: &str = "sandbox";
