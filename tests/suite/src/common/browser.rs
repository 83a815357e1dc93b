//! A real Chromium, driven over WebDriver (W3C) by a chromedriver on loopback. It reaches nothing but loopback.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use cloudwit_test_support::programs::child::Child;
use reqwest::{Client, Method};
use serde_json::{Value, json};

/// How long chromedriver may take to start.
const START: Duration = Duration::from_secs(60);

/// One window. Dropping it ends the browser.
pub struct Browser {
    http: Client,
    session: String,
    _driver: Child,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// Starts one; None with `CLOUDWIT_NO_BROWSER`, whose reason is told. A missing one is an error that says how to get it.
    pub async fn start() -> Result<Option<Self>> {
        if let Some(reason) = std::env::var_os(xtask::browser::LEFT_OUT) {
            eprintln!("nothing is looked at in a browser: {}", reason.to_string_lossy());
            return Ok(None);
        }
        let xtask::browser::Programs { chromium, driver } = xtask::browser::find()?;
        let profile = tempfile::tempdir().context("making a profile")?;
        let log = profile.path().join("chromedriver.log");
        let driver = Child::start(&driver, &["--port=0".into()], &log)?;
        let port = driver.said("ChromeDriver was started successfully on port ", START)?;
        // Fails when it is set already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = Client::builder().no_proxy().build().context("making an HTTP client")?;
        let root = format!("http://127.0.0.1:{}", port.trim_end_matches('.'));
        let data = profile.path().join("data");
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "goog:chromeOptions": { "binary": chromium, "args": arguments(&data) },
            "goog:loggingPrefs": { "browser": "ALL" },
        } } });
        let made = call(&http, Method::POST, &format!("{root}/session"), Some(wanted)).await?;
        let id = made["sessionId"].as_str().context("a session without an id")?;
        Ok(Some(Self {
            http,
            session: format!("{root}/session/{id}"),
            _driver: driver,
            _profile: profile,
        }))
    }

    async fn post(&self, command: &str, body: Value) -> Result<Value> {
        call(
            &self.http,
            Method::POST,
            &format!("{}/{command}", self.session),
            Some(body),
        )
        .await
    }

    /// Opens a page and waits until it is loaded.
    pub async fn open(&self, url: &str) -> Result<()> {
        self.post("url", json!({ "url": url })).await.map(|_| ())
    }

    /// What a piece of JavaScript returns; it is the test's, so the page's policy does not hold it.
    pub async fn run(&self, script: &str) -> Result<Value> {
        self.post("execute/sync", json!({ "script": script, "args": [] })).await
    }

    /// What the console says since the last time it was asked: level and text.
    pub async fn console(&self) -> Result<Vec<(String, String)>> {
        let entries = self.post("se/log", json!({ "type": "browser" })).await?;
        let text = |entry: &Value, key: &str| entry[key].as_str().unwrap_or_default().to_owned();
        let entries = entries.as_array().context("the console is no list")?;
        Ok(entries
            .iter()
            .map(|entry| (text(entry, "level"), text(entry, "message")))
            .collect())
    }

    /// A window of this size in CSS pixels; a phone's when it is narrow.
    pub async fn resize(&self, width: u32, height: u32) -> Result<()> {
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.devtools("Emulation.setDeviceMetricsOverride", metrics)
            .await
            .map(|_| ())
    }

    /// What the user likes: `light` or `dark`.
    pub async fn prefer(&self, scheme: &str) -> Result<()> {
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.devtools("Emulation.setEmulatedMedia", features).await.map(|_| ())
    }

    /// Writes a picture of the whole page as a PNG.
    pub async fn picture(&self, file: &Path) -> Result<()> {
        self.capture(file, true).await
    }

    /// Writes a picture of what the window shows of it.
    pub async fn window(&self, file: &Path) -> Result<()> {
        self.capture(file, false).await
    }

    async fn capture(&self, file: &Path, all: bool) -> Result<()> {
        let wish = json!({ "format": "png", "captureBeyondViewport": all });
        let answer = self.devtools("Page.captureScreenshot", wish).await?;
        let picture = answer["data"].as_str().context("no picture")?;
        let bytes = base64(picture).context("a picture that is no base64")?;
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
        }
        std::fs::write(file, bytes).with_context(|| format!("writing {}", file.display()))
    }

    async fn devtools(&self, command: &str, parameters: Value) -> Result<Value> {
        self.post("goog/cdp/execute", json!({ "cmd": command, "params": parameters }))
            .await
    }

    /// Ends the browser in order.
    pub async fn close(self) -> Result<()> {
        call(&self.http, Method::DELETE, &self.session, None).await.map(|_| ())
    }
}

/// Without a sandbox, which needs rights that a container does not give, and without anything that asks somebody else.
fn arguments(data: &Path) -> Vec<String> {
    let fixed = [
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-extensions",
        "--no-proxy-server",
        "--hide-scrollbars",
    ];
    let mut all: Vec<String> = fixed.map(String::from).into();
    all.push(format!("--user-data-dir={}", data.display()));
    all
}

async fn call(http: &Client, method: Method, url: &str, body: Option<Value>) -> Result<Value> {
    let mut request = http.request(method, url).timeout(START);
    if let Some(body) = body {
        request = request
            .header("content-type", "application/json")
            .body(body.to_string());
    }
    let response = request.send().await.with_context(|| format!("asking {url}"))?;
    let status = response.status();
    let text = response
        .text()
        .await
        .with_context(|| format!("reading what {url} says"))?;
    if !status.is_success() {
        bail!("{url} answers {status}: {}", text.chars().take(800).collect::<String>());
    }
    let mut answer: Value = serde_json::from_str(&text).with_context(|| format!("{url} answers no JSON"))?;
    Ok(answer["value"].take())
}

fn base64(text: &str) -> Option<Vec<u8>> {
    let digit = |letter: u8| match letter {
        b'A'..=b'Z' => Some(letter - b'A'),
        b'a'..=b'z' => Some(letter - b'a' + 26),
        b'0'..=b'9' => Some(letter - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let digits: Option<Vec<u8>> = text.trim_end_matches('=').bytes().map(digit).collect();
    let bytes = digits?;
    let quads = bytes.chunks(4).flat_map(|quad| {
        let bits = quad.iter().fold(0u32, |bits, digit| bits << 6 | u32::from(*digit)) << (6 * (4 - quad.len()));
        bits.to_be_bytes()
            .into_iter()
            .skip(1)
            .take(quad.len() - 1)
            .collect::<Vec<u8>>()
    });
    Some(quads.collect())
}
