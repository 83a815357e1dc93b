//! Where an API server is and how to reach it: kubeconfig or service account of the Pod.
//!
//! All files are read on the blocking pool, once. What is replaced while the process runs (the Pod's authority and token, a kubeconfig's token
//! file, what an exec plugin gives) is followed in the background: no request ever waits for a file or a plugin.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloudwit_host::bounded_work::{FILE_LIMIT, bounded};
use futures::FutureExt as _;
use kube::Config;
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig, KubeconfigError};

use crate::api::credentials::Bearer;
use crate::config::yaml;
use crate::process::mirrored_file::MirroredFile;
use crate::process::watched_files::{self, read_change, read_file};

/// Everything to make clients from; clones share what is followed.
#[derive(Clone)]
pub struct ApiConfig {
    /// For the library; it names no file that can hang, no token file and no plugin.
    pub config: Config,
    /// The token that changes; none where credentials are in `config`.
    pub bearer: Option<Bearer>,
    /// The authority of the Pod's service account, which the library reads again each minute.
    _authority: Option<Arc<MirroredFile>>,
}

impl ApiConfig {
    /// For an address alone.
    pub fn plain(config: Config) -> Self {
        Self {
            config,
            bearer: None,
            _authority: None,
        }
    }

    /// From a kubeconfig file. `flag` is what named it.
    ///
    /// # Errors
    ///
    /// When it cannot be read or used; with the cause alone, and no line of it: it holds tokens and keys.
    pub async fn of_kubeconfig(flag: &'static str, file: &Path) -> anyhow::Result<Self> {
        let unusable = |why: String| {
            anyhow!(
                "{flag}={}: cannot be used: {why}; give a kubeconfig file of this cluster",
                file.display()
            )
        };
        let path = file.to_owned();
        let read = bounded(&format!("{flag}: kubeconfig"), FILE_LIMIT, move || {
            read_kubeconfig(&path)
        })
        .await;
        let mut config = read
            .map_err(|error| unusable(error.to_string()))?
            .map_err(|error| unusable(format!("{error:#}")))?;
        let bearer = Bearer::take(flag, &mut config.auth_info).await;
        let bearer = bearer.map_err(|error| unusable(format!("{error:#}")))?;
        Ok(Self {
            config,
            bearer,
            _authority: None,
        })
    }

    /// From the service account of this Pod.
    ///
    /// # Errors
    ///
    /// When this is no Pod, or it has no service account.
    pub async fn of_pod() -> anyhow::Result<Self> {
        let mut config = bounded("service account of this Pod", FILE_LIMIT, Config::incluster).await??;
        let bearer = Bearer::take(POD, &mut config.auth_info).await?;
        let authority = match config.root_cert_file.take() {
            Some(file) => Some(mirrored(file, &mut config).await?),
            None => None,
        };
        Ok(Self {
            config,
            bearer,
            _authority: authority,
        })
    }

    /// The same API server without these credentials.
    #[must_use]
    pub fn without_credentials(&self) -> Self {
        let mut other = self.clone();
        other.config.auth_info = AuthInfo::default();
        other.bearer = None;
        other
    }
}

/// What errors call it.
const POD: &str = "service account";

/// Has the library read the authority from memory, and keeps that to what the file says.
async fn mirrored(file: PathBuf, config: &mut Config) -> anyhow::Result<Arc<MirroredFile>> {
    let path = file.clone();
    let content = bounded("authority of this Pod", FILE_LIMIT, move || read_file(&path)).await??;
    let mirror = Arc::new(MirroredFile::new(&content).context("no file in memory")?);
    config.root_cert_file = Some(mirror.path());
    let (watched, target) = (file.clone(), Arc::downgrade(&mirror));
    watched_files::follow(
        move || vec![watched.clone()],
        "authority of this Pod",
        move || {
            let (file, target) = (file.clone(), target.clone());
            read_change("authority of this Pod", move || {
                let content = read_file(&file)?;
                anyhow::ensure!(!content.is_empty(), "it is empty");
                match target.upgrade() {
                    Some(mirror) => Ok(mirror.set(&content)?),
                    None => Ok(()),
                }
            })
        },
    );
    Ok(mirror)
}

/// Reads a kubeconfig with all certificates and keys that it names. Blocks.
fn read_kubeconfig(file: &Path) -> anyhow::Result<Config> {
    let trouble = |error: KubeconfigError| anyhow!(kubeconfig_trouble(&error));
    let kubeconfig = Kubeconfig::read_from(file).map_err(trouble)?;
    // The library's function is async without awaiting anything.
    let read = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).now_or_never();
    let mut config = read.context("it takes too long to read")?.map_err(trouble)?;
    let user = &mut config.auth_info;
    if let Some(file) = user.client_certificate.take() {
        let content = inline(&file)?;
        user.client_certificate_data.get_or_insert(content);
    }
    if let Some(file) = user.client_key.take() {
        let content = inline(&file)?;
        user.client_key_data.get_or_insert_with(|| content.into());
    }
    Ok(config)
}

fn inline(file: &str) -> anyhow::Result<String> {
    let content = read_file(Path::new(file)).with_context(|| format!("{file} cannot be read"))?;
    Ok(STANDARD.encode(content))
}

/// What is wrong with a kubeconfig, without a line of it: it holds tokens and keys.
pub fn kubeconfig_trouble(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::Parse(error) => yaml::without_quotes(error),
        other => root_cause(other),
    }
}

/// The innermost reason: the outer layers only say that a request failed.
pub fn root_cause(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
