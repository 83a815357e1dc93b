//! One call of a loaded provider: retries while the cloud is unavailable, exit codes of failures.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use cloudwit_host::{Host, Provider};
use cloudwit_model::{Abilities, Answer, Cloud as _, CloudError, Failure, Retry};
use prometheus_client::registry::Registry;
use tokio::time::{Instant, sleep, timeout};

use crate::commands::cluster::Cluster;
use crate::commands::provider::source::{self, SourceArgs};
use crate::flags::values::duration::GoDuration;
use crate::providers::host;

/// Exit code when the cloud may answer later.
const LATER: u8 = 3;

/// Exit code when the provider does not have the interface.
const NOT_EXPORTED: u8 = 4;

/// Progress is reported after this.
const QUIET: Duration = Duration::from_secs(2);

/// Between two tries where the failure says nothing; doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The longest of these.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Arguments of all of them.
#[derive(Debug, clap::Args)]
pub struct SessionArgs {
    #[command(flatten)]
    source: SourceArgs,

    /// Retry for so long while the cloud does not answer, as at the start of a machine; 0 tries once.
    #[arg(id = "cloud_wait", long = "wait", value_name = "DURATION", default_value = "30s")]
    wait: GoDuration,

    /// Where the compiled component is kept between runs; must belong to this user alone. Without it each run compiles.
    #[arg(id = "cloud_cache_dir", long = "cache-dir", value_name = "DIR")]
    cache_dir: Option<PathBuf>,
}

/// A loaded provider.
#[derive(Debug)]
pub struct Session {
    /// It.
    pub provider: Provider,
    wait: Duration,
}

/// Why there is no answer, and what to exit with.
#[derive(Debug)]
pub struct Ended {
    code: u8,
    message: String,
}

impl Ended {
    /// Prints why, for the exit.
    pub fn exit(self) -> ExitCode {
        eprintln!("cloudwit: {}", self.message);
        ExitCode::from(self.code)
    }
}

/// Loads the provider. The inner error: it does not have the interface.
pub async fn begin(
    args: &SessionArgs,
    (interface, has): (&str, fn(&Abilities) -> bool),
) -> anyhow::Result<Result<Session, Ended>> {
    let from = args.source.read()?;
    let host = Host::new(host::on_this_system(args.cache_dir.clone()), &mut Registry::default())?;
    let outside = Arc::new(Cluster::default()).outside();
    let loading = async {
        let file = from.component.file(args.cache_dir.as_deref()).await?;
        anyhow::Ok(host.load(&file, from.settings.clone(), outside).await?)
    };
    let provider = told("loading the provider", loading).await?;
    if !has(&provider.abilities()) {
        return Ok(Err(Ended {
            code: NOT_EXPORTED,
            message: format!(
                "provider {:?} does not export {interface}; `cloudwit inspect {}` shows what it does",
                from.settings.name, from.component
            ),
        }));
    }
    source::insist_on_soundness(&provider, &from).await?;
    Ok(Ok(Session {
        provider,
        wait: args.wait.0,
    }))
}

impl Session {
    /// Calls until there is an answer, a failure that stays, or no time. `ask` gets the token of the last pending answer.
    pub async fn ask<'a, T>(
        &self,
        doing: &str,
        mut ask: impl FnMut(Option<String>) -> Answer<'a, T> + Send,
    ) -> Result<T, Ended> {
        let (until, mut pause, mut token) = (Instant::now() + self.wait, FIRST_PAUSE, None::<String>);
        loop {
            let error = match told(doing, ask(token.clone())).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let Some(after) = again(&error, pause) else {
                return Err(Ended {
                    code: 1,
                    message: format!("{doing}: {error}"),
                });
            };
            match &error {
                CloudError::Failure(Failure::Pending { token: new, .. }) => token = Some(new.clone()),
                error if !error.keeps_token() => token = None,
                _ => {}
            }
            if Instant::now() + after > until {
                return Err(Ended {
                    code: LATER,
                    message: format!("{doing}: {error}; try again later, or with a longer --wait"),
                });
            }
            eprintln!("{doing}: {error}; again in {after:?}");
            sleep(after).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

/// When a call may succeed that failed so; none when only a person can change that. `pause` is for failures that say nothing.
fn again(error: &CloudError, pause: Duration) -> Option<Duration> {
    match error {
        CloudError::Failure(
            Failure::Unavailable(_) | Failure::Conflict(_) | Failure::Aborted(_) | Failure::Exhausted(_),
        ) => Some(pause),
        CloudError::Failure(failure @ (Failure::Pending { .. } | Failure::RateLimited { .. })) => match failure.retry()
        {
            Retry::After(after) => Some(after),
            _ => Some(pause),
        },
        _ => None,
    }
}

/// Says on standard error what lasts longer than two seconds.
pub async fn told<T>(doing: &str, work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    match timeout(QUIET, &mut work).await {
        Ok(done) => done,
        Err(_) => {
            eprintln!("{doing} ...");
            work.await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_failures_are_retried() {
        let pause = Duration::from_secs(4);
        let after = |failure: Failure| again(&failure.into(), pause);
        assert_eq!(after(Failure::Unavailable("x".into())), Some(pause));
        let limited = Failure::RateLimited {
            after: Some(Duration::from_secs(7)),
            message: "x".into(),
        };
        assert_eq!(after(limited), Some(Duration::from_secs(7)));
        assert_eq!(after(Failure::Denied("x".into())), None);
        assert_eq!(after(Failure::NotFound("x".into())), None);
        assert_eq!(after(Failure::InvalidResponse("x".into())), None);
    }
}
