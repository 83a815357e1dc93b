//! From the command line to a subcommand or the running process, and to the exit code.

use std::process::ExitCode;

use crate::commands::{self, explain};
use crate::flags::groups::logging::LogFormat;
use crate::flags::{self, command_line};
use crate::process::stop::StopSignals;
use crate::process::work_runtime::WorkRuntime;
use crate::process::{file_limit, work_runtime};
use crate::telemetry::logs;
use crate::telemetry::trace_export::Traces;
use crate::{election, run};

/// The whole program, from its command line to its exit code.
pub fn start() -> ExitCode {
    if let Some(code) = cloudwit_host::compile_for_parent(std::env::args()) {
        return code;
    }
    // Before there are threads, which would go by the old limit.
    let files = file_limit::raise();
    let (control, work) = match work_runtime::control().and_then(|control| Ok((control, work_runtime::work()?))) {
        Ok(runtimes) => runtimes,
        Err(error) => {
            eprintln!("cloudwit: no threads to work with: {error}");
            return ExitCode::FAILURE;
        }
    };
    let code = control.block_on(cloudwit(WorkRuntime::new(work.handle().clone()), files));
    // A process that lost the lead ends now: a name look-up, a hanging file or a compilation on another thread must not hold it up.
    work.shutdown_background();
    control.shutdown_background();
    code
}

async fn cloudwit(work: WorkRuntime, files: std::io::Result<file_limit::Raised>) -> ExitCode {
    // Before anything else: a signal that comes earlier is lost to the first process of a container.
    let mut stop = match StopSignals::install() {
        Ok(stop) => stop,
        Err(error) => {
            eprintln!("cloudwit: cannot wait for SIGTERM: {error}");
            return ExitCode::FAILURE;
        }
    };
    let command_line::Parsed { args, matches } = match command_line::parse(std::env::args()) {
        Ok(parsed) => parsed,
        Err(ended) => ended.exit(),
    };
    if let Ok(Some(text)) = args.version.text() {
        print!("{text}");
        return ExitCode::SUCCESS;
    }
    match args.command {
        // Runs for as long as the machine does, with a log.
        Some(explain::Command::CsiNode(args)) => {
            let as_lines = args.logging.logging_format == LogFormat::Json;
            logs::init(&args.logging, None);
            told(commands::csi_node::run(*args, work, stop).await, as_lines)
        }
        // No log: its answer is all its output.
        Some(command) => {
            let running = work.start(run_command(command));
            tokio::select! {
                ended = running.ended() => told(ended.flatten(), false),
                signal = stop.requested() => ExitCode::from(KILLED_BY + signal),
            }
        }
        None => {
            let as_lines = args.logging.logging_format == LogFormat::Json;
            let ended = controllers(args, &matches, files, work, stop).await;
            told(ended.map(|()| ExitCode::SUCCESS), as_lines)
        }
    }
}

/// What shells add to the number of the signal that ended a program.
const KILLED_BY: u8 = 128;

async fn run_command(command: explain::Command) -> anyhow::Result<ExitCode> {
    match command {
        explain::Command::Explain(args) => explain::run(args).await,
        explain::Command::Install(args) => commands::install::command::run(*args).await,
        explain::Command::Config(command) => commands::config::run(&command),
        explain::Command::Provider(command) => commands::provider::run(*command).await,
        explain::Command::Cloud(command) => commands::cloud::run(*command).await,
        explain::Command::Csi(args) => commands::csi::run(*args).await,
        explain::Command::Inspect(args) => commands::provider::inspect::run(args).await,
        explain::Command::Completion(args) => commands::shell::completion(&args),
        explain::Command::Man(args) => commands::shell::man(&args),
        // It needs the signals, and has them from `cloudwit`.
        explain::Command::CsiNode(_) => Ok(ExitCode::FAILURE),
    }
}

async fn controllers(
    args: flags::args::Args,
    matches: &clap::ArgMatches,
    files: std::io::Result<file_limit::Raised>,
    work: WorkRuntime,
    mut stop: StopSignals,
) -> anyhow::Result<()> {
    let identity = election::clock::identity();
    // It reads a file. A bad flag of the exporter is reported by the checks of `run`, with all others.
    let (tracing, name) = (args.tracing.clone(), identity.clone());
    let traces = work.handle().spawn_blocking(move || Traces::of(&tracing, &name));
    let traces = tokio::select! {
        traces = tokio::time::timeout(cloudwit_host::bounded_work::FILE_LIMIT, traces) => traces,
        _ = stop.requested() => return Ok(()),
    };
    let traces = traces.unwrap_or_else(|_| Ok(Err(anyhow::anyhow!("--tracing-ca-file: cannot be read in time"))))?;
    let verbosity = logs::init(&args.logging, traces.as_ref().ok().and_then(Option::as_ref));
    file_limit::log(&files);
    for note in flags::checks::without_effect(matches)
        .into_iter()
        .chain(args.features.notes())
    {
        tracing::warn!("{note}");
    }
    run::run(args, identity, verbosity, traces, work, stop).await
}

fn told(ended: anyhow::Result<ExitCode>, as_lines: bool) -> ExitCode {
    match ended {
        Ok(code) => code,
        // Whoever reads JSON reads lines of it to the last one.
        Err(error) if as_lines => {
            tracing::error!("{error:#}");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("cloudwit: {error:#}");
            ExitCode::FAILURE
        }
    }
}
