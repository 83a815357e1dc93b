//! `/healthz`, `/livez` and `/readyz`: the checks, and how their results are written (`apiserver pkg/server/healthz`).
//!
//! Every part of the process that can be unwell adds a source with one line in `run.rs`. `/healthz` and `/livez` ask whether the process
//! had better be started anew, `/readyz` also whether it can do its work now. Reasons are for those who have proven who they are.

use std::fmt;
use std::sync::Arc;

use axum::http::StatusCode;

use crate::health_slis::Slis;

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

/// What a reader wants to see.
#[derive(Debug, Clone, Default)]
pub struct Wish {
    /// One line for each check, also when all is well.
    pub verbose: bool,
    /// Checks that do not count.
    pub exclude: Vec<String>,
    /// The only check that counts.
    pub only: Option<String>,
    /// Whether reasons are told.
    pub reasons: bool,
}

type Source = Arc<dyn Fn() -> Vec<Check> + Send + Sync>;

/// All checks of the process; clones share them.
#[derive(Clone, Default)]
pub struct Checks {
    sources: Vec<Source>,
    slis: Slis,
}

impl fmt::Debug for Checks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checks").finish_non_exhaustive()
    }
}

impl Checks {
    /// Asks this source too, in the order of adding. It has to answer at once.
    pub fn add(&mut self, source: impl Fn() -> Vec<Check> + Send + Sync + 'static) {
        self.sources.push(Arc::new(source));
    }

    /// What was found so far, as metrics.
    pub fn slis(&self) -> &Slis {
        &self.slis
    }

    /// How everything is now, without counting it as a look.
    pub fn states(&self) -> Vec<Check> {
        self.sources.iter().flat_map(|source| source()).collect()
    }

    /// Makes the checks of a page.
    pub fn look(&self, page: Page, wish: &Wish) -> (StatusCode, String) {
        let mut checks = vec![Check::live("ping", State::Healthy)];
        checks.extend(self.sources.iter().flat_map(|source| source()));
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

/// The checks of the controllers: `informer-sync`, each that runs by its name, and the brake.
pub fn of_controllers(health: &cloudwit_controllers::Health) -> Vec<Check> {
    let waiting = health.waiting_for();
    let synced = match waiting.as_slice() {
        [] => State::Healthy,
        kinds => State::Failed(format!("the first list of {} is not complete", kinds.join(" and "))),
    };
    let mut checks = vec![Check::ready("informer-sync", synced)];
    for (controller, hangs) in health.controllers() {
        let state = hangs.map_or(State::Healthy, |seconds| {
            State::Failed(format!("work on one object has not ended for {seconds:.0} s"))
        });
        checks.push(Check::live(controller.name(), state));
    }
    if health.brake_engaged() {
        let why = "so many Nodes seem to be gone that none is deleted until somebody looks".into();
        checks.push(Check::ready("node-deletion-brake", State::Warning(why)));
    }
    checks
}

/// The check `leaderElection`, which also says whether this replica leads: only that one does any work.
pub fn of_leadership(health: crate::leadership::LeadershipHealth) -> impl Fn() -> Vec<Check> + Send + Sync {
    move || {
        let standing = if health.leads() {
            "this replica leads"
        } else {
            "another replica leads, or none yet"
        };
        let state = health
            .check()
            .map_or_else(State::Failed, |()| State::Standing(standing.into()));
        vec![Check::live("leaderElection", state)]
    }
}

/// One check for each provider: that it is loaded; a refused change of its files is a warning, since the last good one works.
pub fn of_providers(
    providers: &[Arc<cloudwit_host::SwappableProvider>],
) -> impl Fn() -> Vec<Check> + Send + Sync + use<> {
    let providers = providers.to_vec();
    move || {
        let check = |provider: &Arc<cloudwit_host::SwappableProvider>| {
            let status = provider.status();
            let state = if status.refused().is_some() {
                State::Warning(status.line())
            } else {
                State::Healthy
            };
            Check::ready(&format!("provider-{}", provider.name()), state)
        };
        providers.iter().map(check).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checks() -> Checks {
        let mut checks = Checks::default();
        checks.add(|| {
            vec![
                Check::live("leaderElection", State::Healthy),
                Check::ready("informer-sync", State::Failed("Nodes".into())),
                Check::ready("brake", State::Warning("many".into())),
            ]
        });
        checks
    }

    #[test]
    fn readiness_fails_with_a_reason_for_those_who_are_known() {
        let (code, text) = checks().look(Page::Readyz, &Wish::default());
        assert_eq!(code, 500);
        assert_eq!(
            text,
            "[+]ping ok\n[+]leaderElection ok\n[-]informer-sync failed: reason withheld\n[+]brake ok\nreadyz check failed\n"
        );
        let (_, text) = checks().look(
            Page::Readyz,
            &Wish {
                reasons: true,
                ..Wish::default()
            },
        );
        assert!(
            text.contains("[-]informer-sync failed: Nodes\n[+]brake ok, but: many\n"),
            "{text}"
        );
    }

    #[test]
    fn a_process_that_is_not_ready_lives() {
        assert_eq!(
            checks().look(Page::Livez, &Wish::default()),
            (StatusCode::OK, "ok".into())
        );
        let verbose = Wish {
            verbose: true,
            ..Wish::default()
        };
        let (code, text) = checks().look(Page::Healthz, &verbose);
        assert_eq!(
            (code.as_u16(), text.as_str()),
            (200, "[+]ping ok\n[+]leaderElection ok\nhealthz check passed\n")
        );
    }

    #[test]
    fn a_check_can_be_left_out_or_be_the_only_one() {
        let exclude = Wish {
            exclude: vec!["informer-sync".into(), "nope".into()],
            verbose: true,
            ..Wish::default()
        };
        let (code, text) = checks().look(Page::Readyz, &exclude);
        assert_eq!(code, 200);
        assert!(
            text.contains("[+]informer-sync excluded: ok\n") && text.contains("no matches for \"nope\""),
            "{text}"
        );
        let only = |name: &str| {
            checks()
                .look(
                    Page::Readyz,
                    &Wish {
                        only: Some(name.into()),
                        ..Wish::default()
                    },
                )
                .0
                .as_u16()
        };
        assert_eq!(
            (only("leaderElection"), only("informer-sync"), only("nope")),
            (200, 500, 404)
        );
    }

    #[test]
    fn every_look_is_counted_until_the_counts_are_reset() {
        let checks = checks();
        checks.look(Page::Readyz, &Wish::default());
        checks.look(Page::Readyz, &Wish::default());
        let text = checks.slis().text();
        assert!(
            text.contains("kubernetes_healthcheck{name=\"informer-sync\",type=\"readyz\"} 0\n"),
            "{text}"
        );
        assert!(
            text.contains("kubernetes_healthchecks_total{name=\"ping\",status=\"success\",type=\"readyz\"} 2\n"),
            "{text}"
        );
        assert!(
            text.contains("kubernetes_healthchecks_total{name=\"informer-sync\",status=\"error\",type=\"readyz\"} 2\n"),
            "{text}"
        );
        checks.slis().reset();
        assert!(!checks.slis().text().contains("ping"));
    }
}
