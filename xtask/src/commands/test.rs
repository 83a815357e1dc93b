//! `cargo xtask test`: everything, one step after the other.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;

use crate::cli::{SandboxArgs, SandboxCloud, TestArgs};
use crate::commands::{check, image, real, sandbox};
use crate::go::module::GoModule;
use crate::kubernetes::{controlplane, peer};
use crate::run::runners;
use crate::run::steps::outputs::Outputs;
use crate::run::steps::{Found, Job, Steps, shown};
use crate::{browser, guests, kubernetes, languages, programs, servers, tools, workspace};

/// The version that `--all` installs.
const CARGO_COMPONENT: &str = "0.21.1";

/// How many days `tests/simulation` simulates, and how many with `--all`.
const SIMULATED_DAYS: &str = "CLOUDWIT_SIMULATION_DAYS";
const MANY_DAYS: &str = "10000";

/// Where the random input of `proptest` begins. The same in each run, so that a change is judged by the same cases as the one before it; with `--all`, or
/// with the variable set, other cases are tried.
const RANDOM_SEED: &str = "PROPTEST_RNG_SEED";
const SAME_SEED: &str = "1";

/// Runs all steps, also after one has failed; with `--only` what the tests of that name need, and they.
///
/// # Errors
///
/// When a tool is missing (before anything runs) or a step fails.
pub fn run(args: &TestArgs) -> Result<()> {
    tools::require_wasm_target()?;
    let own_api_server = std::env::var_os("KUBEBUILDER_ASSETS").is_none();
    if own_api_server {
        tools::require_go()?;
    }
    let servers = servers::start()?;
    let no_browser = browser::get().err().map(|why| format!("{why:#}"));
    let mut steps = Steps::default();
    if let Some(name) = &args.only {
        steps.run("guests", build_guests);
        steps.run("build", build);
        steps.run("third-party servers", || servers.wait());
        if let Some(version) = args.kubernetes {
            steps.run("API server", || {
                version.binary().map(|program| program.display().to_string().into())
            });
        }
        steps.run("tests", || run_tests(no_browser.as_deref(), args));
        return steps.finish().with_context(|| format!("tests of {name:?}"));
    }
    steps.run("format", check::format);
    steps.run("clippy", check::clippy);
    steps.run("guests", build_guests);
    if own_api_server {
        steps.run("API server", || go_module(controlplane::MODULE));
    } else {
        steps.leave_out("vet and build of tests/controlplane, since KUBEBUILDER_ASSETS brings another API server");
    }
    steps.run("peer", || go_module(peer::TESTED));
    steps.run("build", build);
    steps.run("what ships", ships);
    steps.run("third-party servers", || servers.wait());
    if let Some(why) = &no_browser {
        steps.leave_out(&format!("the look at the status page in a browser: {why}"));
    }
    if args.all {
        prepare_languages(&mut steps);
    } else {
        steps.leave_out("providers in Go, JavaScript and Python; to have them: cargo xtask test --all");
    }
    steps.run("tests", || run_tests(no_browser.as_deref(), args));
    steps.run_together(SandboxCloud::value_variants().iter().map(sandbox_once).collect());
    deny(&mut steps);
    if args.all {
        steps.run("cargo component", cargo_component);
        steps.run("image", image::checked);
        real_nodes(&mut steps);
    } else {
        steps.leave_out("tests that take minutes (chaos, scale); to have them: cargo xtask test --all");
        steps.leave_out(
            "the sandbox with real Nodes; to have it: cargo xtask sandbox --real --once, or cargo xtask test --all",
        );
        steps.leave_out("the build with cargo-component; to have it: cargo xtask test --all");
        steps.leave_out("the static binary in an empty root; to have it: cargo xtask image, or cargo xtask test --all");
    }
    steps.finish()
}

/// Programs and tests in one go, since each other choice of packages makes cargo build their dependencies with other features once more.
fn build() -> Result<Found> {
    shown(workspace::cargo().args(["build", "--workspace", "--all-targets"]))
}

/// The program compiles without what only tests switch on in its dependencies.
fn ships() -> Result<Found> {
    shown(workspace::cargo().args(["check", "--package", "cloudwit", "--bins"]))
}

/// The sandbox as a test: the command that the README names, with what is built already, in a folder of its own.
fn sandbox_once(cloud: &SandboxCloud) -> Job {
    // Not this very file, which the build has replaced.
    let mut command = Command::new(workspace::target().join("debug").join("xtask"));
    command.args(["sandbox", "--once", "--cloud", cloud.name(), "--folder"]);
    command.arg(workspace::target().join("tmp/sandbox").join(cloud.name()));
    command.envs(built());
    Job {
        name: format!("sandbox {}", cloud.name()),
        command,
        note: "Nodes joined, and one went with its machine",
    }
}

/// The sandbox with real Nodes, where it can run: Cloudwit as a process, and as Pods of the image.
fn real_nodes(steps: &mut Steps) {
    if let Err(why) = real::require() {
        return steps.leave_out(&format!("{why:#}"));
    }
    steps.run("Kubernetes with kubelet", || go_module(kubernetes::MODULE));
    for flags in [&["--real"][..], &["--real", "--pods"]] {
        steps.run(&format!("sandbox {}", flags.join(" ")), || {
            let mut command = Command::new(workspace::target().join("debug").join("xtask"));
            shown(command.args(["sandbox", "--once"]).args(flags).envs(built()))?;
            Ok("Pods, routes, load balancers, swap and failures under traffic"
                .to_owned()
                .into())
        });
    }
}

/// Variables that tell tests and tools where programs and components lie, so that they build none.
fn built() -> Vec<(String, String)> {
    let target = workspace::target();
    [
        (guests::PREBUILT, target.join(tools::WASM_TARGET).join("guest")),
        (programs::PREBUILT, target.join("debug")),
    ]
    .map(|(name, folder)| (name.to_owned(), folder.display().to_string()))
    .into()
}

/// What builds providers in other languages: fetched before the tests, and named where it is missing.
fn prepare_languages(steps: &mut Steps) {
    let (found, missing) = languages::available();
    for why in missing {
        steps.leave_out(&format!("providers in another language, {why}"));
    }
    for language in found {
        steps.run(&format!("tools for {}", language.name()), || {
            language.prepare().map(|()| Found::default())
        });
    }
}

/// All tests of all crates: units, documentation, and the suite on the real API server.
fn run_tests(no_browser: Option<&str>, args: &TestArgs) -> Result<Found> {
    let mut variables = built();
    variables.extend(no_browser.map(|why| (browser::LEFT_OUT.to_owned(), why.to_owned())));
    if let Some(version) = args.kubernetes {
        variables.push((
            controlplane::PREBUILT.to_owned(),
            version.binary()?.display().to_string(),
        ));
    }
    let mut arguments = Vec::new();
    if args.all {
        arguments.push("--include-ignored");
        variables.push((SIMULATED_DAYS.to_owned(), MANY_DAYS.to_owned()));
        let (_, missing) = languages::available();
        if !missing.is_empty() {
            variables.push((languages::LEFT_OUT.to_owned(), missing.join("; ")));
        }
    } else if std::env::var_os(RANDOM_SEED).is_none() {
        variables.push((RANDOM_SEED.to_owned(), SAME_SEED.to_owned()));
    }
    let mut outputs = Outputs::default();
    let mut command = workspace::cargo();
    command
        .args(["test", "--workspace", "--no-fail-fast"])
        .envs(variables.clone());
    let passed = match &args.only {
        Some(name) if workspace::test_files()?.contains(name) => {
            command.args(["--test", name, "--"]).args(arguments);
            outputs.of(&mut command)?
        }
        Some(name) => {
            command.args([name, "--"]).args(arguments);
            outputs.of(&mut command)?
        }
        None => {
            let binaries = runners::run(&arguments, &variables, &mut outputs)?;
            command.args(["--doc", "--"]).args(arguments);
            outputs.of(&mut command)? && binaries
        }
    };
    outputs.finish(passed)
}

/// Licences, bans and sources; then the advisories, whose list comes over the network.
fn deny(steps: &mut Steps) {
    if tools::find("cargo-deny").is_none() {
        return steps
            .leave_out("cargo deny (licences, sources, advisories); to have it: cargo install --locked cargo-deny");
    }
    let check = || {
        let mut command = workspace::cargo();
        command.args(["deny", "--all-features", "check"]);
        command
    };
    steps.run("cargo deny", || shown(check().args(["licenses", "bans", "sources"])));
    match tools::output(check().arg("advisories")) {
        Err(error) if error.to_string().contains("failed to fetch advisory database") => {
            steps.leave_out("the advisories of cargo deny, since their list at github.com/RustSec cannot be reached");
        }
        result => steps.run("advisories", || result.map(|_| Found::default())),
    }
}

/// Builds the providers and the test guests; prints their sizes, plain and packed, and holds the packed providers to their limit.
fn build_guests() -> Result<Found> {
    let (mut notes, mut too_large) = (Vec::new(), Vec::new());
    for name in guests::PROVIDERS {
        let file = guests::provider(name)?;
        let packed = guests::packed_size(&file)?;
        println!("{:>9} bytes, {packed:>7} packed  {name}.wasm", size(&file)?);
        let limit = guests::packed_limit(name);
        if packed > limit {
            too_large.push(format!(
                "{name}.wasm.zst has {packed} bytes, more than the {limit} that are promised"
            ));
        }
        notes.push(format!("{name} {packed}"));
    }
    let files = guests::components(&guests::test_guests()?)?;
    for file in &files {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let packed = guests::packed_size(file)?;
        println!("{:>9} bytes, {packed:>7} packed  {name}", size(file)?);
    }
    if !too_large.is_empty() {
        bail!("{}", too_large.join("; "));
    }
    Ok(format!("packed: {} bytes; {} test guests", notes.join(", "), files.len()).into())
}

fn size(file: &Path) -> Result<u64> {
    Ok(fs::metadata(file)
        .with_context(|| format!("reading {}", file.display()))?
        .len())
}

/// Builds, vets and tests one of our Go modules.
fn go_module(module: GoModule) -> Result<Found> {
    let binary = module.check()?;
    Ok(binary
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
        .into())
}

/// Builds the provider with cargo-component and lets the sandbox work with it.
fn cargo_component() -> Result<Found> {
    let tools_dir = workspace::target().join("tools");
    let program = tools_dir.join("bin/cargo-component");
    let known = tools::output(Command::new(&program).args(["component", "--version"])).unwrap_or_default();
    if !known.contains(CARGO_COMPONENT) {
        println!(
            "installing cargo-component {CARGO_COMPONENT} into {} (many minutes)",
            tools_dir.display()
        );
        let install = [
            "install",
            "--locked",
            "--version",
            CARGO_COMPONENT,
            "cargo-component",
            "--root",
        ];
        shown(workspace::cargo().args(install).arg(&tools_dir))?;
    }
    // By default it builds for wasm32-wasip1 (and adds that target through rustup) and adapts the outcome.
    let component = workspace::target().join("wasm32-wasip1/guest/sim.wasm");
    if component.exists() {
        fs::remove_file(&component).with_context(|| format!("removing {}", component.display()))?;
    }
    let build = [
        "component",
        "build",
        "--package",
        "cloudwit-provider-sim",
        "--profile",
        "guest",
    ];
    shown(workspace::program(&program).args(build))?;
    let args = SandboxArgs {
        cloud: SandboxCloud::Sim,
        once: true,
        real: false,
        pods: false,
        kubeconfig: None,
        folder: None,
        nodes: 3,
    };
    sandbox::run_with(&args, &component)?;
    Ok(format!("sim {} bytes, and the sandbox works with it", size(&component)?).into())
}
