//! The sandbox that `cargo xtask sandbox` builds and starts: Cloudwit at work on a real API server and a cloud, simulated or by a third party.
//!
//! | module | what it is about |
//! | ------ | ---------------- |
//! | `stage` | starts the processes, and ends them |
//! | `story` | what happens, and how each step is checked |
//! | `clouds` | what the story needs of a cloud, and one file for each; those on a stand-in of ours are in `clouds/stand_ins` |
//! | `narrator` | one readable line for each step |

mod clouds;
mod narrator;
mod stage;
mod story;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Parser;
use xtask::cli::SandboxCloud;

use crate::clouds::Cloud;
use crate::clouds::aws::Aws;
use crate::clouds::openstack::OpenStack;
use crate::clouds::rackspace::Rackspace;
use crate::clouds::sim::Sim;
use crate::clouds::stand_ins::OnStandIn;
use crate::clouds::stand_ins::alibaba::Alibaba;
use crate::clouds::stand_ins::azure::Azure;
use crate::clouds::stand_ins::baidu::Baidu;
use crate::clouds::stand_ins::cloudstack::CloudStack;
use crate::clouds::stand_ins::gce::Gce;
use crate::clouds::stand_ins::mesos::Mesos;
use crate::clouds::stand_ins::ovirt::Ovirt;
use crate::clouds::stand_ins::photon::Photon;
use crate::clouds::stand_ins::rancher::Rancher;
use crate::clouds::vsphere::Vsphere;
use crate::narrator::Narrator;
use crate::stage::Stage;
use crate::story::Story;

/// Cloudwit at work; `cargo xtask sandbox --help` tells more.
#[derive(Debug, Parser)]
struct Args {
    /// The cloud, by the name of its provider.
    #[arg(long, value_enum, default_value_t)]
    cloud: SandboxCloud,

    /// The component of that provider.
    #[arg(long, value_name = "FILE")]
    provider: PathBuf,

    /// End after the last step instead of staying until Ctrl-C.
    #[arg(long)]
    once: bool,

    /// A cluster to use instead of starting an API server.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Where logs and files go.
    #[arg(long, value_name = "DIR")]
    folder: PathBuf,

    /// How many machines join.
    #[arg(long, default_value_t = 3)]
    nodes: u8,
}

/// Ctrl-C before the story was told.
#[derive(Debug)]
struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("interrupted before everything was checked")
    }
}

impl std::error::Error for Interrupted {}

#[tokio::main]
async fn main() -> ExitCode {
    let narrator = Narrator::new();
    match run(Args::parse(), &narrator).await {
        Ok(()) => {
            narrator.say("everything is torn down");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("\nsandbox: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: Args, narrator: &Narrator) -> Result<()> {
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        bail!("another TLS crypto provider is installed already");
    }
    match args.cloud {
        SandboxCloud::Sim => run_on::<Sim>(args, narrator).await,
        SandboxCloud::Alibaba => run_on::<OnStandIn<Alibaba>>(args, narrator).await,
        SandboxCloud::Aws => run_on::<Aws>(args, narrator).await,
        SandboxCloud::Azure => run_on::<OnStandIn<Azure>>(args, narrator).await,
        SandboxCloud::Baidu => run_on::<OnStandIn<Baidu>>(args, narrator).await,
        SandboxCloud::Cloudstack => run_on::<OnStandIn<CloudStack>>(args, narrator).await,
        SandboxCloud::Gce => run_on::<OnStandIn<Gce>>(args, narrator).await,
        SandboxCloud::Mesos => run_on::<OnStandIn<Mesos>>(args, narrator).await,
        SandboxCloud::Openstack => run_on::<OpenStack>(args, narrator).await,
        SandboxCloud::Ovirt => run_on::<OnStandIn<Ovirt>>(args, narrator).await,
        SandboxCloud::Photon => run_on::<OnStandIn<Photon>>(args, narrator).await,
        SandboxCloud::Rackspace => run_on::<Rackspace>(args, narrator).await,
        SandboxCloud::Rancher => run_on::<OnStandIn<Rancher>>(args, narrator).await,
        SandboxCloud::Vsphere => run_on::<Vsphere>(args, narrator).await,
    }
}

async fn run_on<C: Cloud>(args: Args, narrator: &Narrator) -> Result<()> {
    let stage = tokio::select! {
        stage = Stage::<C>::build(&args.folder, &args.provider, args.kubeconfig.as_deref(), narrator) => stage?,
        interrupted = ctrl_c() => return interrupted.and(Err(Interrupted.into())),
    };
    let story = Story::new(stage.client(), stage.cloud(), narrator, args.nodes);
    let told = play(&args, &stage, &story, narrator).await;
    if args.kubeconfig.is_some() {
        story.clean_up().await;
    }
    told
}

/// Tells the story; then stays until Ctrl-C, unless it is to be told `--once`.
async fn play<C: Cloud>(args: &Args, stage: &Stage<C>, story: &Story<'_, C>, narrator: &Narrator) -> Result<()> {
    // A process that has ended explains a failed step better than the step does, so both are watched.
    let told = tokio::select! {
        told = story.tell(args.once) => told,
        gone = stage.someone_ended() => Err(gone),
        interrupted = ctrl_c() => return interrupted.and(Err(Interrupted.into())),
    };
    if let Err(error) = told {
        bail!("{error:#}\n\n{}", stage.log_ends());
    }
    if args.once {
        narrator.say("all of it was checked");
        return Ok(());
    }
    stage.explain(narrator);
    tokio::select! {
        gone = stage.someone_ended() => bail!("{gone:#}\n\n{}", stage.log_ends()),
        interrupted = ctrl_c() => interrupted,
    }
}

async fn ctrl_c() -> Result<()> {
    tokio::signal::ctrl_c().await.context("cannot wait for Ctrl-C")
}
