//! The run: everything is started, has to settle, goes through the schedule, has to settle again, and is taken away.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use cloudwit_sim_cloud::{SimCloud, SimCloudOptions};
use cloudwit_test_support::{ApiServer, within};
use tokio::task::JoinSet;

use crate::Args;
use crate::canary::Needles;
use crate::cluster::Cluster;
use crate::faults::Stage;
use crate::faults::api_proxy::ApiProxy;
use crate::faults::dns::{self, NameServer};
use crate::faults::namespace;
use crate::faults::schedule::{Disturbance, GUESTS, Turn, length, schedule};
use crate::files::Files;
use crate::findings::{Findings, Promise};
use crate::replica::{Replica, Start};
use crate::report::{Report, Went, growth};
use crate::watch::{Samples, Watch};

/// How long everything may take to settle before the first fault.
const SETTLE: Duration = Duration::from_secs(1800);

/// How long it may take after the last fault: twice the longest pause of a Service that failed (300 s).
const CONVERGE: Duration = Duration::from_secs(600);

/// Most resident memory at any time: a part for the process, and one for each Node.
const MEMORY: u64 = 192 << 20;
const MEMORY_A_NODE: u64 = 24 << 10;

/// A machine, a Node, a Service come and go so often.
const CHURN: Duration = Duration::from_secs(15);

/// Starts of a replica before the first fault after which it is given up.
const STARTS: u32 = 3;

/// Pause between two looks at whether all has converged.
const LOOK: Duration = Duration::from_secs(2);

/// So often it is said what has not converged yet.
const TOLD: Duration = Duration::from_secs(30);

/// Most sentences about what has not converged.
const SHOWN: usize = 5;

/// Runs it. Whether all promises held.
///
/// # Errors
///
/// When something cannot be started, or the cluster does not settle before the first fault.
#[tokio::main]
pub async fn run(args: &Args) -> Result<bool> {
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        bail!("another TLS crypto provider is installed already");
    }
    tokio::select! {
        held = all(args) => held,
        interrupted = tokio::signal::ctrl_c() => {
            interrupted.context("cannot wait for Ctrl-C")?;
            bail!("interrupted")
        }
    }
}

async fn all(args: &Args) -> Result<bool> {
    let started = Instant::now();
    let say = |line: &str| println!("{:>7.1} s  {line}", started.elapsed().as_secs_f64());
    let findings = Findings::new();
    let (stage, left_out) = build(args, &say).await?;
    let stage = Arc::new(stage);
    let watch = Watch {
        findings: findings.clone(),
        needles: Arc::clone(&stage.needles),
        memory: MEMORY + MEMORY_A_NODE * args.nodes as u64,
        calm: Arc::new(AtomicBool::new(false)),
        may_end: Arc::default(),
    };
    findings.turn("start");
    let samples: [Samples; 2] = Default::default();
    let mut tasks = JoinSet::new();
    for (replica, samples) in stage.replicas.iter().zip(&samples) {
        tasks.spawn(watch.clone().replica(Arc::clone(replica), Arc::clone(samples)));
    }
    tasks.spawn(watch.clone().events(stage.cluster.clone()));
    tasks.spawn(watch.clone().deletions(stage.cluster.clone()));

    say(&format!("{} Nodes and {} Services are made", args.nodes, args.services));
    stage.cluster.populate(args.nodes, args.services).await?;
    let settled = tokio::select! {
        settled = settle(&stage, SETTLE, &say) => settled,
        number = cannot_start(&stage) => bail!("replica {number} ends again and again; the end of its log is above"),
    };
    settled.map_err(|wrong| anyhow::anyhow!("not settled before the first fault: {}", wrong_text(&wrong)))?;
    say("all of it is initialised, balanced and routed; faults begin");
    watch.calm.store(true, Ordering::Relaxed);

    let possible = possible(&stage, &args.only);
    let built = |name: &&str| args.guests.join(name).with_extension("wasm").is_file();
    let guests: Vec<&str> = GUESTS.into_iter().filter(built).collect();
    let turns = schedule(
        Duration::from_secs(60 * u64::from(args.minutes)),
        args.seed,
        &possible,
        &guests,
    );
    say(&format!(
        "{} faults in {} s, seed {}",
        turns.len(),
        length(&turns).as_secs(),
        args.seed
    ));
    let churn = tokio::spawn(churn(stage.cluster.clone()));
    let mut went = Vec::new();
    for (number, turn) in turns.iter().enumerate() {
        let name = turn.disturbance.name();
        findings.turn(name);
        say(&format!(
            "{:>3} of {}  {name}, hostile: {}",
            number + 1,
            turns.len(),
            turn.guest
        ));
        went.push(take(&stage, &watch, turn).await?);
    }
    churn.abort();
    drop(churn.await);
    findings.turn("end");
    let ended = Instant::now();
    let converged = settle(&stage, CONVERGE, &say).await;
    let converged = match converged {
        Ok(()) => Some(ended.elapsed()),
        Err(wrong) => {
            for (promise, sentences) in wrong.into_iter().filter(|(_, sentences)| !sentences.is_empty()) {
                findings.add(
                    promise,
                    &format!(
                        "{}, such as {}",
                        sentences.len(),
                        sentences[..sentences.len().min(SHOWN)].join("; ")
                    ),
                );
            }
            None
        }
    };
    say("now everything is compared, and all Services go");
    for name in stage.cluster.lost_nodes().await? {
        findings.add(Promise::HealthyNodes, &format!("{name} is missing in the end"));
    }
    stage.cluster.unexpose(true).await?;
    let empty = within(CONVERGE, || async {
        stage
            .cluster
            .wrong_balancers()
            .await
            .is_ok_and(|wrong| wrong.is_empty())
    })
    .await;
    if empty.is_err() {
        let wrong = stage.cluster.wrong_balancers().await?;
        findings.add(
            Promise::Balancers,
            &format!(
                "after all Services went: {}",
                wrong[..wrong.len().min(SHOWN)].join("; ")
            ),
        );
    }
    tasks.shutdown().await;
    let samples = samples.map(|samples| samples.lock().unwrap_or_else(PoisonError::into_inner).clone());
    for (number, samples) in samples.iter().enumerate() {
        for (promise, detail) in growth(samples) {
            findings.add(promise, &format!("replica {number}: {detail}"));
        }
    }
    let report = Report {
        conditions: conditions(args, &turns),
        turns: went,
        left_out,
        broken: findings.all(),
        starts: stage.replicas.each_ref().map(|replica| replica.state().starts),
        samples,
        converged,
    };
    println!("\n{}", report.table());
    if let Some(page) = &args.write {
        report.write(page)?;
    }
    Ok(report.held())
}

/// Returns when a replica was started too often before anything was disturbed.
async fn cannot_start(stage: &Stage) -> usize {
    loop {
        let failing = stage.replicas.iter().find(|replica| replica.state().starts > STARTS);
        if let Some(replica) = failing {
            return replica.number;
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Starts everything; gives what has to be left out too.
async fn build(args: &Args, say: &impl Fn(&str)) -> Result<(Stage, Vec<String>)> {
    let folder = xtask::workspace::target().join("soak");
    let needles = Arc::new(Needles::new());
    let files = Files::new(&folder, &args.provider, &args.guests, &needles)?;
    let mut left_out = Vec::new();
    let volume = match namespace::inside().then(|| namespace::mount_volume(&files.path("volume"))) {
        Some(Ok(())) => Some(files.path("volume")),
        Some(Err(error)) => {
            left_out.push(format!("{}: {error:#}", Disturbance::CacheFull.name()));
            None
        }
        None => {
            left_out.push(format!(
                "{}: `unshare --mount` is not allowed here",
                Disturbance::CacheFull.name()
            ));
            None
        }
    };
    let dns = match name_server(&files).await {
        Ok(dns) => Some(dns),
        Err(error) => {
            left_out.push(format!("{}: {error:#}", Disturbance::SlowDns.name()));
            None
        }
    };
    for what in &left_out {
        say(&format!("left out: {what}"));
    }
    let server = ApiServer::start_in(files.path("api-server"), files.path("api-server.log")).await?;
    say("the API server is ready");
    let options = SimCloudOptions {
        token: files.token(),
        balancer_build_time: Duration::from_secs(2),
        seed: args.seed,
        ..SimCloudOptions::default()
    };
    let cloud = Arc::new(SimCloud::start(options).await.context("starting the cloud")?);
    let name = if dns.is_some() { dns::NAME } else { "127.0.0.1" };
    files.configure(name, cloud.address().port())?;
    let proxy = ApiProxy::start(server.client()).await?;
    let start = Start {
        program: args.cloudwit.clone(),
        kubeconfig: files.kubeconfig(&proxy.url())?,
        cache: volume.clone().unwrap_or_else(|| files.path("cache")),
    };
    let replicas = [
        Arc::new(Replica::start(0, &start, &files)?),
        Arc::new(Replica::start(1, &start, &files)?),
    ];
    let cluster = Cluster::new(server.client(), Arc::clone(&cloud));
    say(&format!("two replicas run; logs are in {}", folder.display()));
    let stage = Stage {
        server,
        proxy,
        cloud,
        dns,
        files,
        needles,
        cluster,
        volume,
        replicas,
    };
    Ok((stage, left_out))
}

async fn name_server(files: &Files) -> Result<NameServer> {
    if !namespace::inside() {
        bail!("`unshare --mount` is not allowed here");
    }
    let server = NameServer::start().await?;
    namespace::use_name_server(&files.path("resolv.conf"))?;
    Ok(server)
}

/// The faults that can be made here.
fn possible(stage: &Stage, only: &[Disturbance]) -> Vec<Disturbance> {
    let can = |one: &Disturbance| match one {
        Disturbance::SlowDns => stage.dns.is_some(),
        Disturbance::CacheFull => stage.volume.is_some(),
        _ => true,
    };
    let chosen = |one: &Disturbance| only.is_empty() || only.contains(one);
    Disturbance::ALL.into_iter().filter(can).filter(chosen).collect()
}

/// One turn: the fault with the hostile provider at its worst, then calm.
async fn take(stage: &Stage, watch: &Watch, turn: &Turn) -> Result<Went> {
    watch.calm.store(false, Ordering::Relaxed);
    watch
        .may_end
        .store(turn.disturbance.may_end_replicas(), Ordering::Relaxed);
    stage.files.misbehave(turn.guest)?;
    if let Err(error) = stage.disturb(turn.disturbance, turn.lasts).await {
        watch.findings.add(Promise::Effects, &format!("{error:#}"));
    }
    stage.files.behave()?;
    let calm = tokio::time::sleep(turn.calm);
    let ended = Instant::now();
    let name = stage.cluster.join().await?;
    let recovered = within(turn.calm, || stage.cluster.is_initialised(&name)).await;
    let recovered = recovered.ok().map(|()| ended.elapsed());
    // What it takes to recover is no rest.
    watch.calm.store(recovered.is_some(), Ordering::Relaxed);
    calm.await;
    watch.may_end.store(false, Ordering::Relaxed);
    Ok(Went { turn: *turn, recovered })
}

/// Machines, Nodes and Services come and go all the time.
async fn churn(cluster: Cluster) {
    loop {
        tokio::time::sleep(CHURN).await;
        // What the API server does not take for minutes is tried again in the next round.
        let _ = cluster.join().await;
        let _ = cluster.lose_machine().await;
        let _ = cluster.expose().await;
        let _ = cluster.unexpose(false).await;
    }
}

/// What is wrong, by promise.
type Wrong = Vec<(Promise, Vec<String>)>;

/// Waits until nothing is wrong any more; says now and then what is.
async fn settle(stage: &Stage, limit: Duration, say: &impl Fn(&str)) -> Result<(), Wrong> {
    let end = Instant::now() + limit;
    let mut told = Instant::now();
    loop {
        let failed = |error: anyhow::Error| vec![format!("{error:#}")];
        let wrong: Wrong = vec![
            (Promise::Nodes, stage.cluster.wrong_nodes().await.unwrap_or_else(failed)),
            (
                Promise::Balancers,
                stage.cluster.wrong_balancers().await.unwrap_or_else(failed),
            ),
            (Promise::Routes, stage.cluster.wrong_routes()),
        ];
        if wrong.iter().all(|(_, sentences)| sentences.is_empty()) {
            return Ok(());
        }
        if Instant::now() > end {
            return Err(wrong);
        }
        if told.elapsed() > TOLD {
            told = Instant::now();
            say(&format!("not yet: {}", wrong_text(&wrong)));
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn wrong_text(wrong: &Wrong) -> String {
    let all: Vec<String> = wrong
        .iter()
        .flat_map(|(_, sentences)| sentences.iter().cloned())
        .collect();
    format!(
        "{} sentences, such as {}",
        all.len(),
        all[..all.len().min(SHOWN)].join("; ")
    )
}

fn conditions(args: &Args, turns: &[Turn]) -> String {
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    let build = args
        .cloudwit
        .parent()
        .and_then(|folder| folder.file_name())
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let memory = (MEMORY + MEMORY_A_NODE * args.nodes as u64) >> 20;
    format!(
        "{} Nodes, {} Services, {} faults in {} minutes, seed {}; {build} build on {cpus} cores, which API server, cloud and soak share. Bounds: memory {memory} MiB \
         at any time, at rest at the end 1.25 times and 16 MiB more than in the first half at most; descriptors {} at any time, 32 more at rest at most.",
        args.nodes,
        args.services,
        turns.len(),
        length(turns).as_secs() / 60,
        args.seed,
        crate::watch::DESCRIPTORS,
    )
}
