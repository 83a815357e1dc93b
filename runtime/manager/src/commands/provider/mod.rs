//! `cloudwit provider`: what an author does with a component before an operator gets it.
//!
//! ```text
//!   new          the project of a new provider, from the templates
//!   source       the component with the settings it shall have: from a file, or as a configuration installs it
//!   call         one function of the contract with its arguments (`commands::calls`), called in the sandbox
//!   replay       the calls of a recording (`commands::recordings`) again, with requests answered from it
//!   conformance  the promises of the contract, tried one by one
//!   registry     components in OCI registries: pinned, pushed, signed
//! ```

mod call;
mod check;
pub mod inspect;
mod new;
mod registry;
mod replay;
pub mod source;

use std::process::ExitCode;

use crate::commands::conformance;

/// What is done with a component.
#[derive(Debug, clap::Subcommand)]
pub enum ProviderCommand {
    /// Write the project of a new provider: it builds, its tests pass, and it looks machines up in a small REST API.
    ///
    /// You change the part that calls the cloud. Needs no network and no other file of Cloudwit's.
    #[command(after_help = NEW_HELP)]
    New(new::NewArgs),

    /// Describe a component: exports, settings and the grants it requests.
    ///
    /// Loads it in the sandbox with no grants and calls describe: nothing leaves this machine. A file that cannot be loaded is refused in the
    /// words of the start.
    #[command(after_help = INSPECT_HELP)]
    Inspect(inspect::InspectArgs),

    /// Check a component with its configuration and grants. No request leaves this machine.
    ///
    /// Reports all mistakes that the provider finds in its configuration, and missing grants, each as the line to add.
    #[command(
        after_help = "Exit codes:\n  0  no mistakes, no missing grants\n  1  mistakes or missing grants; all are reported\n  \
                            2  the command line is invalid\n\n\
                            Examples:\n  cloudwit provider check sim.wasm --cloud-config=sim.json --settings=settings.yaml\n  \
                            cloudwit provider check sim --config=cloudwit.yaml"
    )]
    Check(check::CheckArgs),

    /// Call one function of a provider in the sandbox, with its configuration and grants, against its cloud.
    ///
    /// Prints the answer, the requests with their times, and what the call took of time and memory. Secrets are never in it. Functions that change
    /// something do change it.
    #[command(
        after_help = "Exit codes:\n  0  it answered\n  1  it answered with a failure, or could not be called\n  \
                            2  the command line is invalid\n\n\
                            Examples:\n  cloudwit provider call sim.wasm instances.lookup --node=node-1 --settings=settings.yaml\n  \
                            kubectl get nodes -o json | cloudwit provider call sim instances.lookup --nodes=- --config=cloudwit.yaml\n  \
                            cloudwit provider call sim.wasm load-balancers.ensure --service=web.yaml --node=node-1 --wait \\\n           \
                            --settings=settings.yaml --record=ensure.json"
    )]
    Call(Box<call::CallArgs>),

    /// Make the calls of a recording again, answered from the recording, and show what is different.
    ///
    /// Needs no cloud and no secrets: each request is answered as it was when `provider call --record` made the file. Reports answers that changed,
    /// requests that are new or changed, and those that are not made any more.
    #[command(
        after_help = "Exit codes:\n  0  nothing is different\n  1  something is, or a file cannot be read\n  \
                            2  the command line is invalid\n\n\
                            Example:\n  cloudwit provider replay sim.wasm ensure.json"
    )]
    Replay(replay::ReplayArgs),

    /// Test the promises of the contract, one by one, on a component and a cloud that may be written to.
    ///
    /// Machines are looked up, a load balancer and a route are made and deleted, as far as the component exports these. The cloud has to be a stand-in, or a project of
    /// its own: what is made under the names of --service and --route is deleted. The provider is also tested against a cloud that fails.
    #[command(
        after_help = "Exit codes:\n  0  all promises hold\n  1  one is broken, or it could not be tested\n  \
                            2  the command line is invalid\n\n\
                            Example:\n  cloudwit provider conformance sim.wasm --stand-in=http://127.0.0.1:8080 \\\n           \
                            --cloud-config=sim.json --settings=settings.yaml --node=node-1 --node=node-2 --junit=report.xml"
    )]
    Conformance(Box<conformance::ConformanceArgs>),

    /// Resolve a tag in a registry and print the line of the configuration with the digest.
    ///
    /// The line goes into the configuration: `component: oci://...@sha256:...`. What the tag leads to later changes nothing then.
    #[command(after_help = registry::PIN_HELP)]
    Pin(registry::PinArgs),

    /// Push a component to a registry, as the artifact that `wkg` writes.
    ///
    /// Loads it in the sandbox first: what no Cloudwit could run is not pushed. The same component has the same digest each time.
    #[command(after_help = registry::PUSH_HELP)]
    Push(registry::PushArgs),

    /// Sign a component in its registry with a private key.
    ///
    /// Writes the bundle that `cosign verify --key` reads too. The public half goes into the configuration: `verify: {keys: [key.pub]}`.
    #[command(after_help = registry::SIGN_HELP)]
    Sign(registry::SignArgs),
}

/// Exit codes and examples of `provider new`.
const NEW_HELP: &str = "Exit codes:\n  0  the project is written\n  1  it is not: the name, the folder or --sdk is refused, or a file cannot be written\n  \
                        2  the command line is invalid\n\n\
                        Examples:\n  cloudwit provider new my-cloud --lang rust\n  \
                        cloudwit provider new my-cloud --lang go --out ~/src/my-cloud";

/// Exit codes and examples of `inspect`, under either of its names.
pub const INSPECT_HELP: &str = "Exit codes:\n  0  it is a provider that this Cloudwit can run\n  1  it is not, or a file cannot be read\n  \
                                2  the command line is invalid\n\n\
                                Examples:\n  cloudwit inspect sim.wasm\n  \
                                cloudwit provider inspect sim.wasm.zst --cloud-config=sim.json -o json";

/// Does it.
pub async fn run(command: ProviderCommand) -> anyhow::Result<ExitCode> {
    match command {
        ProviderCommand::New(args) => new::run(args),
        ProviderCommand::Inspect(args) => inspect::run(args).await,
        ProviderCommand::Check(args) => check::run(args).await,
        ProviderCommand::Call(args) => call::run(*args).await,
        ProviderCommand::Replay(args) => replay::run(args).await,
        ProviderCommand::Conformance(args) => conformance::run(*args).await,
        ProviderCommand::Pin(args) => registry::pin(args).await,
        ProviderCommand::Push(args) => registry::push(args).await,
        ProviderCommand::Sign(args) => registry::sign(args).await,
    }
}
