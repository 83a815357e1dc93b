//! The real process is stopped while it starts, and goes on while a file or a plugin hangs: nothing of that holds up signals, leadership or probes.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use axum::Router;
use cloudwit_test_support::programs::child::Child;
use cloudwit_test_support::programs::guests;
use cloudwit_test_support::scenes::deployment::{Deployment, TOKEN};
use cloudwit_test_support::{ApiServer, eventually, programs};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;

/// How long anything may take on a busy machine.
const SOON: Duration = Duration::from_secs(180);

/// How long the Lease of a [`Leader`] lasts: it survives a pause of some seconds.
const LEASE: Duration = Duration::from_secs(12);

/// A folder with everything that one process needs.
struct Stage {
    deployment: Deployment,
    folder: TempDir,
}

impl Stage {
    async fn new() -> Self {
        // Another test of this process may have been first.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let build = || (programs::cloudwit(), guests::provider("sim"));
        let (program, provider) = tokio::task::spawn_blocking(build).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let deployment = Deployment::new(&folder.path().join("d"), program.parent().unwrap(), &provider).unwrap();
        Self { deployment, folder }
    }

    /// Starts the process on an API server at this port of loopback, as this user.
    fn start(&self, port: u16, user: &Value) -> (Child, String) {
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{ "name": "c", "cluster": { "server": format!("http://127.0.0.1:{port}") } }],
            "contexts": [{ "name": "c", "context": { "cluster": "c", "user": "u" } }],
            "users": [{ "name": "u", "user": user }],
        });
        let file = self.file("kubeconfig", &kubeconfig.to_string());
        self.deployment
            .start_cloudwit(&file, "http://127.0.0.1:9", &[])
            .unwrap()
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let file = self.folder.path().join(name);
        fs::write(&file, text).unwrap();
        file
    }

    /// An exec plugin that counts its runs in the file `runs`.
    fn plugin(&self, script: &str) -> Value {
        let runs = self.folder.path().join("runs");
        let file = self.file(
            "plugin",
            &format!("#!/bin/sh\necho run >> {}\n{script}\n", runs.display()),
        );
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        json!({ "exec": {
            "apiVersion": "client.authentication.k8s.io/v1", "command": file, "interactiveMode": "Never",
        }})
    }

    fn runs(&self) -> Result<usize> {
        let runs = fs::read_to_string(self.folder.path().join("runs")).context("it has not run")?;
        Ok(runs.lines().count())
    }
}

/// An API server that says its version and knows nothing else.
async fn version_server() -> u16 {
    let version = json!({
        "major": "1", "minor": "37", "gitVersion": "v1.37.2", "gitCommit": "", "gitTreeState": "", "buildDate": "",
        "goVersion": "", "compiler": "gc", "platform": "linux/amd64",
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let router = Router::new().route("/version", axum::routing::get(|| async { axum::Json(version) }));
    tokio::spawn(async { axum::serve(listener, router).await.unwrap() });
    port
}

/// Sends SIGTERM and waits for a clean end. A start that fails by itself ends with 1.
async fn ends_cleanly(mut process: Child) {
    process.signal("TERM").unwrap();
    let code = loop {
        match process.ended().unwrap() {
            Some(status) => break status.code(),
            None => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    };
    assert_eq!(code, Some(0), "{}", process.log_end());
}

#[tokio::test]
async fn sigterm_ends_a_process_whose_api_server_is_silent() {
    let stage = Stage::new().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (process, _) = stage.start(listener.local_addr().unwrap().port(), &json!({}));
    let _silent = listener.accept().await.unwrap();
    ends_cleanly(process).await;
}

#[tokio::test]
async fn sigterm_ends_a_process_that_compiles() {
    let stage = Stage::new().await;
    let (process, _) = stage.start(version_server().await, &json!({}));
    let compiler = eventually(SOON, "it compiles", || async {
        child_of(process.pid()).with_context(|| process.log_end())
    })
    .await;
    ends_cleanly(process).await;
    eventually(SOON, "the compiler is gone too", || async {
        ensure!(child_is_gone(compiler), "it runs");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn sigterm_ends_a_process_whose_exec_plugin_hangs() {
    let stage = Stage::new().await;
    let user = stage.plugin("exec sleep 1000");
    let (process, _) = stage.start(version_server().await, &user);
    eventually(SOON, "the plugin runs", || async { stage.runs() }).await;
    ends_cleanly(process).await;
}

#[tokio::test]
async fn an_exec_plugin_runs_once_for_all_clients() {
    let stage = Stage::new().await;
    let user = stage.plugin(r#"echo '{"status":{"token":"t","expirationTimestamp":"2999-01-01T00:00:00Z"}}'"#);
    let (process, url) = stage.start(version_server().await, &user);
    eventually(SOON * 3, "its pages are served", || async {
        let livez = reqwest::get(format!("{url}/livez")).await;
        ensure!(livez.with_context(|| process.log_end())?.status() == 200);
        Ok(())
    })
    .await;
    assert_eq!(stage.runs().unwrap(), 1);
    ends_cleanly(process).await;
}

/// A FIFO without a writer stands for a mount that hangs: whoever reads it waits for ever.
#[tokio::test]
async fn a_hanging_secret_leaves_leadership_and_probes() {
    let stage = Stage::new().await;
    let (leader, _cloud) = Leader::start(&stage, "hanging").await;
    let secret = stage.deployment.folder().join("token");
    let fifo = stage.folder.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    fs::rename(&fifo, &secret).unwrap();
    eventually(SOON, "the change is given up", || async {
        let log = fs::read_to_string(leader.process.log())?;
        ensure!(log.contains("its file system hangs"), "{}", leader.process.log_end());
        Ok(())
    })
    .await;
    leader.renews_once_more().await;
    let livez = reqwest::get(leader.page("livez")).await.unwrap();
    assert_eq!(livez.status(), 200);
    // If it hung with the file, it would do so for ever.
    eventually(SOON, "the working thread goes on", || async {
        let livez = reqwest::get(leader.page("livez?verbose")).await?.text().await?;
        ensure!(livez.contains("[+]working-thread ok\n"), "{livez}");
        Ok(())
    })
    .await;
    // The good content comes back by itself.
    let new = stage.file("new", TOKEN);
    fs::rename(new, &secret).unwrap();
    ends_cleanly(leader.process).await;
    assert!(is_released(&leader.leases, &leader.name).await);
}

/// The working thread is stopped from outside for longer than the Lease lasts, as something that blocks it would.
#[tokio::test]
async fn a_stopped_working_thread_leaves_leadership_and_probes() {
    let stage = Stage::new().await;
    let (mut leader, _cloud) = Leader::start(&stage, "stopped").await;
    let before = leader.stalls().await.unwrap();
    let mut tracer = match stop_thread(working_thread(leader.process.pid())) {
        Ok(tracer) => tracer,
        Err(why) => return eprintln!("left out, since no thread can be stopped here: {why:#}"),
    };
    let stopped = Instant::now();
    while stopped.elapsed() <= LEASE {
        leader.renews_once_more().await;
    }
    let livez = reqwest::get(leader.page("livez")).await.unwrap();
    assert_eq!(livez.status(), 200);
    eventually(SOON, "the pause is counted", || async {
        let now = leader.stalls().await?;
        ensure!(now > before, "{now} after {before}");
        Ok(())
    })
    .await;
    leader.process.signal("TERM").unwrap();
    eventually(SOON, "the Lease is released", || async {
        ensure!(is_released(&leader.leases, &leader.name).await);
        Ok(())
    })
    .await;
    // A traced thread keeps its process from ending.
    tracer.kill().unwrap();
    tracer.wait().unwrap();
    let code = eventually(SOON, "it ends", || {
        let ended = leader.process.ended();
        async move { ended?.context("it runs") }
    })
    .await;
    assert_eq!(code.code(), Some(0), "{}", leader.process.log_end());
}

/// A process that leads with a short Lease.
struct Leader {
    process: Child,
    url: String,
    leases: Api<Lease>,
    name: String,
}

impl Leader {
    /// Starts it with a simulated cloud and waits until it leads.
    async fn start(stage: &Stage, name: &str) -> (Self, Child) {
        let server = ApiServer::shared().await;
        let (cloud, cloud_url) = stage.deployment.start_cloud().unwrap();
        let name = format!("{name}-{}", std::process::id());
        let named = format!("--leader-elect-resource-name={name}");
        let lease = format!("--leader-elect-lease-duration={}s", LEASE.as_secs());
        let flags = [
            "--leader-elect=true",
            &lease,
            "--leader-elect-renew-deadline=10s",
            "--leader-elect-retry-period=500ms",
            &named,
        ];
        let started = stage.deployment.start_cloudwit(server.kubeconfig(), &cloud_url, &flags);
        let (process, url) = started.unwrap();
        let leases = Api::namespaced(server.client(), "kube-system");
        let leader = Self {
            process,
            url,
            leases,
            name,
        };
        eventually(SOON, "it leads", || leader.renewed()).await;
        (leader, cloud)
    }

    fn page(&self, name: &str) -> String {
        format!("{}/{name}", self.url)
    }

    /// How often its working thread was seen to stand still.
    async fn stalls(&self) -> Result<u64> {
        let metrics = reqwest::get(self.page("metrics")).await?.text().await?;
        let mut lines = metrics.lines();
        let count = lines.find_map(|line| line.strip_prefix("cloudwit_working_thread_stalls_total "));
        Ok(count.with_context(|| metrics.clone())?.parse()?)
    }

    /// When the Lease was renewed last.
    async fn renewed(&self) -> Result<Timestamp> {
        let spec = self.leases.get(&self.name).await?.spec.unwrap_or_default();
        Ok(spec.renew_time.with_context(|| self.process.log_end())?.0)
    }

    async fn renews_once_more(&self) {
        let before = self.renewed().await.unwrap();
        eventually(SOON, "the Lease is renewed", || async {
            ensure!(self.renewed().await? > before);
            Ok(())
        })
        .await;
    }
}

async fn is_released(leases: &Api<Lease>, name: &str) -> bool {
    let holder = leases.get(name).await.unwrap().spec.unwrap().holder_identity;
    holder.is_none_or(|holder| holder.is_empty())
}

/// The oldest thread of the working runtime: the one that blocking work does not run on.
fn working_thread(process: u32) -> u32 {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let tasks = tasks.map(|task| task.unwrap().path());
    let working =
        tasks.filter(|task| fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == "cloudwit-work"));
    let ids = working.filter_map(|task| task.file_name()?.to_str()?.parse().ok());
    ids.min().unwrap()
}

/// Stops one thread of another process until the answer is killed. Only a debugger can.
fn stop_thread(thread: u32) -> Result<std::process::Child> {
    const TRACER: &str = "\
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
PTRACE_SEIZE, PTRACE_INTERRUPT = 0x4206, 0x4207
for request in PTRACE_SEIZE, PTRACE_INTERRUPT:
    if libc.ptrace(request, int(sys.argv[1]), None, None):
        sys.exit(os.strerror(ctypes.get_errno()))
print('stopped', flush=True)
sys.stdin.read()
";
    let mut tracer = Command::new("python3")
        .args(["-c", TRACER, &thread.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut said = String::new();
    BufReader::new(tracer.stdout.take().context("no output")?).read_line(&mut said)?;
    ensure!(said.trim() == "stopped", "the tracer ended: {}", tracer.wait()?);
    Ok(tracer)
}

/// A process whose parent this is.
fn child_of(parent: u32) -> Result<u32> {
    let tasks = Path::new("/proc").join(parent.to_string()).join("task");
    for task in fs::read_dir(tasks)? {
        let children = fs::read_to_string(task?.path().join("children")).unwrap_or_default();
        if let Some(child) = children.split_whitespace().next() {
            return Ok(child.parse()?);
        }
    }
    anyhow::bail!("it has no child")
}

/// A zombie is gone too: nothing runs.
fn child_is_gone(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')')
        .next()
        .is_none_or(|state| state.is_empty() || state.trim_start().starts_with('Z'))
}
