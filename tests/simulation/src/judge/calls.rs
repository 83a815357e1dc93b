//! How many requests and calls there were, and how many there may be while nothing changes.

use std::time::Duration;

/// Requests and calls since the last reset.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Calls {
    /// Patches and deletes.
    pub(crate) writes: u64,
    /// Reads of single objects.
    pub(crate) requests: u64,
    pub(crate) lists: u64,
    pub(crate) events: u64,
    pub(crate) lookups: u64,
    pub(crate) gets: u64,
    pub(crate) ensures: u64,
    /// All other changes of the cloud.
    pub(crate) changes: u64,
    pub(crate) route_lists: u64,
}

/// The periods that calls may come in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Periods {
    pub(crate) refresh: Duration,
    /// Of look-ups of Nodes that are not Ready.
    pub(crate) monitor: Duration,
    pub(crate) drift: Duration,
    pub(crate) quiet_routes: Duration,
    /// Every so many drift checks one ensures.
    pub(crate) full_check: u64,
}

/// What there is in a world without change.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Quiet {
    pub(crate) services: u64,
    /// Nodes that wait for machines that are not there.
    pub(crate) uninitialised: u64,
    /// Whether there are Nodes that are not Ready.
    pub(crate) unready: bool,
}

impl Calls {
    /// What there was too much of in so long a time without change; none when all is well.
    pub(crate) fn needless(&self, time: Duration, world: &Quiet, periods: &Periods) -> Option<String> {
        let times =
            |period: Duration| u64::try_from(time.as_millis() / period.as_millis().max(1)).unwrap_or(u64::MAX) + 1;
        // Drift checks come a tenth earlier or later.
        let checks = times(periods.drift.mul_f64(0.9)) * world.services;
        // A Node whose machine is not there is looked up with growing pauses, the longest of 1000 s, and people are told.
        let tries = world.uninitialised * (times(Duration::from_secs(900)) + 3);
        let asked = times(periods.refresh) + tries + if world.unready { times(periods.monitor) } else { 0 };
        let allowed = [
            // One that has waited for an hour is read again and deleted.
            ("writes", self.writes, world.uninitialised),
            ("reads", self.requests, world.uninitialised),
            ("lists", self.lists, 0),
            ("Events", self.events, tries),
            ("look-ups", self.lookups, asked),
            ("drift checks", self.gets, checks),
            ("ensures", self.ensures, checks / periods.full_check + world.services),
            ("changes of the cloud", self.changes, 8 * world.uninitialised),
            // The pauses between lists grow from the start again when a Node goes.
            (
                "lists of routes",
                self.route_lists,
                times(periods.quiet_routes) + 3 * world.uninitialised,
            ),
        ];
        let too_many = allowed.iter().find(|(_, there, allowed)| there > allowed);
        too_many.map(|(what, there, allowed)| format!("{there} {what} in {} s, {allowed} may be", time.as_secs()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_write_is_too_many_and_documented_reads_are_not() {
        let minutes = |count: u64| Duration::from_secs(count * 60);
        let periods = Periods {
            refresh: minutes(10),
            monitor: minutes(1),
            drift: minutes(30),
            quiet_routes: minutes(5),
            full_check: 6,
        };
        let mut calls = Calls {
            lookups: 7,
            gets: 6,
            ensures: 3,
            route_lists: 13,
            ..Calls::default()
        };
        let world = Quiet {
            services: 2,
            ..Quiet::default()
        };
        assert_eq!(calls.needless(minutes(60), &world, &periods), None);
        calls.writes = 1;
        assert!(
            calls
                .needless(minutes(60), &world, &periods)
                .unwrap()
                .contains("1 writes")
        );
    }
}
