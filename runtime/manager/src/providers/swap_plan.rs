//! When a change of a provider's files is followed. Pure.
//!
//! 1. **Settled**: two looks in a row see the same, so that component and config of one roll-out are taken together and a copy that is still
//!    being written is left alone.
//! 2. **Again**: what was refused for a reason that may pass (a cloud that does not answer, a token that is not known everywhere yet) is
//!    tried again after 10 s, 20 s and so on up to 5 min, without a change of the files.

use std::time::Duration;

use tokio::time::Instant;

use crate::process::file_look::Fingerprint;

/// The first pause before something refused is tried again, and the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// What was seen and tried so far. The first thing that settles is always due: the files may have changed since they were read at the start.
#[derive(Debug, Default)]
pub struct SwapPlan {
    seen: Option<Fingerprint>,
    tried: Option<Fingerprint>,
    again: Option<Again>,
}

#[derive(Debug, Clone, Copy)]
struct Again {
    at: Instant,
    pause: Duration,
}

impl SwapPlan {
    /// Whether the files as they look now are to be followed now.
    pub fn is_due(&mut self, print: &Fingerprint, now: Instant) -> bool {
        let settled = self.seen.as_ref() == Some(print);
        if !settled {
            self.seen = Some(print.clone());
            return false;
        }
        self.tried.as_ref() != Some(print) || self.again.is_some_and(|again| again.at <= now)
    }

    /// They were tried. `may_pass_later`: whether trying the same files again can help.
    pub fn tried(&mut self, print: Fingerprint, may_pass_later: bool, now: Instant) {
        let same = self.tried.as_ref() == Some(&print);
        let pause = match self.again {
            Some(last) if same => (last.pause * 2).min(LONGEST_PAUSE),
            _ => FIRST_PAUSE,
        };
        self.again = may_pass_later.then(|| Again { at: now + pause, pause });
        self.tried = Some(print);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print(content: &str) -> Fingerprint {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), content).unwrap();
        Fingerprint::of(&[file.path().to_owned()])
    }

    #[test]
    fn a_change_is_followed_once_when_it_has_settled() {
        let (mut plan, now) = (SwapPlan::default(), Instant::now());
        let (first, half, whole) = (print("a"), print("ab"), print("abc"));
        assert!(!plan.is_due(&first, now));
        assert!(plan.is_due(&first, now), "the files may have changed since the start");
        plan.tried(first.clone(), false, now);
        assert!(!plan.is_due(&first, now));
        assert!(!plan.is_due(&half, now));
        assert!(!plan.is_due(&whole, now), "it is still being written");
        assert!(plan.is_due(&whole, now));
        plan.tried(whole.clone(), false, now);
        assert!(!plan.is_due(&whole, now + LONGEST_PAUSE));
        assert!(!plan.is_due(&first, now));
        assert!(plan.is_due(&first, now), "the way back is a change too");
    }

    #[test]
    fn transient_is_retried_with_backoff_and_at_once_on_change() {
        let (mut plan, mut now) = (SwapPlan::default(), Instant::now());
        let (first, other) = (print("a"), print("b"));
        plan.is_due(&first, now);
        for seconds in [10, 20, 40, 80, 160, 300, 300] {
            plan.tried(first.clone(), true, now);
            let pause = Duration::from_secs(seconds);
            assert!(
                !plan.is_due(&first, now + pause - Duration::from_millis(1)),
                "{seconds}"
            );
            assert!(plan.is_due(&first, now + pause), "{seconds}");
            now += pause;
        }
        assert!(!plan.is_due(&other, now));
        assert!(plan.is_due(&other, now));
        plan.tried(other.clone(), true, now);
        assert!(plan.is_due(&other, now + FIRST_PAUSE), "the pauses begin anew");
        plan.tried(other.clone(), false, now);
        assert!(!plan.is_due(&other, now + LONGEST_PAUSE));
    }
}
