//! Cooperative yielding while the host walks through data of a guest.
//!
//! An answer may have 16 MiB (`limits.answerBytes`), and guests share their thread with everything else that works for the cluster. Whatever goes
//! through the items of an answer says how many bytes it has seen and yields to other tasks after every 64 KiB. One item has a bound of about
//! that size (`answer::limits`), and texts for people are cut before anything is looked for in them. What is walked in one stretch beside that:
//! wasmtime's copy of an answer out of the guest's memory, which `limits.answerBytes` bounds, and a write of a guest to a standard
//! stream, at most 64 KiB.

/// Bytes from one pause to the next.
const STRETCH: usize = 64 << 10;

/// What an item costs beside its texts, so that many empty ones are bounded as well.
const ITEM: usize = 64;

/// A walk through the items of an answer.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    since_pause: usize,
    #[cfg(test)]
    pub pauses: usize,
}

impl Walk {
    /// An item with so many bytes comes next: pauses first when it is time to.
    pub async fn next(&mut self, bytes: usize) {
        self.since_pause = self.since_pause.saturating_add(bytes).saturating_add(ITEM);
        if self.since_pause >= STRETCH {
            self.since_pause = 0;
            #[cfg(test)]
            {
                self.pauses += 1;
            }
            tokio::task::yield_now().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn walk_pauses_by_bytes_and_by_items() {
        let mut walk = Walk::default();
        for _ in 0..100 {
            walk.next(STRETCH).await;
        }
        assert_eq!(walk.pauses, 100);
        let mut walk = Walk::default();
        for _ in 0..100 * STRETCH / ITEM {
            walk.next(0).await;
        }
        assert_eq!(walk.pauses, 100);
        walk.next(usize::MAX).await;
        assert_eq!(walk.pauses, 101);
    }
}
