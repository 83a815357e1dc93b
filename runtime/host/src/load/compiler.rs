//! Compiles components, in a process of its own with limits unless set otherwise.
//!
//! ```text
//!   code -> compiler -> /proc/self/exe compile-component   (compiler_process: limits, then the component from stdin)
//!                    <- compiled code on its stdout, which cache loads and keeps
//! ```
//!
//! A component can make the compiler need any amount of memory and time, or crash it; whoever holds the lead and does all work must not pay for
//! that. And the memory that a compiler leaves behind ends with its process. A compiler process that cannot be started, or that ends before it is given
//! the component, fails the load: this process compiles only where [`Compiler::Here`] says so.

use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::load::compiler_process::{COMMAND, GREETING, INVALID, NO_MEMORY};
use crate::load::toolchain::Toolchain;

/// The program that runs, whatever became of its file since.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// Threads of the compiler; each has a stack, which counts as its memory.
const THREADS: usize = 4;

/// Most of what the compiler says on stderr that is read, in bytes.
const COMPLAINT: u64 = 16 << 10;

/// How Rust's standard library begins to say that there is no memory, before it aborts.
const OUT_OF_MEMORY: &str = "memory allocation of";

const SIGNAL_KILL: i32 = 9;
const SIGNAL_CPU_TIME: i32 = 24;

/// Who compiles components.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Compiler {
    /// This process, without limits.
    #[default]
    Here,
    /// This process's own program, started again for each component; its `main` has to call [`compile_for_parent`](crate::compile_for_parent) first.
    Apart(CompilerLimits),
}

/// What compiling one component may use, in a process of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompilerLimits {
    /// Memory of the process, in bytes: all that it may write to, touched or not (`RLIMIT_DATA`).
    pub memory_bytes: u64,
    /// The most of it whatever the component's size, in bytes.
    pub most_memory_bytes: u64,
    /// CPU time, in whole seconds.
    pub cpu_time: Duration,
    /// Time.
    pub wall_time: Duration,
    /// Compiled code, in bytes: it goes into the process that runs it.
    pub code_bytes: u64,
}

impl Default for CompilerLimits {
    /// Far more than components need that have a few megabytes, as compilers of programming languages make them. The time is less than the startup
    /// probe of the Deployment gives.
    fn default() -> Self {
        Self {
            memory_bytes: 512 << 20,
            most_memory_bytes: u64::MAX,
            cpu_time: Duration::from_secs(60),
            wall_time: Duration::from_secs(100),
            code_bytes: 128 << 20,
        }
    }
}

impl CompilerLimits {
    /// The limits for a component of so many bytes. One with a language's runtime in it has 12 to 18 MB, and was seen to need 2 s of CPU time and
    /// 30 MB of memory for each of them on a fast machine, and to become three times as large.
    pub(crate) fn for_component(&self, bytes: usize) -> Self {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let seconds = (bytes >> 20).saturating_mul(8);
        Self {
            memory_bytes: self
                .memory_bytes
                .max(bytes.saturating_mul(32))
                .min(self.most_memory_bytes),
            cpu_time: self.cpu_time.max(Duration::from_secs(seconds)),
            code_bytes: self.code_bytes.max(bytes.saturating_mul(4)),
            ..*self
        }
    }
}

/// Why a component was not compiled, although it may be valid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CompileFault {
    /// [`CompilerLimits::memory_bytes`].
    #[error("it needs more memory than the limit of {} MiB", .0 >> 20)]
    Memory(u64),
    /// [`CompilerLimits::cpu_time`].
    #[error("it needs more CPU time than the limit of {} s", .0.as_secs())]
    CpuTime(Duration),
    /// [`CompilerLimits::wall_time`].
    #[error("not done within the limit of {} s; where CPU is short, give the process more", .0.as_secs())]
    WallTime(Duration),
    /// [`CompilerLimits::code_bytes`].
    #[error("its compiled code is larger than the limit of {} MiB", .0 >> 20)]
    Code(u64),
    /// Killed from outside, most often for lack of memory.
    #[error(
        "the compiler was killed, as the system does when the container's memory is used up; give it more, or build the component smaller"
    )]
    Killed,
    /// A bug of the compiler.
    #[error("the compiler crashed on it: {0}")]
    Crash(String),
    /// The compiler process could not be started, or ended before it was given the component.
    #[error("failed to start the compiler process: {0}")]
    NotStarted(String),
}

impl CompileFault {
    /// Whether it may pass another time, with the same component.
    pub(crate) fn may_pass_later(&self) -> bool {
        matches!(self, Self::WallTime(_) | Self::Killed | Self::NotStarted(_))
    }

    /// What the author of the component can do about it.
    pub(crate) fn advice(&self, toolchain: Toolchain) -> String {
        match self {
            Self::NotStarted(_) => String::new(),
            _ => format!("; {}", toolchain.smaller()),
        }
    }
}

/// Code that a process of our own program compiled from a component that we gave it. Only `compile_apart` makes one, which is what
/// the safety of loading it rests on.
pub(crate) struct CompiledCode(Vec<u8>);

impl CompiledCode {
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// How it ended.
pub(crate) enum Ended {
    Compiled(CompiledCode),
    /// What the validator says.
    Invalid(String),
    Failed(CompileFault),
}

impl Ended {
    fn not_started(why: impl Into<String>) -> Self {
        Self::Failed(CompileFault::NotStarted(why.into()))
    }
}

/// Compiles a component in a process of its own.
pub(crate) async fn compile_apart(limits: &CompilerLimits, component: &[u8]) -> Ended {
    converse(command(Path::new(OWN_PROGRAM), limits), limits, component).await
}

/// Nothing of ours goes along: no variable, which may hold secrets, and no open file, since Rust marks all as not to be inherited.
pub(super) fn command(program: &Path, limits: &CompilerLimits) -> Command {
    let threads = std::thread::available_parallelism().map_or(1, |cores| cores.get().min(THREADS));
    let mut command = Command::new(program);
    command
        .arg0("cloudwit")
        .arg(COMMAND)
        .arg(std::process::id().to_string())
        .arg(limits.memory_bytes.to_string())
        .arg(limits.cpu_time.as_secs().to_string())
        .env_clear()
        .env("RAYON_NUM_THREADS", threads.to_string());
    piped(&mut command);
    command
}

pub(super) fn piped(command: &mut Command) {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
}

pub(super) async fn converse(mut command: Command, limits: &CompilerLimits, component: &[u8]) -> Ended {
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            let program = Path::new(command.as_std().get_program()).display();
            return Ended::not_started(format!("{program}: {error}"));
        }
    };
    let ended = timeout(limits.wall_time, answer(&mut child, limits, component)).await;
    // It has ended already, unless it was too slow or said too much.
    if let Err(error) = child.kill().await {
        tracing::debug!(%error, "failed to kill the compiler process");
    }
    ended.unwrap_or(Ended::Failed(CompileFault::WallTime(limits.wall_time)))
}

/// Greeting, component, code.
async fn answer(child: &mut Child, limits: &CompilerLimits, component: &[u8]) -> Ended {
    let (Some(mut stdin), Some(mut stdout), Some(stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Ended::not_started("no pipes");
    };
    let mut greeting = [0; GREETING.len()];
    let greeted = stdout.read_exact(&mut greeting).await;
    if greeted.is_ok() && greeting != *GREETING {
        return Ended::not_started("another program answered");
    }
    if greeted.is_err() {
        let complaint = read_at_most(stderr, COMPLAINT).await;
        return match child.wait().await {
            Ok(status) => judge_unstarted(status, &complaint, limits),
            Err(error) => Ended::not_started(error.to_string()),
        };
    }
    let feed = async move {
        // A compiler that does not read to the end reports why.
        drop(stdin.write_all(component).await);
    };
    let read = async {
        let code = read_at_most(&mut stdout, limits.code_bytes.saturating_add(1)).await;
        // The rest of too much is not read.
        drop(stdout);
        code
    };
    let ((), code, complaint) = tokio::join!(feed, read, read_at_most(stderr, COMPLAINT));
    if u64::try_from(code.len()).unwrap_or(u64::MAX) > limits.code_bytes {
        return Ended::Failed(CompileFault::Code(limits.code_bytes));
    }
    match child.wait().await {
        Ok(status) => judge(status, code, &complaint, limits),
        Err(error) => Ended::Failed(CompileFault::Crash(error.to_string())),
    }
}

fn judge(status: ExitStatus, answer: Vec<u8>, complaint: &[u8], limits: &CompilerLimits) -> Ended {
    use std::os::unix::process::ExitStatusExt as _;

    let out_of_memory = || String::from_utf8_lossy(complaint).contains(OUT_OF_MEMORY);
    match (status.code(), status.signal()) {
        (Some(0), _) => Ended::Compiled(CompiledCode(answer)),
        (Some(INVALID), _) => Ended::Invalid(String::from_utf8_lossy(&answer).into_owned()),
        (Some(NO_MEMORY), _) => Ended::Failed(CompileFault::Memory(limits.memory_bytes)),
        (_, Some(SIGNAL_CPU_TIME)) => Ended::Failed(CompileFault::CpuTime(limits.cpu_time)),
        (_, Some(SIGNAL_KILL)) => Ended::Failed(CompileFault::Killed),
        _ if out_of_memory() => Ended::Failed(CompileFault::Memory(limits.memory_bytes)),
        _ => Ended::Failed(CompileFault::Crash(account(status, complaint))),
    }
}

/// Before the component was read nothing can be said about it: what is neither a limit nor a kill is a failed start.
fn judge_unstarted(status: ExitStatus, complaint: &[u8], limits: &CompilerLimits) -> Ended {
    match judge(status, Vec::new(), complaint, limits) {
        Ended::Failed(fault) if !matches!(fault, CompileFault::Crash(_)) => Ended::Failed(fault),
        _ => Ended::not_started(account(status, complaint)),
    }
}

/// The exit status with what the process said last, on one line.
fn account(status: ExitStatus, complaint: &[u8]) -> String {
    let said = String::from_utf8_lossy(complaint);
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    // The first line of a panic says where, the second what.
    match lines.as_slice() {
        [] => status.to_string(),
        [first, rest @ ..] => {
            let second = rest.first().map(|line| format!(" {line}")).unwrap_or_default();
            format!("{status}, {first}{second}")
        }
    }
}

/// All there is, up to so many bytes.
async fn read_at_most(from: impl AsyncRead + Unpin, most: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Err(error) = from.take(most).read_to_end(&mut bytes).await {
        tracing::debug!(%error, "failed to read from the compiler process");
    }
    bytes
}

#[cfg(test)]
mod tests;
