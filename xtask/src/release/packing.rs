//! Packed folders that are the same bytes whenever they are made: sorted, of one time and one owner.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::tools;

/// Packs the folder `name` in `parent` into the file, a `.tar.gz`.
///
/// # Errors
///
/// When `tar` or `gzip` fails.
pub fn pack(parent: &Path, name: &str, file: &Path) -> Result<()> {
    let plain = parent.join(format!("{name}.tar"));
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"])
        // Whatever the umask of who packs.
        .arg("--mode=u=rwX,go=rX")
        .arg("-cf")
        .arg(&plain)
        .arg("-C")
        .arg(parent)
        .arg(name);
    // Folders come in the order of their names, not of the machine's language.
    tools::output(tar.env("LC_ALL", "C"))?;
    compress(&plain, file)
}

/// Moves a file into another one, packed by gzip.
///
/// # Errors
///
/// When `gzip` fails.
pub fn compress(plain: &Path, file: &Path) -> Result<()> {
    // Without name and time.
    tools::output(Command::new("gzip").args(["-9", "--no-name", "--force"]).arg(plain))?;
    let mut packed = plain.as_os_str().to_owned();
    packed.push(".gz");
    fs::rename(packed, file).with_context(|| format!("moving what was packed to {}", file.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn same_content_is_the_same_file_and_programs_can_be_run() {
        let folder = std::env::temp_dir().join(format!("cloudwit-packing-{}", std::process::id()));
        let packed = |mode: u32| {
            let inside = folder.join("inside");
            fs::create_dir_all(&inside).unwrap();
            for (name, mode) in [("b", mode), ("a", 0o644)] {
                fs::write(inside.join(name), name).unwrap();
                fs::set_permissions(inside.join(name), fs::Permissions::from_mode(mode)).unwrap();
            }
            pack(&folder, "inside", &folder.join("x.tar.gz")).unwrap();
            let bytes = fs::read(folder.join("x.tar.gz")).unwrap();
            let listed = tools::output(Command::new("tar").arg("-tvzf").arg(folder.join("x.tar.gz"))).unwrap();
            fs::remove_dir_all(&folder).unwrap();
            (bytes, listed)
        };
        let (first, listed) = packed(0o755);
        let (second, _) = packed(0o700);
        assert!(first == second, "the same but for permissions of the group");
        let lines: Vec<&str> = listed.lines().collect();
        assert_eq!(lines.len(), 3, "{listed}");
        assert!(
            lines[1].starts_with("-rw-r--r-- 0/0") && lines[1].ends_with("inside/a"),
            "{listed}"
        );
        assert!(
            lines[2].starts_with("-rwxr-xr-x 0/0") && lines[2].ends_with("inside/b"),
            "{listed}"
        );
        assert!(lines.iter().all(|line| line.contains("1970-01-01")), "{listed}");
    }
}
