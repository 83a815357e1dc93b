//! Waiting for Octavia without sleeping: what the token of a `pending` answer holds, and when to look again. Pure.
//!
//! The token only saves a search and paces the looks; when it is lost, everything is found again in the cloud.

use core::time::Duration;

use cloudwit_guest_sdk::prelude::*;

use crate::octavia::LoadBalancer;

/// Looks after which waiting counts as failed: some five and a half minutes (upstream `waitLoadbalancerActiveSteps`).
const LOOKS: u32 = 23;

/// What is waited for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wait {
    /// The load balancer's id.
    pub balancer: String,
    /// How often it was looked at since its last change.
    looks: u32,
    /// The mark of its last change.
    change: u32,
}

impl Wait {
    /// Reads a token; none when it is of another version.
    pub fn read(token: &str) -> Option<Self> {
        let mut parts = token.split(' ');
        Some(Self {
            balancer: parts.next()?.into(),
            looks: parts.next()?.parse().ok()?,
            change: parts.next()?.parse().ok()?,
        })
    }

    /// For a load balancer that a change was just made to.
    pub fn after(balancer: &str, change: &str) -> Self {
        Self {
            balancer: balancer.into(),
            looks: 0,
            change: mark(change),
        }
    }

    /// Whether this change was the last one that was made: then the cloud took it without effect, and to make it again and again would be
    /// no better.
    pub fn has_made(&self, change: &str) -> bool {
        self.change == mark(change)
    }

    /// The answer while it is not ready: first after a second, then each time a fifth longer.
    pub fn pending(&self, balancer: &LoadBalancer) -> Failure {
        let mut text = ["load balancer ", &balancer.id, " is ", &balancer.status].concat();
        if self.looks >= LOOKS {
            text.push_str(
                " for over five minutes; if Octavia's workers run, `openstack loadbalancer status show` may tell why",
            );
            return Failure::unavailable(text);
        }
        let milliseconds = (0..self.looks).fold(1_000_u64, |after, _| after * 6 / 5);
        let token = [
            balancer.id.as_str(),
            &(self.looks + 1).to_string(),
            &self.change.to_string(),
        ]
        .join(" ");
        Failure::pending(Duration::from_millis(milliseconds), token, text)
    }
}

/// 32 bits of FNV-1a: enough to know a change again from one call to the next.
fn mark(change: &str) -> u32 {
    change.bytes().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_come_a_fifth_later_each_time_and_end_after_five_and_a_half_minutes() {
        let balancer = LoadBalancer {
            id: "lb-1".into(),
            status: "PENDING_CREATE".into(),
            ..LoadBalancer::default()
        };
        let mut wait = Wait::after("lb-1", "POST");
        let mut waited = Vec::new();
        let end = loop {
            match wait.pending(&balancer) {
                Failure::Pending(pending) => {
                    waited.push(pending.after_ms);
                    wait = Wait::read(&pending.token).unwrap();
                    assert!(wait.balancer == "lb-1" && wait.has_made("POST"));
                }
                end => break end,
            }
        };
        assert_eq!(waited[..4], [1_000, 1_200, 1_440, 1_728]);
        assert_eq!(waited.len(), 23);
        let seconds = waited.iter().sum::<u32>() / 1_000;
        assert!((320..335).contains(&seconds), "{seconds}");
        assert!(
            matches!(&end, Failure::Unavailable(text) if text.contains("lb-1 is PENDING_CREATE")),
            "{end:?}"
        );
    }

    #[test]
    fn a_token_of_another_version_is_no_token() {
        for token in ["", "lb-1", "lb-1 x 2", "lb-1 1 x"] {
            assert_eq!(Wait::read(token), None, "{token}");
        }
        assert!(!Wait::after("lb-1", "PUT a").has_made("PUT b"));
    }
}
