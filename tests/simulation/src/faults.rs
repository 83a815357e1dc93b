//! What goes wrong, where, and for how long.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::chance::Chance;

/// Where something can go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Area {
    /// Requests to the API server.
    Requests,
    /// Watches.
    Watches,
    /// Look-ups of machines.
    Machines,
    /// Calls about load balancers.
    Balancers,
    /// Calls about routes.
    Routes,
}

impl Area {
    pub(crate) const ALL: [Self; 5] = [
        Self::Requests,
        Self::Watches,
        Self::Machines,
        Self::Balancers,
        Self::Routes,
    ];
}

/// What goes wrong with one request or call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It takes this long, and then works.
    Slow(Duration),
    /// The server fails before it has any effect.
    Unavailable,
    /// It asks to slow down.
    Throttled,
    /// Credentials do not suffice; of the cloud only.
    Denied,
    /// No answer, no effect.
    LostBefore,
    /// No answer, but the effect.
    LostAfter,
    /// No answer for longer than anybody waits, no effect.
    Hang,
    /// The same, after the effect.
    HangAfter,
    /// Another writer is faster: of the API server only.
    Touched,
    /// It ends in the middle of several changes; of the cloud only.
    HalfDone,
    /// The answer is an old one; of the cloud only.
    Stale,
    /// The provider crashes; of the cloud only.
    Trap,
    /// The process dies before it has any effect.
    DieBefore,
    /// The process dies after the effect, before the answer.
    DieAfter,
}

/// A time of trouble in one area.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    pub(crate) until: Duration,
    /// Of requests or calls that are hit.
    pub(crate) percent: u32,
    /// Always the same, or drawn each time.
    pub(crate) fault: Option<Fault>,
}

/// The troubles of the moment.
#[derive(Debug, Default)]
pub(crate) struct Faults(BTreeMap<Area, Window>);

impl Faults {
    pub(crate) fn open(&mut self, area: Area, window: Window) {
        self.0.insert(area, window);
    }

    pub(crate) fn close_all(&mut self) {
        self.0.clear();
    }

    /// What goes wrong with this one, if anything.
    pub(crate) fn draw(&self, area: Area, now: Duration, chance: &mut Chance) -> Option<Fault> {
        let window = self.0.get(&area).filter(|window| now < window.until)?;
        if !chance.percent(window.percent) {
            return None;
        }
        Some(window.fault.unwrap_or_else(|| any(area, chance)))
    }
}

/// A fault that can happen in this area.
pub(crate) fn any(area: Area, chance: &mut Chance) -> Fault {
    let slow = Fault::Slow(chance.seconds(1, 25));
    let request = [
        slow,
        Fault::Unavailable,
        Fault::Throttled,
        Fault::LostBefore,
        Fault::LostAfter,
        Fault::LostAfter,
        Fault::Hang,
        Fault::HangAfter,
        Fault::Touched,
        Fault::Touched,
        Fault::DieBefore,
        Fault::DieAfter,
    ];
    let call = [
        slow,
        Fault::Unavailable,
        Fault::Throttled,
        Fault::Denied,
        Fault::LostAfter,
        Fault::HalfDone,
        Fault::HalfDone,
        Fault::Stale,
        Fault::Stale,
        Fault::Hang,
        Fault::HangAfter,
        Fault::Trap,
        Fault::DieBefore,
        Fault::DieAfter,
    ];
    let of: &[Fault] = if matches!(area, Area::Requests | Area::Watches) {
        &request
    } else {
        &call
    };
    chance.pick(of).copied().unwrap_or(slow)
}
