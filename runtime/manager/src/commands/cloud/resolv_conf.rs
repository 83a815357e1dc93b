//! `cloudwit cloud resolv-conf`: what Pods on this machine should resolve names with.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use cloudwit_model::DnsScrubber as _;

use crate::commands::cloud::out::OutArgs;
use crate::commands::cloud::resolver_file::{MAX_FILE, ResolverFile};
use crate::commands::cloud::session::{self, SessionArgs};

/// Where resolvers look.
const RESOLV_CONF: &str = "/etc/resolv.conf";

/// What systemd-resolved found where the former names itself alone; kubeadm takes it too.
const BEHIND_STUB: &str = "/run/systemd/resolve/resolv.conf";

/// Arguments of `cloud resolv-conf`.
#[derive(Debug, clap::Args)]
pub struct ResolvConfArgs {
    #[command(flatten)]
    session: SessionArgs,

    /// The file to start from. Without it /etc/resolv.conf, or /run/systemd/resolve/resolv.conf where the former names no server but this machine.
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,

    #[command(flatten)]
    out: OutArgs,
}

/// Calls, and writes the answer.
pub async fn run(args: ResolvConfArgs) -> anyhow::Result<ExitCode> {
    let mut file = match &args.from {
        Some(from) => read(from)?,
        None => found(Path::new(RESOLV_CONF), Path::new(BEHIND_STUB))?,
    };
    for left_out in &file.left_out {
        eprintln!("Warning: left out: {left_out}");
    }
    let session = match session::begin(&args.session, ("dns", |has| has.dns)).await? {
        Ok(session) => session,
        Err(ended) => return Ok(ended.exit()),
    };
    let asked = session.ask("scrubbing it", |_| session.provider.scrub_dns(&file.resolver));
    let scrubbed = match asked.await {
        Ok(scrubbed) => scrubbed,
        Err(ended) => return Ok(ended.exit()),
    };
    if scrubbed.nameservers.is_empty() && !file.resolver.nameservers.is_empty() {
        bail!("the provider leaves no name server; that is not written, since Pods would find nothing");
    }
    file.resolver = scrubbed;
    for unused in file.unused() {
        eprintln!("Warning: {unused}");
    }
    if file.is_loopback() {
        eprintln!("Warning: all name servers are this machine, which Pods do not reach; give --from=FILE");
    }
    args.out.put(&file.to_string())?;
    Ok(ExitCode::SUCCESS)
}

/// The usual file, or the other one where the usual names this machine alone.
fn found(usual: &Path, behind_stub: &Path) -> anyhow::Result<ResolverFile> {
    let file = read(usual)?;
    match file.is_loopback() && behind_stub.is_file() {
        true => read(behind_stub),
        false => Ok(file),
    }
}

fn read(path: &Path) -> anyhow::Result<ResolverFile> {
    let (shown, mut text) = (path.display().to_string(), String::new());
    let limit = u64::try_from(MAX_FILE).unwrap_or(u64::MAX);
    let mut file = File::open(path)
        .with_context(|| shown.clone())?
        .take(limit.saturating_add(1));
    file.read_to_string(&mut text).with_context(|| shown.clone())?;
    if text.len() > MAX_FILE {
        bail!("{shown}: it has more than {MAX_FILE} bytes, which no resolv.conf has");
    }
    Ok(ResolverFile::read(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_behind_stub_are_used_as_fallback() {
        let folder = tempfile::tempdir().unwrap();
        let (usual, behind) = (folder.path().join("usual"), folder.path().join("behind"));
        std::fs::write(&usual, "nameserver 127.0.0.53\n").unwrap();
        assert!(found(&usual, &behind).unwrap().is_loopback(), "there is no other");
        std::fs::write(&behind, "nameserver 10.0.0.2\n").unwrap();
        assert_eq!(found(&usual, &behind).unwrap().resolver.nameservers, ["10.0.0.2"]);
        std::fs::write(&usual, "nameserver 10.0.0.3\n").unwrap();
        assert_eq!(found(&usual, &behind).unwrap().resolver.nameservers, ["10.0.0.3"]);
    }

    #[test]
    fn file_that_is_none_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("large");
        assert!(read(&file).is_err());
        std::fs::write(&file, "#".repeat(MAX_FILE + 1)).unwrap();
        assert!(read(&file).unwrap_err().to_string().contains("more than"));
        std::fs::write(&file, [0xff]).unwrap();
        assert!(read(&file).is_err());
    }
}
