//! `cloudwit explain`: from the running process, else from the API server alone.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Subcommand, ValueEnum};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::api::server;
use crate::commands::explain_fallback;
use crate::serving::explain_pages::MARK;

/// The running process is on this machine; it answers at once or not at all.
const ANSWER: Duration = Duration::from_secs(5);

/// Exit code when there is no such object. (2 is a command line that makes no sense.)
const NO_SUCH_OBJECT: u8 = 3;

/// Exit code when no Cloudwit was reached and the answer is from the API server alone.
const NO_CLOUDWIT: u8 = 4;

/// What can be done beside running the controllers.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Explain the state of a Node, Service or volume and what Cloudwit waits for.
    ///
    /// Queries the Cloudwit at --admin-address: what the object waits for, since when, the provider's last answer, the time of the next try. Where
    /// none answers, the object itself is read from the API server, with its Events.
    #[command(
        after_help = "Exit codes:\n  0  a running Cloudwit has explained it\n  1  neither Cloudwit nor the API server was reached\n  \
                            2  the command line is invalid\n  3  there is no such object\n  \
                            4  no Cloudwit was reached; the answer is the API server's alone\n\n\
                            Examples:\n  cloudwit explain node node-7\n  cloudwit explain service default/web -o json\n  \
                            cloudwit explain pvc default/data\n  \
                            kubectl exec deploy/cloudwit -- cloudwit explain node node-7"
    )]
    Explain(ExplainArgs),

    /// Print or apply what a cluster needs to run Cloudwit: its Deployment, its rights, and the providers with their configuration and secrets.
    ///
    /// Takes the files of the provider from this machine, tries them here in the sandbox (the configuration is checked, no request leaves this
    /// machine), and puts them into ConfigMaps and a Secret in kube-system. All mistakes are reported at once; nothing is installed then. Run it again
    /// after a change: what the running process can follow needs no restart, the rest is rolled out.
    #[command(
        override_usage = "cloudwit install --config=FILE [OPTIONS] [-- FLAG...]\n       \
                          cloudwit install --cloud-provider=NAME --component=FILE [OPTIONS] [-- FLAG...]",
        after_help = "What is printed has the secrets in it. --existing-secret leaves them to whatever keeps your secrets.\n\n\
                      Examples:\n  cloudwit install --config=cloudwit.yaml | kubectl apply --server-side -f -\n  \
                      cloudwit install --config=cloudwit.yaml --apply --kubeconfig=admin.kubeconfig\n  \
                      cloudwit install --cloud-provider=sim --component=sim.wasm --cloud-config=sim.json \\\n           \
                      --provider-settings=settings.yaml --cluster-cidr=10.244.0.0/16 -- --v=2"
    )]
    Install(Box<crate::commands::install::command::InstallArgs>),

    /// Check a configuration file.
    #[command(subcommand)]
    Config(crate::commands::config::ConfigCommand),

    /// Inspect, check, call and record a provider's component.
    #[command(subcommand)]
    Provider(Box<crate::commands::provider::ProviderCommand>),

    /// Query a cloud through its provider: location of this machine, resolv.conf for Pods, clusters of the cloud; add an SSH key to its machines.
    ///
    /// For scripts and unit files: one call, one answer, and an exit code that separates permanent from temporary failures.
    #[command(subcommand)]
    Cloud(Box<crate::commands::cloud::CloudCommand>),

    /// Serve a provider's volumes as a CSI driver, without Kubernetes and without controllers.
    ///
    /// For csi-sanity, for trials, and for orchestrators that use the Container Storage Interface without Kubernetes. There is no leader election: let one
    /// process alone serve a cloud's volumes. In a cluster the controllers' own process serves them: see --csi-socket-dir.
    #[command(
        after_help = "Exit codes:\n  1    it cannot be loaded, has no volumes, or cannot listen\n  \
                            2    the command line is invalid\n  130  ended by Ctrl-C, 143 by SIGTERM\n\n\
                            Examples:\n  cloudwit csi sim.wasm --cloud-config=sim.json --settings=settings.yaml --endpoint=/tmp/csi.sock\n  \
                            cloudwit csi sim --config=cloudwit.yaml --endpoint=unix:///csi/csi.sock"
    )]
    Csi(Box<crate::commands::csi::CsiArgs>),

    /// Format, mount and grow volumes on this machine: the CSI node service of any cloud.
    ///
    /// Runs on each machine beside the kubelet, as root, and registers with it. It reads its machine's id and zone on the machine's Node, where the
    /// controllers' process writes it (csi.cloudwit.dev/node): no credentials of the cloud, no metadata service. A device is formatted only when its serial or WWN is
    /// the one that the cloud named and nothing is on it.
    #[command(after_help = "Needs blkid, e2fsprogs and xfsprogs.\n\n\
                            Exit codes:\n  0  stopped by a signal\n  1  it cannot listen, or a folder is missing\n  \
                            2  the command line is invalid\n\n\
                            Example:\n  cloudwit csi-node --driver-name=sim.csi.cloudwit.dev --node-name=node-7")]
    CsiNode(Box<crate::commands::csi_node::CsiNodeArgs>),

    /// The same as `provider inspect`.
    #[command(after_help = crate::commands::provider::INSPECT_HELP)]
    Inspect(crate::commands::provider::inspect::InspectArgs),

    /// Print the script that completes commands and flags in a shell.
    #[command(
        after_help = "Examples:\n  source <(cloudwit completion bash)\n  cloudwit completion zsh > \"${fpath[1]}/_cloudwit\"\n  \
                            cloudwit completion fish > ~/.config/fish/completions/cloudwit.fish"
    )]
    Completion(crate::commands::shell::CompletionArgs),

    /// Print the manual page, or write those of all commands.
    #[command(after_help = "Examples:\n  cloudwit man | man -l -\n  cloudwit man /usr/local/share/man/man1")]
    Man(crate::commands::shell::ManArgs),
}

/// Flags and arguments of `explain`.
#[derive(Debug, clap::Args)]
pub struct ExplainArgs {
    /// About what.
    #[command(subcommand)]
    pub object: Object,

    /// Where the running Cloudwit serves its admin pages.
    // A name of its own: values of global arguments are handed up to the controllers' flags, where one of another type has this name.
    #[arg(
        id = "explain_at",
        long = "admin-address",
        global = true,
        value_name = "IP:PORT",
        default_value = crate::flags::groups::serving::DEFAULT_ADMIN_ADDRESS
    )]
    pub admin_address: SocketAddr,

    /// Kubeconfig file, for when no Cloudwit answers; without it the service account of the Pod.
    #[arg(long, global = true, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Text, or JSON for programs.
    #[arg(long, short, global = true, value_enum, value_name = "FORMAT", default_value_t = Output::Text)]
    pub output: Output,
}

/// How an answer is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// Sentences.
    Text,
    /// One JSON object.
    Json,
}

/// The object of the query.
#[derive(Debug, Subcommand)]
pub enum Object {
    /// A Node.
    Node {
        /// Its name.
        #[arg(value_parser = name)]
        name: String,
    },
    /// A Service.
    Service {
        /// Its namespace and name.
        #[arg(value_name = "NAMESPACE/NAME", value_parser = namespaced)]
        name: String,
    },
    /// A PersistentVolume: what its CSI operations wait for, and the last failure.
    Pv {
        /// Its name.
        #[arg(value_parser = name)]
        name: String,
    },
    /// A PersistentVolumeClaim, with its volume or the one that is being made.
    Pvc {
        /// Its namespace and name.
        #[arg(value_name = "NAMESPACE/NAME", value_parser = namespaced)]
        name: String,
    },
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node { name } => write!(f, "Node {name}"),
            Self::Service { name } => write!(f, "Service {name}"),
            Self::Pv { name } => write!(f, "PersistentVolume {name}"),
            Self::Pvc { name } => write!(f, "PersistentVolumeClaim {name}"),
        }
    }
}

impl Object {
    fn page(&self) -> String {
        match self {
            Self::Node { name } => format!("/explain/node/{name}"),
            Self::Service { name } => format!("/explain/service/{name}"),
            Self::Pv { name } => format!("/explain/pv/{name}"),
            Self::Pvc { name } => format!("/explain/pvc/{name}"),
        }
    }
}

/// A name that Kubernetes can have given (RFC 1123 subdomain).
fn name(text: &str) -> Result<String, String> {
    let fits = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || matches!(letter, '-' | '.');
    if !text.is_empty() && text.chars().all(fits) {
        Ok(text.into())
    } else {
        Err("a name has lower-case letters, digits, '-' and '.', such as node-7".into())
    }
}

fn namespaced(text: &str) -> Result<String, String> {
    match text.split_once('/') {
        Some((namespace, service)) if name(namespace).is_ok() && name(service).is_ok() => Ok(text.into()),
        _ => Err("it has to be NAMESPACE/NAME, such as default/web".into()),
    }
}

/// Prints what is known.
pub async fn run(args: ExplainArgs) -> anyhow::Result<ExitCode> {
    let asked = tokio::time::timeout(ANSWER, get(args.admin_address, &args.object.page(), args.output)).await;
    let why = match asked.unwrap_or_else(|_| bail_slow()) {
        Ok((200, text)) => {
            print!("{text}");
            return Ok(ExitCode::SUCCESS);
        }
        Ok((404, text)) => {
            eprint!("{text}");
            return Ok(ExitCode::from(NO_SUCH_OBJECT));
        }
        Ok((_, text)) => text.trim_end().to_owned(),
        Err(error) => format!(
            "No running Cloudwit was reached at --admin-address={} ({error:#}): start it, or run this where it runs.",
            args.admin_address
        ),
    };
    eprintln!("{why}\nFrom the API server alone:");
    let client = server::connect(args.kubeconfig.as_deref()).await?;
    let Some(answer) = explain_fallback::ask(&client, &args.object).await? else {
        eprintln!("There is no {}.", args.object);
        return Ok(ExitCode::from(NO_SUCH_OBJECT));
    };
    match args.output {
        Output::Text => print!("{}", answer.text()),
        Output::Json => print!("{}", answer.json()?),
    }
    Ok(ExitCode::from(NO_CLOUDWIT))
}

fn bail_slow<T>() -> anyhow::Result<T> {
    bail!("no answer within {} s", ANSWER.as_secs())
}

/// One request over plain HTTP; status and body.
async fn get(address: SocketAddr, page: &str, output: Output) -> anyhow::Result<(u16, String)> {
    let accept = match output {
        Output::Text => "text/plain",
        Output::Json => "application/json",
    };
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET {page} HTTP/1.0\r\nHost: {address}\r\nAccept: {accept}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    parse(&answer).context("the server there is not Cloudwit")
}

fn parse(answer: &str) -> Option<(u16, String)> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.")?.split_whitespace().nth(1)?.parse().ok()?;
    // An admin page says of what kind it is; any other server's page is not printed as an explanation.
    let mark = format!("{}: {}", MARK.0, MARK.1);
    head.to_ascii_lowercase()
        .contains(&mark)
        .then(|| (status, body.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_is_accepted_only_when_it_is_an_explanation() {
        let ours = "HTTP/1.0 404 Not Found\r\nx-cloudwit: explain\r\n\r\nThere is no Node a.\n";
        assert_eq!(parse(ours), Some((404, "There is no Node a.\n".into())));
        assert_eq!(parse("HTTP/1.0 200 OK\r\nserver: other\r\n\r\nhello"), None);
        assert_eq!(parse("SSH-2.0-x"), None);
    }

    #[test]
    fn a_service_is_named_with_its_namespace() {
        assert!(namespaced("default/web").is_ok());
        for wrong in ["web", "/web", "default/", "a/b/c", "a/b c"] {
            assert!(namespaced(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn invalid_name_is_refused_before_any_request() {
        assert!(name("ip-10-0-0-1.eu-west-1.compute.internal").is_ok());
        for wrong in ["", "a b", "a\r\nHost: x", "../x", "Node"] {
            assert!(name(wrong).is_err(), "{wrong}");
        }
    }
}
