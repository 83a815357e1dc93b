//! The command line of `cargo xtask`.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::commands::bench::work::BenchWork;
use crate::commands::{bench, check, clouds, fuzz, image, manifests, sandbox, soak, test};
use crate::kubernetes::controlplane::Kubernetes;
use crate::release;
use crate::release::machine::Machine;

/// The commands of this repository.
///
/// You need Rust with rustup, Go 1.26 for the API server of the tests, and Python 3.11 for the clouds by others. A missing tool is named, with the
/// way to get it.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", max_term_width = 120)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Watch Cloudwit work: a real API server, a cloud, Cloudwit with that cloud's provider, until Ctrl-C.
    ///
    /// The cloud is simulated unless --cloud names another: these are servers by others (moto, OpenStack's own services, VMware's vcsim), which
    /// are fetched and built first.
    ///
    /// Machines are made and their Nodes join as kubelet lets them join, a Service gets an address, routes appear, a machine is
    /// deleted and its Node goes. Each step is shown with its time. Then the cluster is yours, with kubectl. The output of each
    /// process goes to a file under target/sandbox. Everything is torn down at the end.
    ///
    /// The API server is built from tests/controlplane with Go. KUBEBUILDER_ASSETS=DIR takes the etcd and kube-apiserver in that
    /// folder instead, --kubeconfig a cluster that runs already.
    Sandbox(SandboxArgs),

    /// Run every check and test there is: format, clippy, guests, unit tests, the suite on a real API server, the sandbox
    /// on each cloud.
    ///
    /// All steps run, also after one has failed; a table at the end shows what happened. Anything left out is named in one line.
    Test(TestArgs),

    /// Measure Cloudwit beside upstream's controllers, and alone, and write the report into docs/reference/benchmarks.
    ///
    /// Upstream's controllers (k8s.io/cloud-provider, in Go) are linked with a thin provider for the same simulated cloud (tests/peer). Both sides do the
    /// same work with the same settings, in turn, each run on a fresh API server: Nodes that wait, Services, a Node that comes and goes behind
    /// Services, a cluster in which nothing happens, the start. A table shows medians, the least and the most, ratios, and whether the goals are
    /// met; failed runs are counted.
    ///
    /// Cloudwit is measured as it ships: the static binary of `cargo xtask image`; a release build where that one cannot be built, and the report says so.
    ///
    /// Takes about a quarter of an hour, and at the first time half an hour more to build everything; with --full a little over an hour, which can be run
    /// in parts (--only). It says first how long it will take. Nothing else should run on the machine meanwhile. What is not measured this time stays in
    /// the report if it was measured on the same machine with the same build.
    ///
    /// With --cloud=aws it compares with AWS's own controller instead, which does the same work on the same moto, and counts calls.
    ///
    /// Examples: `cargo xtask bench --only node-wave --pairs 5`, `cargo xtask bench --full --only steady,growth`, `cargo xtask bench --only sizes,component --results /tmp/mine`.
    Bench(BenchArgs),

    /// Disturb Cloudwit for an hour, and check its promises each second: 10,000 Nodes, 200 Services, two replicas, a hostile provider.
    ///
    /// The schedule has every fault once: a cloud that fails, throttles, hangs or lists nothing, slow DNS, an API server that is away, slow or drops
    /// watches, leaders that are stopped or killed, certificates and secrets that are replaced, swaps of components, few descriptors, a full cache. It is
    /// drawn from --seed and scales with --minutes. /livez, memory, descriptors and canaries are checked all the time, and in the end every Node,
    /// load balancer and route. docs/reference/soak.md says more.
    ///
    /// Everything listens on loopback. Slow DNS and the full cache need a mount namespace, so root; without it they are left out, with a line that says so.
    ///
    /// Exit code 0: all promises held. 1: one was broken, or something could not be built or started; the last line says which.
    ///
    /// Example of a quick look: `cargo xtask soak --minutes 3 --nodes 300 --services 20 --debug`.
    Soak(SoakArgs),

    /// Fuzz the parsers and checks at the boundary with cargo-fuzz (tests/fuzz): all targets in turn, or one.
    ///
    /// Needs a nightly toolchain and cargo-fuzz; without them one line says so. The same bodies run on a small corpus and random input in `cargo xtask test`.
    Fuzz(FuzzArgs),

    /// The quick checks before a commit: format, clippy, and each crate built alone, so that none lives on a neighbour's features.
    Check,

    /// Build the static binary for deploy/image and run it in an empty root. Prints its size, the time it takes to start, and its memory.
    ///
    /// Takes ten minutes the first time, in a target folder of its own (target/dist). Needs musl-gcc (package musl-tools), which is installed where that is
    /// possible.
    Image,

    /// Build everything that is published of this version into target/release-VERSION: static binaries, image, chart, manifests, components, bills of
    /// materials, checksums, notes. Nothing is uploaded.
    ///
    /// The version is the one in Cargo.toml; deploy/chart/Chart.yaml has to have it too, and CHANGELOG.md a section of that name, which becomes
    /// RELEASE_NOTES.md. There may be no changes that are not committed. With --draft the notes are those of `Unreleased`, and changes do not matter.
    ///
    /// The binary for x86_64 is that of `cargo xtask image`, the one for aarch64 is linked by Zig, which is fetched from PyPI into target/tools. Each takes ten
    /// minutes on two cores the first time. The same sources, compiler and tools give the same files; docs/reference/releases.md says what each is for.
    ///
    /// Examples: `cargo xtask release --draft --without aarch64` to try, `cargo xtask release` for the release.
    Release(ReleaseArgs),

    /// Render deploy/manifests from the Helm chart in deploy/chart. Builds Helm with Go the first time.
    Manifests,

    /// Write the table of clouds in README.md anew, from the built components and from what each provider's README states of its proof.
    Clouds,
}

/// Flags of `cargo xtask sandbox`.
#[derive(Debug, clap::Args)]
pub struct SandboxArgs {
    /// The cloud, by the name of its provider.
    #[arg(long, value_enum, default_value_t)]
    pub cloud: SandboxCloud,

    /// Check every step and end: exit code 0 when all of it worked.
    #[arg(long)]
    pub once: bool,

    /// Two machines with kubelet and containerd instead of Nodes on paper. Needs Linux, root and control groups of version 1; builds kubelet the first time
    /// (about ten minutes). Exit code 3: it cannot run here, and one line says why.
    #[arg(long, conflicts_with_all = ["kubeconfig", "nodes", "cloud"])]
    pub real: bool,

    /// With --real: Cloudwit from the image of `cargo xtask image`, as two Pods on those machines that `cloudwit install` makes, instead of a process
    /// beside them. Builds the image the first time (about ten minutes).
    #[arg(long, requires = "real")]
    pub pods: bool,

    /// Use this cluster instead of starting an API server. It gets Nodes and a Service of the sandbox, which are removed again.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Where logs and files go instead of target/sandbox. Two sandboxes at a time need a folder each.
    #[arg(long, value_name = "DIR", conflicts_with = "real")]
    pub folder: Option<PathBuf>,

    /// How many machines join.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(2..=100))]
    pub nodes: u8,
}

/// A cloud for the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum SandboxCloud {
    /// A simulated one, which needs nothing else.
    #[default]
    Sim,
    /// Alibaba Cloud, by a stand-in that its two SDKs judge.
    Alibaba,
    /// AWS, by moto.
    Aws,
    /// Azure, by a stand-in that Microsoft's own clients judge.
    Azure,
    /// Baidu AI Cloud, by a stand-in that Baidu's own SDK judges.
    Baidu,
    /// Apache CloudStack, by a stand-in that two clients of others judge.
    Cloudstack,
    /// Google Compute Engine, by a stand-in that Google's own client judges.
    Gce,
    /// Apache Mesos behind DC/OS, by a stand-in after their documents.
    Mesos,
    /// OpenStack, by its own services.
    Openstack,
    /// oVirt, by a stand-in that its own SDK judges.
    Ovirt,
    /// Photon Controller, by a stand-in after its API's model.
    Photon,
    /// Rackspace, by its own mimic.
    Rackspace,
    /// Rancher 1.x, by a stand-in that checks recorded schema documents and its own client reads.
    Rancher,
    /// vSphere, by VMware's vcsim.
    Vsphere,
}

impl SandboxCloud {
    /// The name of its provider.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sim => "sim",
            Self::Alibaba => "alibaba",
            Self::Aws => "aws",
            Self::Azure => "azure",
            Self::Baidu => "baidu",
            Self::Cloudstack => "cloudstack",
            Self::Gce => "gce",
            Self::Mesos => "mesos",
            Self::Openstack => "openstack",
            Self::Ovirt => "ovirt",
            Self::Photon => "photon",
            Self::Rackspace => "rackspace",
            Self::Rancher => "rancher",
            Self::Vsphere => "vsphere",
        }
    }
}

/// Flags of `cargo xtask test`.
#[derive(Debug, clap::Args)]
pub struct TestArgs {
    /// Build the provider with cargo-component too, and the static binary of the image. Installs cargo-component into target/tools first; both
    /// take many minutes.
    ///
    /// Runs the tests that take minutes as well: chaos, scale, ten thousand simulated days.
    #[arg(long)]
    pub all: bool,

    /// Only these tests, and what has to be built for them: a file of tests/suite, such as `services`, or a part of the tests' names.
    #[arg(long, value_name = "NAME")]
    pub only: Option<String>,

    /// On the API server of this version of Kubernetes. An older one is built first (five minutes).
    #[arg(long, value_enum, value_name = "VERSION", requires = "only")]
    pub kubernetes: Option<Kubernetes>,
}

/// Flags of `cargo xtask bench`.
#[derive(Debug, clap::Args)]
pub struct BenchArgs {
    /// Compare with the cloud's own controller, which is built with Go first (5 minutes).
    #[arg(long, value_enum)]
    pub cloud: Option<BenchCloud>,

    /// All sizes: 5,000 Nodes, five minutes of rest, clusters of 50,000 Nodes, and more runs of each.
    #[arg(long, conflicts_with = "cloud")]
    pub full: bool,

    /// Only these pieces of work, or sections of the report such as `node-wave-5000-0ms`, separated by commas.
    #[arg(
        long,
        value_parser = BenchWork::named,
        value_name = "NAME",
        value_delimiter = ',',
        conflicts_with = "cloud"
    )]
    pub only: Vec<String>,

    /// How often each side does each piece of work: 1 or 2 if left out, 1 to 5 in a full run, fewer the longer it takes.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=50))]
    pub pairs: Option<u8>,

    /// Where the report goes, instead of docs/reference/benchmarks.
    #[arg(long, value_name = "DIR")]
    pub results: Option<PathBuf>,

    /// How many Nodes wait to be initialised, in a comparison on a cloud.
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u16).range(1..=5000), requires = "cloud")]
    pub nodes: u16,

    /// How many Services want a load balancer, in a comparison on a cloud.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=100), requires = "cloud")]
    pub services: u16,
}

/// Flags of `cargo xtask soak`.
#[derive(Debug, clap::Args)]
pub struct SoakArgs {
    /// For how long faults come and go.
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=10_080))]
    pub minutes: u32,

    /// How many Nodes there are.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(50..=50_000))]
    pub nodes: u32,

    /// How many Services want a load balancer.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(5..=5_000))]
    pub services: u32,

    /// Start of the schedule's random numbers.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Only these faults, separated by commas, such as `leader-stopped,cloud-hangs`.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub only: Vec<String>,

    /// Use debug builds, which are quicker to build and need more memory and CPU time.
    #[arg(long)]
    pub debug: bool,

    /// Write the figures into docs/reference/soak.md.
    #[arg(long)]
    pub write: bool,
}

/// Flags of `cargo xtask release`.
#[derive(Debug, clap::Args)]
pub struct ReleaseArgs {
    /// Try it: take the notes of what is not released yet, and whatever is in the work tree.
    #[arg(long)]
    pub draft: bool,

    /// Leave out the binary for this machine, also from the image.
    #[arg(long, value_enum, value_name = "MACHINE", value_delimiter = ',')]
    pub without: Vec<Machine>,
}

/// Flags of `cargo xtask fuzz`.
#[derive(Debug, clap::Args)]
pub struct FuzzArgs {
    /// For how long each target runs.
    #[arg(long, value_name = "N", default_value_t = 60)]
    pub seconds: u32,

    /// Only this target, as listed in tests/fuzz/README.md.
    #[arg(value_name = "TARGET")]
    pub target: Option<String>,
}

/// A cloud whose own controller can be run here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum BenchCloud {
    /// AWS, by moto.
    Aws,
}

/// Does what the command line says.
///
/// # Errors
///
/// When a step fails or a tool is missing; one line says which.
pub fn run(cli: Cli) -> Result<()> {
    match cli.command {
        Command::Sandbox(args) => sandbox::run(&args),
        Command::Test(args) => test::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Soak(args) => soak::run(&args),
        Command::Fuzz(args) => fuzz::run(&args),
        Command::Check => check::run(),
        Command::Image => image::run(),
        Command::Release(args) => release::run(&args),
        Command::Manifests => manifests::run(),
        Command::Clouds => clouds::run(),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
