//! `/healthz`, `/livez` and `/readyz`: checks, and the format of their results.
//!
//! Every part of the process that can be unwell adds a source with one line in `run.rs`. `/healthz` and `/livez` report whether the process
//! had better be started anew, `/readyz` also whether it can do its work now. Reasons are for those who have proven who they are.
//! What is known on the working thread is computed there; while it stands still, its last answers count, and the check `working-thread` says so.

use std::fmt;
use std::sync::Arc;

use axum::http::StatusCode;

use crate::process::watchdog::Watchdog;
use crate::process::work_runtime::WorkRuntime;
use crate::serving::health::slis::Slis;

/// How a check went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Well.
    Healthy,
    /// Well, and this is how it stands.
    Standing(String),
    /// Well, and something needs attention.
    Warning(String),
    /// Not well.
    Failed(String),
}

/// One check that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Its name, for `?exclude=` and `/readyz/NAME`.
    pub name: String,
    /// Whether it is about readiness alone.
    pub readiness_only: bool,
    /// How it went.
    pub state: State,
}

impl Check {
    /// A check of whether the process lives; a failure has it started anew.
    pub fn live(name: &str, state: State) -> Self {
        Self {
            name: name.into(),
            readiness_only: false,
            state,
        }
    }

    /// A check of whether the process can do its work.
    pub fn ready(name: &str, state: State) -> Self {
        Self {
            name: name.into(),
            readiness_only: true,
            state,
        }
    }
}

/// The pages with checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Page {
    /// Upstream's.
    Healthz,
    /// For a liveness probe.
    Livez,
    /// For a readiness probe.
    Readyz,
}

impl Page {
    /// Its name in the path, in its last line and in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Healthz => "healthz",
            Self::Livez => "livez",
            Self::Readyz => "readyz",
        }
    }
}

/// Options of a reader.
#[derive(Debug, Clone, Default)]
pub struct Wish {
    /// One line for each check, also when all is well.
    pub verbose: bool,
    /// Checks that do not count.
    pub exclude: Vec<String>,
    /// The only check that counts.
    pub only: Option<String>,
    /// Whether reasons are shown.
    pub reasons: bool,
}

type Source = Arc<dyn Fn() -> Vec<Check> + Send + Sync>;

/// All checks of the process; clones share them.
#[derive(Clone, Default)]
pub struct Checks {
    sources: Vec<Source>,
    of_work: Vec<Source>,
    beside: Option<(WorkRuntime, Watchdog)>,
    slis: Slis,
}

impl fmt::Debug for Checks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checks").finish_non_exhaustive()
    }
}

impl Checks {
    /// Checks that are made beside a working runtime, with that of its watchdog.
    pub fn beside(work: WorkRuntime, watchdog: Watchdog) -> Self {
        Self {
            beside: Some((work, watchdog)),
            ..Self::default()
        }
    }

    /// Adds this source, in the order of adding. It has to answer at once, and share no lock with the working thread.
    pub fn add(&mut self, source: impl Fn() -> Vec<Check> + Send + Sync + 'static) {
        self.sources.push(Arc::new(source));
    }

    /// The same for a source that is called on the working thread.
    pub fn add_of_work(&mut self, source: impl Fn() -> Vec<Check> + Send + Sync + 'static) {
        self.of_work.push(Arc::new(source));
    }

    /// What was found so far, as metrics.
    pub fn slis(&self) -> &Slis {
        &self.slis
    }

    /// How everything is now, without counting it as a look.
    pub async fn states(&self) -> Vec<Check> {
        let mut checks = ask(&self.sources);
        let Some((work, watchdog)) = &self.beside else {
            checks.extend(ask(&self.of_work));
            return checks;
        };
        checks.push(watchdog.check());
        let found = if watchdog.is_stalled() {
            None
        } else {
            let sources = self.of_work.clone();
            work.query(move || ask(&sources)).await
        };
        match found {
            Some(found) => {
                watchdog.remember(&found);
                checks.extend(found);
            }
            None => checks.extend(watchdog.remembered()),
        }
        checks
    }

    /// Makes the checks of a page.
    pub async fn look(&self, page: Page, wish: &Wish) -> (StatusCode, String) {
        let mut checks = vec![Check::live("ping", State::Healthy)];
        checks.extend(self.states().await);
        checks.retain(|check| page == Page::Readyz || !check.readiness_only);
        self.slis.seen(page, &checks);
        if let Some(only) = &wish.only {
            checks.retain(|check| check.name == *only);
            if checks.is_empty() {
                return (StatusCode::NOT_FOUND, format!("there is no check {only:?}\n"));
            }
        }
        write(page, wish, &checks)
    }
}

fn ask(sources: &[Source]) -> Vec<Check> {
    sources.iter().flat_map(|source| source()).collect()
}

fn write(page: Page, wish: &Wish, checks: &[Check]) -> (StatusCode, String) {
    let excluded = |check: &Check| wish.exclude.contains(&check.name);
    let failed = checks
        .iter()
        .any(|check| matches!(check.state, State::Failed(_)) && !excluded(check));
    let (code, end) = if failed {
        (StatusCode::INTERNAL_SERVER_ERROR, "failed")
    } else {
        (StatusCode::OK, "passed")
    };
    if !failed && !wish.verbose {
        return (code, "ok".into());
    }
    let mut text: String = checks
        .iter()
        .map(|check| {
            if excluded(check) {
                format!("[+]{} excluded: ok\n", check.name)
            } else {
                line(check, wish.reasons)
            }
        })
        .collect();
    for name in wish
        .exclude
        .iter()
        .filter(|name| !checks.iter().any(|check| check.name == **name))
    {
        text += &format!("warn: some health checks cannot be excluded: no matches for {name:?}\n");
    }
    (code, text + &format!("{} check {end}\n", page.name()))
}

fn line(check: &Check, reasons: bool) -> String {
    match &check.state {
        State::Standing(how) if reasons => format!("[+]{} ok: {how}\n", check.name),
        State::Warning(why) if reasons => format!("[+]{} ok, but: {why}\n", check.name),
        State::Healthy | State::Standing(_) | State::Warning(_) => format!("[+]{} ok\n", check.name),
        State::Failed(why) if reasons => format!("[-]{} failed: {why}\n", check.name),
        State::Failed(_) => format!("[-]{} failed: reason withheld\n", check.name),
    }
}

#[cfg(test)]
mod tests;
