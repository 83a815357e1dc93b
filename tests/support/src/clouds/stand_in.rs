//! A cloud for which no third-party server exists, answered by a program of ours (`tests/stand-ins`) that the cloud's own client judges.
//!
//! A stand-in counts calls, and does on demand what clouds do on bad days: [`StandIn::faults`], [`StandIn::latency`]. What only an
//! administrator of the cloud does (start machines, end one) is [`StandIn::call`].

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use http::{Method, Request};
use kube::client::Body;
use kube::{Client, Config};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::clouds::moto::log_file;
use crate::eventually;
use crate::programs::child::Child;
use crate::scenes::installation::SOON;

/// How long one may take to start on a busy machine. It usually takes half a second.
const START: Duration = Duration::from_secs(120);

/// Marks requests of tests to the cloud itself: they meet no faults and are not counted (`tests/stand-ins/frame/server.py`).
const OF_TESTS: &str = "x-of-tests";

/// A running stand-in. Dropping it ends it.
#[derive(Debug)]
pub struct StandIn {
    /// Behind a lock, so that threads may share it.
    process: Mutex<Child>,
    url: String,
    python: PathBuf,
}

/// A call that it answered.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Call {
    /// `GET` and so on.
    pub method: String,
    /// Path and query as they were sent.
    pub target: String,
    /// Status of the answer; 0 for none.
    pub status: u16,
    /// The call as the cloud's documentation names it, to count by.
    pub name: String,
    /// The header `User-Agent`.
    pub agent: String,
}

impl StandIn {
    /// Starts the stand-in of a cloud, the name of a folder in `tests/stand-ins` and of a file in `tests/python` with what it needs. The
    /// environment is made first when that has not been done yet (with progress).
    ///
    /// # Errors
    ///
    /// When Python or a package is missing, or the server does not start (with the end of its log).
    pub async fn start(cloud: &'static str, arguments: &[&str]) -> Result<Self> {
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        tokio::task::spawn_blocking(move || spawn(cloud, &arguments))
            .await
            .context("the thread that starts a stand-in panicked")?
    }

    /// Its URL, without a slash at its end.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The Python in which it runs, which has the cloud's own client too.
    pub fn python(&self) -> &PathBuf {
        &self.python
    }

    /// Where it writes its log, a line for each request.
    pub fn log(&self) -> PathBuf {
        let process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        process.log().to_owned()
    }

    /// Whether it still runs.
    pub fn runs(&self) -> bool {
        let process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        process.runs()
    }

    /// What its method `do_NAME` returns.
    ///
    /// # Errors
    ///
    /// When the stand-in refuses; with its message.
    pub async fn call(&self, name: &str, arguments: Value) -> Result<Value> {
        let path = format!("/test/do/{name}");
        let mut answer = ask(&self.url, Method::POST, &path, arguments.to_string()).await?;
        Ok(answer["result"].take())
    }

    /// All resources that its method `do_resources` finds for these arguments.
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call).
    pub async fn resources(&self, arguments: Value) -> Result<Vec<Value>> {
        let all = self.call("resources", arguments).await?;
        let all = all.as_object().context("the resources are no object")?;
        Ok(all.values().cloned().collect())
    }

    /// Adds faults: objects with the fields of `Fault` in `tests/stand-ins/frame/faults.py`.
    ///
    /// # Errors
    ///
    /// When the stand-in knows no such field.
    pub async fn faults(&self, faults: Value) -> Result<()> {
        let faults = faults.to_string();
        ask(&self.url, Method::POST, "/test/faults", faults).await.map(drop)
    }

    /// Removes all faults.
    ///
    /// # Errors
    ///
    /// When the stand-in does not answer.
    pub async fn heal(&self) -> Result<()> {
        let none = String::new();
        ask(&self.url, Method::DELETE, "/test/faults", none).await.map(drop)
    }

    /// Lets each answer take that long.
    ///
    /// # Errors
    ///
    /// When the stand-in does not answer.
    pub async fn latency(&self, each: Duration) -> Result<()> {
        let seconds = json!({ "seconds": each.as_secs_f64() }).to_string();
        ask(&self.url, Method::PUT, "/test/latency", seconds).await.map(drop)
    }

    /// Opens another port, over TLS, for clients with a certificate of this authority and no others; all three are PEM files. Its number.
    ///
    /// # Errors
    ///
    /// When a file is none of that.
    pub async fn tls(&self, certificate: &Path, key: &Path, authority: &Path) -> Result<u16> {
        let files = json!({ "certificate": certificate, "key": key, "authority": authority });
        let answer = ask(&self.url, Method::POST, "/test/tls", files.to_string()).await?;
        let port = answer["result"].as_u64().and_then(|port| port.try_into().ok());
        port.with_context(|| format!("no port in {answer}"))
    }

    /// What was called since the start or [`forget_calls`](Self::forget_calls), in order.
    ///
    /// # Errors
    ///
    /// When the stand-in does not answer.
    pub async fn calls(&self) -> Result<Vec<Call>> {
        let calls = ask(&self.url, Method::GET, "/test/calls", String::new()).await?;
        serde_json::from_value(calls).context("the calls of a stand-in")
    }

    /// Begins to remember calls anew.
    ///
    /// # Errors
    ///
    /// When the stand-in does not answer.
    pub async fn forget_calls(&self) -> Result<()> {
        let none = String::new();
        ask(&self.url, Method::DELETE, "/test/calls", none).await.map(drop)
    }

    /// As [`count_calls`](Self::count_calls), once each operation that a change began was looked at. More looks than changes are not counted: how often
    /// something that goes on is looked at is a matter of time.
    ///
    /// # Panics
    ///
    /// When some are not after [`SOON`].
    ///
    /// # Errors
    ///
    /// When the stand-in does not answer.
    pub async fn count_settled_calls(&self, title: &str) -> Result<usize> {
        eventually(SOON, "all operations are looked at", || async {
            let calls = self.calls().await.map_err(|error| error.to_string())?;
            let (looks, changes) = looks_and_changes(&calls);
            if looks >= changes {
                Ok(())
            } else {
                Err(format!("{looks} looks at {changes} operations"))
            }
        })
        .await;
        let calls = self.take_calls(title).await?;
        let (looks, changes) = looks_and_changes(&calls);
        Ok(calls.len() - looks.saturating_sub(changes))
    }

    /// How many calls there were since the last look; prints which, under this title.
    ///
    /// # Errors
    ///
    /// When the stand-in does not answer.
    pub async fn count_calls(&self, title: &str) -> Result<usize> {
        Ok(self.take_calls(title).await?.len())
    }

    async fn take_calls(&self, title: &str) -> Result<Vec<Call>> {
        let calls = self.calls().await?;
        self.forget_calls().await?;
        let mut by_name = BTreeMap::<&str, usize>::new();
        for call in &calls {
            *by_name.entry(&call.name).or_default() += 1;
        }
        println!("{title}: {} requests, {by_name:?}", calls.len());
        Ok(calls)
    }
}

/// How often operations were looked at, and how many changes began one.
fn looks_and_changes(calls: &[Call]) -> (usize, usize) {
    let looks = calls.iter().filter(|call| call.target.contains("/operations/"));
    let changes = calls
        .iter()
        .filter(|call| call.method != "GET" && call.status < 400 && !call.name.ends_with("token"));
    (looks.count(), changes.count())
}

fn spawn(cloud: &str, arguments: &[String]) -> Result<StandIn> {
    let python = xtask::servers::stand_in(cloud)?.python();
    let folder = xtask::workspace::root().join("tests/stand-ins");
    let mut all = vec![
        "-c".to_owned(),
        START_MODULE.to_owned(),
        folder.display().to_string(),
        cloud.to_owned(),
    ];
    all.extend_from_slice(arguments);
    let process = Child::start(&python, &all, &log_file(cloud)?)?;
    let url = format!("http://127.0.0.1:{}", process.said("PORT=", START)?);
    process.said("READY", START)?;
    Ok(StandIn {
        process: Mutex::new(process),
        url,
        python,
    })
}

/// `python -m CLOUD` with the folder of the stand-ins on the path; leaves nothing behind in the folder.
const START_MODULE: &str = "import runpy, sys
sys.dont_write_bytecode = True
folder, cloud = sys.argv[1:3]
sys.path.insert(0, folder)
sys.argv[1:3] = []
runpy.run_module(cloud, run_name='__main__')";

/// What a server for tests answers to a request of a test.
///
/// # Errors
///
/// When it does not answer, answers anything but JSON or nothing, or refuses; with its code and message.
pub(crate) async fn ask(url: &str, method: Method, path: &str, body: String) -> Result<Value> {
    // A client belongs to the tokio runtime in which it is made, so each question makes its own.
    ask_by(&client(url)?, method, path, body).await
}

/// A client for many questions from one place: making one takes much longer than a question.
///
/// # Errors
///
/// When the URL is none.
pub(crate) fn client(url: &str) -> Result<Client> {
    let mut config = Config::new(url.parse()?);
    config.default_retry = false;
    Client::try_from(config).context("making an HTTP client")
}

/// As [`ask`], by this client.
///
/// # Errors
///
/// As [`ask`].
pub(crate) async fn ask_by(client: &Client, method: Method, path: &str, body: String) -> Result<Value> {
    let what = format!("{method} {path} {body}");
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .header(OF_TESTS, "1")
        .body(Body::from(body.into_bytes()))?;
    let answer = client.send(request).await.with_context(|| what.clone())?;
    let status = answer.status();
    let body = answer.into_body().collect_bytes().await.with_context(|| what.clone())?;
    if body.is_empty() && status.is_success() {
        return Ok(Value::Null);
    }
    let answer: Value = serde_json::from_slice(&body)
        .with_context(|| format!("{what}: {status} {}", String::from_utf8_lossy(&body)))?;
    if !status.is_success() {
        bail!("{what}: {} {}", answer["code"], answer["message"]);
    }
    Ok(answer)
}
