//! What both replicas are started from: configuration, components, secrets and certificates, each replaceable while they run.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};
use serde_json::json;

use crate::canary::{Needles, WORD};

/// Pod ranges of all Nodes; each Node has 64 addresses of it.
pub const CLUSTER_CIDR: &str = "10.128.0.0/9";

/// Marks in the cloud what belongs to the cluster.
pub const CLUSTER: &str = "soak";

/// The name of the provider that most Nodes have.
pub const GOOD: &str = "sim";

/// The name of the provider that misbehaves.
pub const HOSTILE: &str = "hostile";

/// The guest that behaves at the Node `trigger`, whose system UUID is the time it waits, in milliseconds.
const BEHAVES: &str = "sleeps";

/// The files of one run.
pub struct Files {
    folder: PathBuf,
    guests: PathBuf,
    sim: Vec<u8>,
    /// Both count, so that no content is ever the same again.
    tokens: AtomicU32,
    variants: AtomicU32,
}

impl Files {
    /// Makes the folder anew, with everything but the configuration in it.
    ///
    /// # Errors
    ///
    /// When a file cannot be read or written.
    pub fn new(folder: &Path, sim: &Path, guests: &Path, needles: &Needles) -> Result<Self> {
        if folder.exists() {
            fs::remove_dir_all(folder).with_context(|| format!("removing {}", folder.display()))?;
        }
        fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
        let files = Self {
            folder: folder.to_owned(),
            guests: guests.to_owned(),
            sim: fs::read(sim).with_context(|| format!("reading {}", sim.display()))?,
            tokens: AtomicU32::new(0),
            variants: AtomicU32::new(0),
        };
        files.write("token", files.token().as_bytes())?;
        files.write("hostile-token", format!("{WORD}hostile-81f3").as_bytes())?;
        files.write("sim.wasm", &files.sim)?;
        files.behave()?;
        files.rotate_certificate(needles)?;
        Ok(files)
    }

    /// A file or folder of the run.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Replaces a file as a whole.
    fn write(&self, name: &str, content: &[u8]) -> Result<()> {
        let (file, beside) = (self.path(name), self.path(&format!(".{name}")));
        fs::write(&beside, content).with_context(|| format!("writing {}", beside.display()))?;
        fs::rename(&beside, &file).with_context(|| format!("replacing {}", file.display()))
    }

    /// The configuration for the cloud on this port, reached by this name.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn configure(&self, cloud: &str, port: u16) -> Result<()> {
        self.write(
            "sim.json",
            json!({ "endpoint": format!("http://{cloud}:{port}") })
                .to_string()
                .as_bytes(),
        )?;
        let grant = json!({
            "scheme": "http", "host": cloud, "port": port, "methods": ["GET", "POST", "PUT", "DELETE"],
            "allowLoopback": true, "connectTimeoutSeconds": 5, "responseTimeoutSeconds": 5,
        });
        let token = json!({
            "name": "token", "file": self.path("token"), "hosts": [format!("{cloud}:{port}")], "uses": ["placeholder"],
        });
        let hostile_token = json!({ "name": "token", "file": self.path("hostile-token"), "uses": ["reveal"] });
        let config = json!({
            "apiVersion": "cloudwit.dev/v1alpha1",
            "kind": "CloudwitConfiguration",
            "providers": [
                {
                    "name": GOOD, "component": "./sim.wasm", "cloudConfigFile": "sim.json",
                    "grants": { "http": [grant], "secrets": [token] },
                    "limits": { "wallTime": "15s" },
                },
                {
                    "name": HOSTILE, "component": "./hostile.wasm",
                    "grants": { "secrets": [hostile_token] },
                    "limits": { "wallTime": "5s", "cpuTime": "1s", "concurrency": 4 },
                },
            ],
            "routing": { "default": GOOD },
        });
        self.write("cloudwit.yaml", config.to_string().as_bytes())
    }

    /// A kubeconfig whose token is a canary.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn kubeconfig(&self, server: &str) -> Result<PathBuf> {
        let text = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{ "name": "proxy", "cluster": { "server": server } }],
            "users": [{ "name": "somebody", "user": { "token": format!("{WORD}kubeconfig-81f3") } }],
            "contexts": [{ "name": "proxy", "context": { "cluster": "proxy", "user": "somebody" } }],
            "current-context": "proxy",
        });
        self.write("kubeconfig", text.to_string().as_bytes())?;
        Ok(self.path("kubeconfig"))
    }

    /// The cloud's token now.
    pub fn token(&self) -> String {
        format!("{WORD}token-{}-81f3", self.tokens.load(Ordering::Relaxed))
    }

    /// Replaces the cloud's token; gives the new one. The cloud has to know it already: it is [`next_token`](Self::next_token).
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn rotate_token(&self) -> Result<String> {
        self.tokens.fetch_add(1, Ordering::Relaxed);
        let token = self.token();
        self.write("token", token.as_bytes())?;
        Ok(token)
    }

    /// The token after the one in use.
    pub fn next_token(&self) -> String {
        format!("{WORD}token-{}-81f3", self.tokens.load(Ordering::Relaxed) + 1)
    }

    /// Replaces the certificate of HTTPS and its key; gives the certificate in DER.
    ///
    /// # Errors
    ///
    /// When it cannot be made or written.
    pub fn rotate_certificate(&self, needles: &Needles) -> Result<Vec<u8>> {
        let names = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).context("making a certificate")?;
        let key = made.signing_key.serialize_pem();
        for line in key.lines().filter(|line| line.len() > 40 && !line.starts_with('-')) {
            needles.add(line);
        }
        self.write("tls.crt", made.cert.pem().as_bytes())?;
        self.write("tls.key", key.as_bytes())?;
        Ok(made.cert.der().to_vec())
    }

    /// The component of the hostile provider becomes this guest.
    ///
    /// # Errors
    ///
    /// When it cannot be read or written.
    pub fn misbehave(&self, guest: &str) -> Result<()> {
        let file = self.guests.join(format!("{guest}.wasm"));
        let component = fs::read(&file).with_context(|| format!("reading {}", file.display()))?;
        self.write("hostile.wasm", &component)
    }

    /// The component of the hostile provider behaves again.
    ///
    /// # Errors
    ///
    /// When it cannot be read or written.
    pub fn behave(&self) -> Result<()> {
        self.misbehave(BEHAVES)
    }

    /// The component of most Nodes becomes a variant of itself: the same code with another custom section, which no cache knows.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn vary(&self) -> Result<()> {
        let [a, b, c, d] = self.variants.fetch_add(1, Ordering::Relaxed).to_le_bytes();
        let section = [0, 12, 7, b'v', b'a', b'r', b'i', b'a', b'n', b't', a, b, c, d];
        self.write("sim.wasm", &[self.sim.as_slice(), &section].concat())
    }

    /// The component of most Nodes becomes a file that is none.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn break_component(&self) -> Result<()> {
        self.write("sim.wasm", &self.sim[..self.sim.len() / 2])
    }

    /// The component of most Nodes is what it was at the start.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn restore_component(&self) -> Result<()> {
        self.write("sim.wasm", &self.sim)
    }
}
