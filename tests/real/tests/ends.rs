//! However a cluster with real Nodes ends, the machine is as it was before.
//!
//! Ignored unless asked for (`cargo xtask test --all`): it needs root, and programs that take minutes to build.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use xtask::commands::real;
use xtask::kubernetes::node_parts::NodeParts;
use xtask::{guests, kubernetes, programs};

/// A machine has one sandbox at a time.
static ONE: Mutex<()> = Mutex::new(());

/// What is said when two machines run Pods.
const RUNNING: &str = "over the cloud's route";

/// How long the end may take, on a busy machine.
const END: Duration = Duration::from_secs(60);

/// What else a cluster runs.
const PROGRAMS: [&str; 4] = ["cloudwit", "cloudwit-sim-cloud", "cloudwit-real", "xtask"];

#[test]
#[ignore = "needs root, control groups of version 1 and a minute; run by `cargo xtask test --all`"]
fn interrupt_leaves_nothing_behind() -> Result<()> {
    nothing_is_left_after("INT", false, |status, output| {
        assert!(status.success(), "{status}");
        assert!(output.contains("the machine is as it was"), "{output}");
    })
}

#[test]
#[ignore = "needs root, control groups of version 1 and a minute; run by `cargo xtask test --all`"]
fn killed_starter_leaves_nothing_behind() -> Result<()> {
    nothing_is_left_after("KILL", false, |status, _| assert!(!status.success(), "{status}"))
}

#[test]
#[ignore = "needs root, control groups of version 1 and a minute; run by `cargo xtask test --all`"]
fn killed_command_leaves_nothing_behind() -> Result<()> {
    nothing_is_left_after("KILL", true, |status, output| {
        assert!(!status.success(), "{status}");
        assert!(output.contains("the machine is as it was"), "{output}");
    })
}

/// Starts a cluster, by `cargo xtask sandbox` or without it, sends what was started a signal while Pods run, and waits until all traces are gone.
fn nothing_is_left_after(signal: &str, by_xtask: bool, ended: impl Fn(ExitStatus, &str)) -> Result<()> {
    if let Err(why) = real::require() {
        eprintln!("left out: {why:#}");
        return Ok(());
    }
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let parts = NodeParts::get()?;
    let folder = programs::build(&PROGRAMS)?;
    let provider = guests::provider("sim")?;
    let program = folder.join("cloudwit-real");
    let before = traces(&program, parts.folder())?;
    let mut command;
    if by_xtask {
        command = Command::new(folder.join("xtask"));
        command.args(["sandbox", "--real"]);
        // It builds nothing then.
        command.env(programs::PREBUILT, &folder);
        command.env(
            guests::PREBUILT,
            provider.parent().context("the provider is in no folder")?,
        );
    } else {
        command = Command::new(&program);
        command.arg("run").arg("--provider").arg(provider);
        command.arg("--parts").arg(parts.folder());
        command.arg("--kubernetes").arg(kubernetes::binary()?);
    }
    let mut cluster = command.stdout(Stdio::piped()).spawn()?;
    let mut output = String::new();
    let mut lines = BufReader::new(cluster.stdout.take().context("standard output is piped")?).lines();
    loop {
        let line = lines.next().context("the cluster ended too early")??;
        output += &format!("{line}\n");
        if line.contains(RUNNING) {
            break;
        }
    }
    let during = traces(&program, parts.folder())?;
    assert!(during.iter().any(|trace| trace.starts_with("group ")), "{during:?}");
    send(signal, &cluster)?;
    let status = cluster.wait()?;
    // All processes that were started write to the same pipe, so this also waits for their end.
    for line in lines.map_while(|line| line.ok()) {
        output += &format!("{line}\n");
    }
    ended(status, &output);
    let started = Instant::now();
    loop {
        let after = traces(&program, parts.folder())?;
        if after == before {
            return Ok(());
        }
        assert!(
            started.elapsed() < END,
            "left after SIG{signal}: {:?}; gone: {:?}",
            after.difference(&before).collect::<Vec<_>>(),
            before.difference(&after).collect::<Vec<_>>()
        );
    }
}

fn send(signal: &str, process: &Child) -> Result<()> {
    let sent = Command::new("kill")
        .args([format!("-{signal}"), process.id().to_string()])
        .status();
    assert!(sent?.success());
    Ok(())
}

fn traces(program: &Path, parts: &Path) -> Result<BTreeSet<String>> {
    let done = Command::new(program).arg("traces").arg("--parts").arg(parts).output();
    let done = done?;
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let text = String::from_utf8(done.stdout)?;
    let lines: BTreeSet<String> = text.lines().map(str::to_owned).collect();
    assert!(lines.contains("link lo"), "{text}");
    Ok(lines)
}
