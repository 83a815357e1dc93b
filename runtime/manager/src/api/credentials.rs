//! Bearer tokens that change, from a file or an exec plugin, renewed in the background.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloudwit_host::bounded_work::{FILE_LIMIT, bounded};
use http::HeaderValue;
use jiff::Timestamp;
use kube::config::{AuthInfo, ExecConfig};
use parking_lot::RwLock;
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::api::exec_plugin::{self, ExecStatus};
use crate::process::watched_files::{self, read_change, read_file};

/// A plugin is run again when so little of its token's time is left.
const BEFORE_END: Duration = Duration::from_secs(60);

/// The shortest and the longest pause between two runs of a plugin.
const SHORTEST_PAUSE: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// A token that changes; clones share it, and it is followed as long as one of them lives.
#[derive(Clone)]
pub struct Bearer {
    token: Arc<Token>,
    _followed: Arc<DropGuard>,
}

struct Token {
    header: RwLock<HeaderValue>,
    refused: Notify,
}

impl Bearer {
    /// Takes over what would make the library read a file or run a plugin; the first token is got at once. Credentials that are in the
    /// kubeconfig itself come first, as the library has it.
    ///
    /// # Errors
    ///
    /// When there is no first token.
    pub async fn take(flag: &'static str, user: &mut AuthInfo) -> anyhow::Result<Option<Self>> {
        let (file, exec) = (user.token_file.take(), user.exec.take());
        let inline = user.token.is_some() || user.auth_provider.is_some() || user.password.is_some();
        match (file, exec) {
            (Some(file), _) if !inline => Self::of_file(flag, file.into()).await.map(Some),
            (None, Some(exec)) if !inline => Self::of_plugin(flag, user, exec).await,
            _ => Ok(None),
        }
    }

    async fn of_file(flag: &'static str, file: PathBuf) -> anyhow::Result<Self> {
        let path = file.clone();
        let first = bounded(&format!("{flag}: token"), FILE_LIMIT, move || read_token(&path)).await??;
        let (bearer, _) = Self::new(first);
        let (watched, token) = (file.clone(), Arc::downgrade(&bearer.token));
        let what = format!("{flag}: token file");
        watched_files::follow(
            move || vec![watched.clone()],
            what.clone(),
            move || {
                let (file, token, what) = (file.clone(), token.clone(), what.clone());
                let change = move || {
                    let header = read_token(&file)?;
                    if let Some(token) = token.upgrade() {
                        token.set(header);
                    }
                    Ok(())
                };
                async move { read_change(&what, change).await }
            },
        );
        Ok(bearer)
    }

    async fn of_plugin(flag: &'static str, user: &mut AuthInfo, exec: ExecConfig) -> anyhow::Result<Option<Self>> {
        let first = exec_plugin::run(flag, &exec).await?;
        if let (Some(certificate), Some(key)) = (&first.client_certificate_data, &first.client_key_data) {
            user.client_certificate_data = Some(STANDARD.encode(certificate));
            user.client_key_data = Some(STANDARD.encode(key).into());
            if let Some(until) = first.expires()? {
                tracing::info!(%until, "client certificate of the exec plugin is not renewed while the process runs");
            }
        }
        let Some(header) = header_of(&first)? else {
            return Ok(None);
        };
        let (bearer, ended) = Self::new(header);
        let task = follow_plugin(flag, exec, first.expires()?, bearer.token.clone());
        drop(tokio::spawn(async move {
            tokio::select! {
                () = ended.cancelled() => {}
                () = task => {}
            }
        }));
        Ok(Some(bearer))
    }

    fn new(header: HeaderValue) -> (Self, CancellationToken) {
        let ended = CancellationToken::new();
        let bearer = Self {
            token: Arc::new(Token {
                header: RwLock::new(header),
                refused: Notify::new(),
            }),
            _followed: Arc::new(ended.clone().drop_guard()),
        };
        (bearer, ended)
    }

    /// The value of the header `authorization` as it is known now.
    pub fn header(&self) -> HeaderValue {
        self.token.header.read().clone()
    }

    /// The API server did not accept this one: a plugin is run again soon.
    pub fn refused(&self, header: &HeaderValue) {
        if self.header() == *header {
            self.token.refused.notify_one();
        }
    }
}

impl Token {
    fn set(&self, header: HeaderValue) {
        *self.header.write() = header;
    }
}

/// Runs the plugin again before its token ends, and when the token is refused. The old token stays while that fails.
async fn follow_plugin(flag: &'static str, exec: ExecConfig, mut until: Option<Timestamp>, token: Arc<Token>) {
    let mut pause = SHORTEST_PAUSE;
    loop {
        tokio::time::sleep(pause).await;
        let left = until.map(|until| rest(until, Timestamp::now()));
        tokio::select! {
            () = sleep_for(left) => {}
            () = token.refused.notified() => {}
        }
        let renewed = exec_plugin::run(flag, &exec).await;
        let renewed =
            renewed.and_then(|status| Ok((status.expires()?, header_of(&status)?.context("it gave no token")?)));
        match renewed {
            Ok((end, header)) => {
                (until, pause) = (end, SHORTEST_PAUSE);
                token.set(header);
            }
            Err(error) => {
                pause = (pause * 2).min(LONGEST_PAUSE);
                until = Some(Timestamp::now());
                tracing::warn!("{flag}: failed to renew token; using the last one: {error:#}");
            }
        }
    }
}

async fn sleep_for(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => std::future::pending().await,
    }
}

/// How long the token need not be renewed.
fn rest(until: Timestamp, now: Timestamp) -> Duration {
    let left = Duration::try_from(until.duration_since(now)).unwrap_or_default();
    left.saturating_sub(BEFORE_END)
}

fn header_of(status: &ExecStatus) -> anyhow::Result<Option<HeaderValue>> {
    status.token.as_deref().map(header).transpose()
}

/// Blocks.
fn read_token(file: &Path) -> anyhow::Result<HeaderValue> {
    let content = read_file(file).with_context(|| format!("the token file {} cannot be read", file.display()))?;
    let text = String::from_utf8(content).ok();
    let text = text.with_context(|| format!("the token file {} is not UTF-8 text", file.display()))?;
    anyhow::ensure!(!text.trim().is_empty(), "the token file {} is empty", file.display());
    header(&text)
}

fn header(token: &str) -> anyhow::Result<HeaderValue> {
    let mut header = HeaderValue::try_from(format!("Bearer {}", token.trim()))
        .ok()
        .context("the token has characters that no token has")?;
    header.set_sensitive(true);
    Ok(header)
}

#[cfg(test)]
mod tests;
