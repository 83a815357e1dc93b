//! `cloudwit csi-node`: what formats, mounts and grows volumes on the machine it runs on.

mod node;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::ValueEnum;
use cloudwit_csi_node::registration::{self, Registrar};
use cloudwit_csi_node::{EmptyCheck, NodeInfo, Options, Plugin};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::commands::csi::{driver_name, endpoint};
use crate::flags::groups::logging::LoggingArgs;
use crate::process::stop::StopSignals;
use crate::process::work_runtime::WorkRuntime;
use crate::providers::csi::LONGEST_PATH;

/// How long what is under way may take when the process is to stop: a file system that is being made is not left half made. The chart gives the Pod 15 minutes.
const LAST_WORK: Duration = Duration::from_secs(880);

/// Arguments of `csi-node`.
#[derive(Debug, clap::Args)]
pub struct CsiNodeArgs {
    /// Name of the driver: the controller's.
    #[arg(long, value_name = "NAME", value_parser = driver_name)]
    driver_name: String,

    /// Name of this machine's Node.
    #[arg(long, value_name = "NAME", env = "NODE_NAME", value_parser = node::name)]
    node_name: String,

    /// The kubelet's folder. Nothing is mounted, made or removed anywhere else; the kubelet has to find it at the same path.
    #[arg(long, value_name = "DIR", default_value = "/var/lib/kubelet")]
    kubelet_dir: PathBuf,

    /// The unix socket to listen on; without it plugins/NAME/csi.sock in the kubelet's folder.
    #[arg(long, value_name = "FILE", value_parser = endpoint)]
    endpoint: Option<PathBuf>,

    /// Where the kubelet looks for new plugins; without it plugins_registry in its folder.
    #[arg(long, value_name = "DIR")]
    registration_dir: Option<PathBuf>,

    /// Where the kernel describes devices.
    #[arg(long, value_name = "DIR", default_value = "/sys")]
    sysfs: PathBuf,

    /// Where devices are.
    #[arg(long, value_name = "DIR", default_value = "/dev")]
    dev: PathBuf,

    /// What a volume without a known signature has to be to be formatted: `zeros` at both ends, or anything at all (`signatures`), for disks whose unwritten blocks
    /// are not zeros.
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = Empty::Zeros)]
    empty_check: Empty,

    /// Kubeconfig file; without it the service account of the Pod. Read, for this Node alone: no secrets of a cloud.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Flags about logging.
    #[command(flatten)]
    pub logging: LoggingArgs,
}

/// What counts as empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Empty {
    /// No known signature, and zeros at both ends.
    Zeros,
    /// No known signature.
    Signatures,
}

impl CsiNodeArgs {
    fn endpoint(&self) -> PathBuf {
        let usual = || {
            self.kubelet_dir
                .join("plugins")
                .join(&self.driver_name)
                .join("csi.sock")
        };
        self.endpoint.clone().unwrap_or_else(usual)
    }

    fn registration_socket(&self) -> PathBuf {
        let usual = || self.kubelet_dir.join("plugins_registry");
        let folder = self.registration_dir.clone().unwrap_or_else(usual);
        registration::socket(&folder, &self.driver_name)
    }

    /// What is wrong with them together.
    fn check(&self) -> anyhow::Result<()> {
        let mistakes = self.logging.mistakes();
        if !mistakes.is_empty() {
            bail!("{}", mistakes.join("; "));
        }
        for socket in [self.endpoint(), self.registration_socket()] {
            let length = socket.as_os_str().len();
            if length > LONGEST_PATH {
                bail!(
                    "the socket {} has {length} bytes in its path, at most {LONGEST_PATH} are possible",
                    socket.display()
                );
            }
        }
        for folder in [&self.kubelet_dir, &self.sysfs, &self.dev] {
            if !folder.is_absolute() || !folder.is_dir() {
                bail!("{} is not a folder; give the absolute path of one", folder.display());
            }
        }
        Ok(())
    }

    fn options(&self) -> Options {
        Options {
            driver: self.driver_name.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            kubelet_dir: self.kubelet_dir.clone(),
            sysfs: self.sysfs.clone(),
            dev: self.dev.clone(),
            empty: match self.empty_check {
                Empty::Zeros => EmptyCheck::Zeros,
                Empty::Signatures => EmptyCheck::Signatures,
            },
        }
    }
}

/// Serves until it is stopped. What is under way then has a while to end, since a file system that is half made is not mounted by itself.
pub async fn run(args: CsiNodeArgs, work: WorkRuntime, mut stop: StopSignals) -> anyhow::Result<ExitCode> {
    args.check()?;
    let end = CancellationToken::new();
    let mut running = work.start(serve(args, end.clone()));
    tokio::select! {
        ended = running.join() => ended??,
        _ = stop.requested() => {
            end.cancel();
            running.ended().await??;
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn serve(args: CsiNodeArgs, end: CancellationToken) -> anyhow::Result<()> {
    let (endpoint, registration_socket) = (args.endpoint(), args.registration_socket());
    let (write, annotation) = watch::channel(cloudwit_csi_node::info::Annotation::default());
    let node = info(&args, annotation);
    let plugin = Plugin::new(args.options(), node.clone());
    let registrar = Registrar {
        driver: args.driver_name.clone(),
        endpoint: endpoint.clone(),
    };
    info!(driver = args.driver_name, node = args.node_name, endpoint = %endpoint.display(), "serving CSI node service");
    let ended = tokio::select! {
        ended = both(plugin.clone(), &endpoint, registrar, node, &registration_socket, &end) => ended,
        () = node::follow(args.kubeconfig.as_deref(), &args.node_name, &write) => bail!("the Node is not watched any more"),
    };
    // Longer than that the kubelet does not wait for the Pod either.
    let _ = tokio::time::timeout(LAST_WORK, plugin.idle()).await;
    ended
}

fn info(args: &CsiNodeArgs, annotation: watch::Receiver<cloudwit_csi_node::info::Annotation>) -> NodeInfo {
    NodeInfo::new(args.driver_name.clone(), annotation)
}

/// The plugin's socket and that of its registration, which comes after it and goes before it.
async fn both(
    plugin: Plugin,
    endpoint: &Path,
    registrar: Registrar,
    node: NodeInfo,
    registration_socket: &Path,
    end: &CancellationToken,
) -> anyhow::Result<()> {
    let served = async {
        let served = plugin.serve(endpoint, end.cancelled()).await;
        served.context("node service")
    };
    let registered = async {
        let registered = registration::run(registrar, node, registration_socket, end.cancelled()).await;
        registered.context("registration with the kubelet")
    };
    tokio::try_join!(served, registered).map(|_| ())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: CsiNodeArgs,
    }

    fn parse(flags: &[&str]) -> CsiNodeArgs {
        let line = ["csi-node", "--driver-name=a.test", "--node-name=n"]
            .iter()
            .chain(flags);
        Line::try_parse_from(line).unwrap().args
    }

    #[test]
    fn sockets_are_in_the_kubelets_folders() {
        let usual = parse(&[]);
        assert_eq!(usual.endpoint(), Path::new("/var/lib/kubelet/plugins/a.test/csi.sock"));
        let expected = Path::new("/var/lib/kubelet/plugins_registry/a.test@reg.sock");
        assert_eq!(usual.registration_socket(), expected);
        let other = parse(&[
            "--kubelet-dir=/data",
            "--endpoint=unix:///x.sock",
            "--registration-dir=/reg",
        ]);
        assert_eq!(other.endpoint(), Path::new("/x.sock"));
        assert_eq!(other.registration_socket(), Path::new("/reg/a.test@reg.sock"));
    }

    #[test]
    fn folders_have_to_be_there_and_paths_short() {
        assert!(parse(&["--kubelet-dir=/"]).check().is_ok());
        assert!(parse(&["--kubelet-dir=/none"]).check().is_err());
        assert!(parse(&["--kubelet-dir=/", "--sysfs=sys"]).check().is_err());
        let long = format!("--endpoint=/{}", "x".repeat(LONGEST_PATH));
        let refused = parse(&["--kubelet-dir=/", &long]).check().unwrap_err();
        assert!(refused.to_string().contains("108 bytes"), "{refused}");
        assert!(parse(&["--kubelet-dir=/", "--vmodule=a=1"]).check().is_err());
    }
}
