//! Protocol with the compiler process, played by shell scripts that do what a compiler may do.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use tokio::process::Command;

use super::*;

const LIMITS: CompilerLimits = CompilerLimits {
    memory_bytes: 512 << 20,
    most_memory_bytes: 800 << 20,
    cpu_time: Duration::from_secs(7),
    wall_time: Duration::from_secs(100),
    code_bytes: 1000,
};

/// What greets and then does this.
fn greeting_and(then: &str) -> String {
    format!(r"printf 'component?\r\n'; {then}")
}

/// A process that runs this script.
fn playing(script: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(format!("ulimit -c 0; {script}"));
    piped(&mut command);
    command
}

async fn ended(script: &str) -> Ended {
    // More than a pipe holds: whoever does not read it must not hold us up.
    converse(playing(script), &LIMITS, &vec![b'x'; 1 << 20]).await
}

async fn fault(script: &str) -> CompileFault {
    match ended(&greeting_and(script)).await {
        Ended::Failed(fault) => fault,
        Ended::Compiled(_) => panic!("{script}: compiled"),
        Ended::Invalid(why) => panic!("{script}: {why}"),
    }
}

#[tokio::test]
async fn what_is_greeted_and_given_the_component_answers_with_code() {
    let Ended::Compiled(code) = ended(&greeting_and("wc -c")).await else {
        panic!("not compiled")
    };
    assert_eq!(code.bytes().trim_ascii(), b"1048576");
}

#[tokio::test]
async fn invalid_component_is_reported_in_the_compilers_words() {
    let Ended::Invalid(why) = ended(&greeting_and("cat >/dev/null; printf 'bad magic'; exit 3")).await else {
        panic!("not invalid")
    };
    assert_eq!(why, "bad magic");
}

#[tokio::test]
async fn each_limit_and_each_death_has_its_own_words() {
    for (script, expected) in [
        ("exit 4", CompileFault::Memory(LIMITS.memory_bytes)),
        (
            "echo 'memory allocation of 7 bytes failed' >&2; kill -ABRT $$",
            CompileFault::Memory(LIMITS.memory_bytes),
        ),
        ("kill -XCPU $$", CompileFault::CpuTime(LIMITS.cpu_time)),
        ("kill -KILL $$", CompileFault::Killed),
        ("cat /dev/zero", CompileFault::Code(LIMITS.code_bytes)),
    ] {
        assert_eq!(fault(script).await, expected, "{script}");
    }
    let crash = "printf '\\nthread main panicked at a.rs:1:2:\\nno luck\\nnote: more\\n' >&2; exit 101";
    let crash = fault(crash).await.to_string();
    assert_eq!(
        crash,
        "the compiler crashed on it: exit status: 101, thread main panicked at a.rs:1:2: no luck"
    );
    for (fault, words) in [
        (CompileFault::Memory(64 << 20), "limit of 64 MiB"),
        (CompileFault::CpuTime(LIMITS.cpu_time), "limit of 7 s"),
        (CompileFault::WallTime(LIMITS.wall_time), "limit of 100 s"),
        (CompileFault::Code(1 << 20), "limit of 1 MiB"),
    ] {
        assert!(fault.to_string().contains(words), "{fault}");
    }
}

/// Time stands still but for what is waited for, so the limit passes at once.
#[tokio::test(start_paused = true)]
async fn what_never_ends_is_ended_at_the_limit() {
    assert_eq!(
        fault("exec sleep 1000000").await,
        CompileFault::WallTime(LIMITS.wall_time)
    );
}

#[tokio::test]
async fn what_does_not_greet_was_not_started() {
    for (script, words) in [
        ("echo 'no such luck' >&2; exit 5", "exit status: 5, no such luck"),
        ("kill -SYS $$", "signal: 31"),
        ("exit 0", "exit status: 0"),
        (
            "echo 'running 0 tests, and then for ever'; exec cat /dev/zero",
            "another program",
        ),
    ] {
        let Ended::Failed(CompileFault::NotStarted(why)) = ended(script).await else {
            panic!("{script}: started")
        };
        assert!(why.contains(words), "{script}: {why}");
    }
    let missing = command(Path::new("/nowhere/cloudwit"), &LIMITS);
    let Ended::Failed(CompileFault::NotStarted(why)) = converse(missing, &LIMITS, b"").await else {
        panic!("started")
    };
    assert!(why.starts_with("/nowhere/cloudwit: "), "{why}");
}

#[tokio::test]
async fn a_kill_or_a_limit_before_the_greeting_is_named() {
    for (script, expected) in [
        ("kill -KILL $$", CompileFault::Killed),
        ("kill -XCPU $$", CompileFault::CpuTime(LIMITS.cpu_time)),
        (
            "echo 'memory allocation of 7 bytes failed' >&2; kill -ABRT $$",
            CompileFault::Memory(LIMITS.memory_bytes),
        ),
    ] {
        let Ended::Failed(fault) = ended(script).await else {
            panic!("{script}: not failed")
        };
        assert_eq!(fault, expected, "{script}");
    }
}

/// A program in the source tree, which nobody has open for writing when it is started.
fn program(name: &str) -> Command {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(name);
    command(&file, &LIMITS)
}

#[tokio::test]
async fn no_variable_goes_along() {
    assert!(std::env::vars_os().count() > 1, "there is something to leave behind");
    let output = program("prints-environment").output().await.unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let (variables, _) = text.split_once("#!").expect("the program's own text follows");
    let names: Vec<&str> = variables
        .split_terminator('\0')
        .filter_map(|variable| variable.split('=').next())
        .collect();
    assert_eq!(names, ["RAYON_NUM_THREADS"]);
}

#[tokio::test]
async fn no_open_file_goes_along() {
    let dir = tempfile::tempdir().unwrap();
    let secret = dir.path().join("secret-that-is-open");
    let _open = File::create(&secret).unwrap();
    let output = program("lists-open-files").output().await.unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains(" 0 -> ") && text.contains(" 2 -> "), "{text}");
    assert!(!text.contains("secret-that-is-open"), "{text}");
}

#[tokio::test]
async fn whoever_stops_waiting_ends_it() {
    let dir = tempfile::tempdir().unwrap();
    let told = dir.path().join("pid");
    let script = greeting_and(&format!("echo $$ >{}; exec sleep 1000000", told.display()));
    let waiting = tokio::spawn(async move { ended(&script).await });
    let mut pid = String::new();
    while !pid.ends_with('\n') {
        tokio::task::yield_now().await;
        pid = std::fs::read_to_string(&told).unwrap_or_default();
    }
    waiting.abort();
    assert!(waiting.await.is_err_and(|error| error.is_cancelled()));
    // Its parent is still us, so it is there as a zombie until the runtime gathers it.
    let state = || std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    let runs = |stat: &str| {
        stat.rsplit(')')
            .next()
            .is_some_and(|rest| rest.starts_with(" S") || rest.starts_with(" R"))
    };
    while runs(&state()) {
        tokio::task::yield_now().await;
    }
}

#[test]
fn limits_follow_component_size_and_container_memory() {
    let small = LIMITS.for_component(700_000);
    assert_eq!(LIMITS.for_component(0), LIMITS);
    assert_eq!(
        (small.memory_bytes, small.cpu_time),
        (512 << 20, Duration::from_secs(7))
    );
    let python = LIMITS.for_component(18 << 20);
    assert_eq!(
        (python.memory_bytes, python.cpu_time),
        (576 << 20, Duration::from_secs(144))
    );
    assert_eq!((python.code_bytes, python.wall_time), (72 << 20, LIMITS.wall_time));
    assert_eq!(LIMITS.for_component(32 << 20).memory_bytes, 800 << 20);
    assert_eq!(LIMITS.for_component(usize::MAX).memory_bytes, 800 << 20);
}
