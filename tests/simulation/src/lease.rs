//! Who leads: a Lease as `manager` keeps one, with times ten times as long so that renewing it costs little.

use std::time::Duration;

/// A holder that has not renewed for so long has lost the Lease.
const DURATION: Duration = Duration::from_secs(120);
/// From the beginning of a renewal on, its holder may write for so long.
const DEADLINE: Duration = Duration::from_secs(90);
/// Pause between renewals of the holder.
pub(crate) const RENEWAL: Duration = Duration::from_secs(60);
/// Pause between looks of the others.
pub(crate) const RETRY: Duration = Duration::from_secs(60);

/// The Lease.
#[derive(Debug, Default)]
pub(crate) struct Lease {
    holder: Option<(u32, Duration)>,
}

impl Lease {
    /// Takes or renews it, as asked for at this time. Answers until when the process may write; none when another one holds it.
    pub(crate) fn take(&mut self, process: u32, asked: Duration, now: Duration) -> Option<Duration> {
        match self.holder {
            Some((holder, renewed)) if holder != process && now < renewed + DURATION => None,
            _ => {
                self.holder = Some((process, now));
                Some(asked + DEADLINE)
            }
        }
    }

    /// Gives it away.
    pub(crate) fn release(&mut self, process: u32) {
        self.holder.take_if(|(holder, _)| *holder == process);
    }

    pub(crate) fn holder(&self) -> Option<u32> {
        self.holder.map(|(holder, _)| holder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_never_overlap() {
        let second = Duration::from_secs;
        let mut lease = Lease::default();
        assert_eq!(lease.take(1, second(0), second(5)), Some(second(90)));
        assert_eq!(lease.take(2, second(124), second(124)), None);
        assert_eq!(lease.take(2, second(125), second(125)), Some(second(215)));
        assert_eq!(lease.take(1, second(126), second(126)), None);
        lease.release(2);
        assert_eq!(lease.take(1, second(127), second(127)), Some(second(217)));
    }
}
