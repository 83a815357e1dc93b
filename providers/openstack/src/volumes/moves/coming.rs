//! Volumes that Cinder holds for a server and does not show at one yet: `reserved` and `attaching`. To which server they come is read from Nova.
//!
//! Nova makes its entry for a volume before it reserves it in Cinder, and drops it when the attachment fails. So a reserved volume without an entry is not coming: it
//! is on its way to something else, or an attachment failed and left it so, which ends by an administrator alone.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::url::percent_encode;

use crate::OpenStack;
use crate::api::Endpoint;
use crate::volumes::POLL;
use crate::volumes::moves::path;

/// How long Nova's answer counts, in seconds; then it is looked up again. Upstream waits about as long for an attachment (`diskAttachSteps`).
const FRESH: u64 = 60;

/// Prefix of the token of a volume that Nova has for a server; the time of that answer follows, in seconds since 1970.
const SEEN: &str = "seen ";

/// Not finished: Nova has the volume for the server, as of this time.
pub(super) fn comes(since: u64, what: impl Into<String>) -> Failure {
    Failure::pending(POLL, format!("{SEEN}{since}"), what)
}

/// The time of Nova's answer, where it still counts. Pure.
fn seen(token: Option<&str>, now: u64) -> Option<u64> {
    let since: u64 = token?.strip_prefix(SEEN)?.parse().ok()?;
    (since <= now && now - since < FRESH).then_some(since)
}

impl OpenStack {
    /// Since when it is known that Nova has this volume for this server; none when it has not.
    ///
    /// # Errors
    /// Nova's error.
    pub(super) fn coming(&self, volume: &str, server: &str, token: Option<&str>) -> Result<Option<u64>, Failure> {
        let now = self.context.now();
        if let Some(since) = seen(token, now) {
            return Ok(Some(since));
        }
        let entry = format!("{}/{}", path(server), percent_encode(volume));
        // None: no such server, or no such volume at it.
        let found = self.api.get(Endpoint::Compute, &entry).send_present()?;
        Ok(found.map(|_| now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn word_of_nova_counts_for_a_minute() {
        assert_eq!(seen(Some("seen 100"), 100), Some(100));
        assert_eq!(seen(Some("seen 100"), 159), Some(100));
        for (token, now) in [
            (None, 100),
            (Some("begun"), 100),
            (Some("seen "), 100),
            (Some("seen 100"), 160),
            (Some("seen 100"), 99),
        ] {
            assert_eq!(seen(token, now), None, "{token:?} {now}");
        }
        let FailureKind::Pending(token) = comes(7, "").kind else {
            panic!()
        };
        assert_eq!(seen(Some(&token), 8), Some(7));
    }
}
