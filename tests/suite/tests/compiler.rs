//! Components are compiled by a process of their own: the real program, started by itself, with the limits that it sets itself.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use cloudwit_host::HostOptions;
use cloudwit_suite::hosting::{Hosting, settings};
use cloudwit_test_support::programs::guests;
use cloudwit_test_support::scenes::site::Site;
use cloudwit_test_support::{eventually, programs};

/// Far less than the engine alone needs, and far more than the process before it reads the component.
const LITTLE_MEMORY: u64 = 12 << 20;

/// More than compiling takes on the slowest machine.
const LONG: Duration = Duration::from_secs(300);

/// The process that compiles, as the manager starts it but for the limits.
fn compile(component: &[u8], memory_bytes: u64, cpu_seconds: u64) -> Output {
    let mut child = Command::new(programs::cloudwit())
        .arg("compile-component")
        .args([
            std::process::id().to_string(),
            memory_bytes.to_string(),
            cpu_seconds.to_string(),
        ])
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let component = component.to_vec();
    // Whoever hits a limit reads no more.
    let feed = thread::spawn(move || drop(stdin.write_all(&component)));
    let output = child.wait_with_output().unwrap();
    feed.join().unwrap();
    output
}

fn sim() -> Vec<u8> {
    fs::read(guests::provider("sim")).unwrap()
}

/// The one entry of a folder for compiled code: name and content.
fn entry(cache: &Path) -> (String, Vec<u8>) {
    let entries: Vec<PathBuf> = fs::read_dir(cache.join("cloudwit-code"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    let [file] = entries.as_slice() else {
        panic!("{entries:?}")
    };
    let name = file.file_name().unwrap().to_string_lossy().into_owned();
    (name, fs::read(file).unwrap())
}

#[test]
fn memory_beyond_the_limit_ends_the_compiler_and_reports_it() {
    let output = compile(&sim(), LITTLE_MEMORY, 60);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.stdout.starts_with(b"component?"), "{said}");
    let told = output.status.code() == Some(4) || said.contains("memory allocation of");
    assert!(told, "{}: {said}", output.status);
    let enough = compile(&sim(), 512 << 20, 60);
    assert!(enough.status.success(), "{}", String::from_utf8_lossy(&enough.stderr));
}

#[test]
fn cpu_time_beyond_the_limit_ends_the_compiler() {
    const CPU_TIME: i32 = 24;
    let output = compile(&bomb(20_000, 1_000), 8 << 30, 1);
    assert_eq!(output.status.signal(), Some(CPU_TIME), "{}", output.status);
}

/// A process that somebody else starts compiles nothing: it would end with nobody.
#[test]
fn a_compiler_without_its_parent_ends_at_once() {
    let output = Command::new(programs::cloudwit())
        .args(["compile-component", "1", "536870912", "60"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(5));
    assert_eq!(output.stdout, b"");
}

/// Without /proc the program does not find itself. It never compiles without limits instead.
#[test]
fn where_no_process_can_be_started_nothing_is_compiled() {
    let script = "mount -t tmpfs none /proc && exec \"$0\" inspect \"$1\"";
    let output = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", script])
        .arg(programs::cloudwit())
        .arg(guests::provider("sim"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("failed to start the compiler process"), "{said}");
}

/// The manager, its cache empty, and beside it a host that compiles in the process: one entry, the same in both.
#[tokio::test(flavor = "multi_thread")]
async fn cached_code_is_equal_whichever_process_compiled_it() {
    let site = Site::new().await.unwrap();
    let (cloudwit, _) = site.start(&[]).unwrap();
    let cache = site.deployment.folder().join("cache");
    eventually(LONG, "the provider is loaded", || async {
        fs::read_to_string(cloudwit.log()).is_ok_and(|log| log.contains("provider loaded"))
    })
    .await;
    let log = fs::read_to_string(cloudwit.log()).unwrap();
    assert!(!log.contains("failed to start the compiler process"), "{log}");
    drop(cloudwit);

    let here = tempfile::tempdir().unwrap();
    let hosting = Hosting::new(HostOptions {
        cache_dir: Some(here.path().into()),
        ..HostOptions::default()
    });
    let component = site.deployment.folder().join("providers/sim.wasm");
    hosting.load_file(&component, settings()).await.unwrap();
    let (name, code) = entry(&cache);
    let (name_here, code_here) = entry(here.path());
    assert_eq!(name, name_here);
    assert!(code == code_here, "the code differs");
}

/// A component whose compiler needs memory without end: `loops` loops, each of which may change what all `locals` hold.
fn bomb(loops: usize, locals: usize) -> Vec<u8> {
    let mut body = String::new();
    for i in 0..loops {
        body.push_str("(loop $again ");
        for j in 0..3 {
            let (from, to) = ((i + j) % locals + 1, (i * 7 + j) % locals + 1);
            body.push_str(&format!("(local.set {to} (i32.add (local.get {from}) (local.get 0)))"));
        }
        body.push_str("(br_if $again (local.get 0)))");
    }
    let sum: String = (1..=locals)
        .map(|local| format!("local.get {local} i32.add "))
        .collect();
    let locals = "i32 ".repeat(locals);
    let text =
        format!("(component (core module (func (param i32) (result i32) (local {locals}) {body} i32.const 0 {sum})))");
    wat::parse_str(text).unwrap()
}

/// What would take this process with it ends with one sentence that names the limit; the compiler of the test build is slow, so that any limit
/// may be the first.
#[test]
fn component_exploding_the_compiler_is_refused_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("bomb.wasm");
    fs::write(&file, bomb(20_000, 2_000)).unwrap();
    let output = Command::new(programs::cloudwit())
        .arg("inspect")
        .arg(&file)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    let start = format!("cloudwit: {}: cannot be compiled: it ", file.display());
    assert!(said.starts_with(&start), "{said}");
    assert!(said.contains("the limit of ") && said.lines().count() == 1, "{said}");
}
