//! `cloudwit cloud`: single calls of a provider, on a machine or from anywhere, without controllers.
//!
//! ```text
//!   session       the provider, loaded; a call retried while the cloud is unavailable; progress, exit codes
//!   location      location of this machine, for its kubelet; plain says which texts a shell and systemd take as they are
//!   resolv_conf   what Pods on this machine should resolve names with; resolver_file reads and writes the file
//!   clusters      the clusters that the cloud itself manages
//!   ssh_key       a key for all machines, once
//!   out           the answer, on standard output or in a file
//! ```

mod clusters;
mod location;
mod out;
mod plain;
mod resolv_conf;
mod resolver_file;
pub mod session;
mod ssh_key;

use std::process::ExitCode;

/// Exit codes of all of them.
const EXIT_CODES: &str = "Exit codes:\n  0  done\n  1  refused, or answered with a failure that stays\n  2  the command line is invalid\n  \
                          3  no answer yet; a later call may succeed (--wait was not long enough)\n  \
                          4  the provider does not export the interface";

/// The call.
#[derive(Debug, clap::Subcommand)]
pub enum CloudCommand {
    /// Print the location of this machine in its cloud for its kubelet: the Node's name, provider id, zone and region.
    ///
    /// Runs on the machine, before its kubelet, and reads the cloud's metadata service through the provider. It needs no credentials: only a grant for that
    /// service's address, with allowLinkLocal: true. Without the grant the line to add is printed.
    #[command(after_help = location_help())]
    Location(location::LocationArgs),

    /// Print the resolv.conf that Pods on this machine should use, for the kubelet's --resolv-conf.
    ///
    /// Reads the machine's own and removes what the provider lists as of no use to Pods: clouds hand out search domains that find no Service and cost
    /// each look-up a request.
    #[command(after_help = resolv_conf_help())]
    ResolvConf(resolv_conf::ResolvConfArgs),

    /// Print the clusters that the cloud itself manages, such as those of its managed Kubernetes, and where their control planes are.
    #[command(after_help = clusters_help())]
    Clusters(clusters::ClustersArgs),

    /// Manage SSH keys of a user on all machines.
    #[command(subcommand)]
    SshKey(SshKeyCommand),
}

/// What is done with a key.
#[derive(Debug, clap::Subcommand)]
pub enum SshKeyCommand {
    /// Add a public key to all machines, once. Existing keys stay.
    ///
    /// The controllers do the same periodically with --ssh-user and --ssh-keyfile.
    #[command(after_help = ssh_key_help())]
    Add(ssh_key::AddArgs),
}

fn location_help() -> String {
    format!(
        "{EXIT_CODES}\n\nExamples:\n  cloudwit cloud location gce.wasm.zst --settings=metadata.yaml\n  \
         cloudwit cloud location aws.wasm.zst --settings=metadata.yaml -o environment --out=/run/cloudwit/location\n  \
         cloudwit cloud location sim.wasm --cloud-config=sim.json --settings=settings.yaml --hostname=node-7 -o json\n\n\
         metadata.yaml:\n  grants:\n    http:\n      - {{scheme: http, host: 169.254.169.254, methods: [GET, PUT], allowLinkLocal: true}}"
    )
}

fn resolv_conf_help() -> String {
    format!(
        "{EXIT_CODES}\n\nExamples:\n  cloudwit cloud resolv-conf gce.wasm.zst\n  \
         cloudwit cloud resolv-conf gce.wasm.zst --out=/run/cloudwit/resolv.conf && kubelet --resolv-conf=/run/cloudwit/resolv.conf"
    )
}

fn clusters_help() -> String {
    format!("{EXIT_CODES}\n\nExample:\n  cloudwit cloud clusters gce --config=cloudwit.yaml -o json")
}

fn ssh_key_help() -> String {
    format!(
        "{EXIT_CODES}\n\nExample:\n  cloudwit cloud ssh-key add gce --config=cloudwit.yaml --user=core --keyfile=~/.ssh/id_ed25519.pub"
    )
}

/// Runs it.
pub async fn run(command: CloudCommand) -> anyhow::Result<ExitCode> {
    match command {
        CloudCommand::Location(args) => location::run(args).await,
        CloudCommand::ResolvConf(args) => resolv_conf::run(args).await,
        CloudCommand::Clusters(args) => clusters::run(args).await,
        CloudCommand::SshKey(SshKeyCommand::Add(args)) => ssh_key::run(args).await,
    }
}
