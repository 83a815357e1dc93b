//! Sources of the health checks: controllers, leadership, providers.

use std::sync::Arc;

use crate::serving::health::checks::{Check, State};

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
        let why = "Node deletion paused: too many Nodes missing".into();
        checks.push(Check::ready("node-deletion-brake", State::Warning(why)));
    }
    checks
}

/// The check `leaderElection`, which also says whether this replica leads: only that one does any work.
pub fn of_leadership(health: crate::election::candidate::LeadershipHealth) -> impl Fn() -> Vec<Check> + Send + Sync {
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
