//! Waiting for Octavia without sleeping: what the token of a `pending` answer holds, and when to look again. Pure.
//!
//! The token saves a search, paces the looks, and carries the marks of the changes that were made already, so that none of them is made again and
//! again; when it is lost, everything is found again in the cloud.

use std::time::Duration;

use cloudwit_guest_sdk::prelude::*;

use crate::octavia::LoadBalancer;

/// Looks after which waiting counts as failed: some five and a half minutes (upstream `waitLoadbalancerActiveSteps`).
const LOOKS: u32 = 23;

/// Most changes that are remembered, the last ones: more than there are in a cycle of a driver that undoes them in turn.
const CHANGES: usize = 64;

/// Changes that were made to a load balancer since it was last right, as marks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Made(Vec<u32>);

impl Made {
    /// Whether this change was made already: then the cloud took it without effect, or undid it, and to make it again would be no better.
    pub fn has(&self, change: &str) -> bool {
        self.0.contains(&mark(change))
    }

    /// Notes a change.
    pub fn add(&mut self, change: &str) {
        if self.0.len() >= CHANGES {
            self.0.remove(0);
        }
        self.0.push(mark(change));
    }
}

/// What is waited for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wait {
    /// The load balancer's id.
    pub balancer: String,
    /// How often it was looked at since its last change.
    looks: u32,
    /// What was changed until now.
    made: Made,
}

impl Wait {
    /// Reads a token; none when it is of another version.
    pub fn read(token: &str) -> Option<Self> {
        let mut parts = token.split(' ');
        let (balancer, looks) = (parts.next()?.into(), parts.next()?.parse().ok()?);
        let marks = parts.next()?.split(',').filter(|mark| !mark.is_empty());
        let marks: Result<Vec<u32>, _> = marks.take(CHANGES).map(str::parse).collect();
        Some(Self {
            balancer,
            looks,
            made: Made(marks.ok()?),
        })
    }

    /// For a load balancer to which these changes were made, the last one just now.
    pub fn after(balancer: &str, made: Made) -> Self {
        Self {
            balancer: balancer.into(),
            looks: 0,
            made,
        }
    }

    /// What was changed of this load balancer until now.
    pub fn made(wait: Option<&Self>, balancer: &str) -> Made {
        let wait = wait.filter(|wait| wait.balancer == balancer);
        wait.map(|wait| wait.made.clone()).unwrap_or_default()
    }

    /// The answer while it is not ready: first after a second, then each time a fifth longer.
    pub fn pending(&self, balancer: &LoadBalancer) -> Failure {
        let mut text = format!("load balancer {} is {}", balancer.id, balancer.status);
        if self.looks >= LOOKS {
            text.push_str(
                " for over five minutes; if Octavia's workers run, `openstack loadbalancer status show` may tell why",
            );
            return Failure::unavailable(text);
        }
        let milliseconds = (0..self.looks).fold(1_000_u64, |after, _| after * 6 / 5);
        let marks: Vec<String> = self.made.0.iter().map(u32::to_string).collect();
        let token = [balancer.id.as_str(), &(self.looks + 1).to_string(), &marks.join(",")].join(" ");
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
        let mut made = Made::default();
        made.add("POST");
        let mut wait = Wait::after("lb-1", made);
        let mut waited = Vec::new();
        let end = loop {
            match wait.pending(&balancer) {
                Failure {
                    kind: FailureKind::Pending(token),
                    retry_after,
                    ..
                } => {
                    waited.push(retry_after.unwrap());
                    wait = Wait::read(&token).unwrap();
                    assert!(
                        Wait::made(Some(&wait), "lb-1").has("POST") && !Wait::made(Some(&wait), "lb-2").has("POST")
                    );
                }
                end => break end,
            }
        };
        assert_eq!(waited[..4], [1_000, 1_200, 1_440, 1_728]);
        assert_eq!(waited.len(), 23);
        let seconds = waited.iter().sum::<u32>() / 1_000;
        assert!((320..335).contains(&seconds), "{seconds}");
        assert!(
            matches!(&end, Failure { kind: FailureKind::Unavailable, message: text, .. } if text.contains("lb-1 is PENDING_CREATE")),
            "{end:?}"
        );
    }

    #[test]
    fn a_token_of_another_version_is_no_token() {
        for token in ["", "lb-1", "lb-1 x 2", "lb-1 1 x", "lb-1 1 2,x"] {
            assert_eq!(Wait::read(token), None, "{token}");
        }
        assert_eq!(Wait::read("lb-1 0 "), Some(Wait::after("lb-1", Made::default())));
    }

    #[test]
    fn made_changes_are_bounded_and_the_last_ones_count() {
        let mut made = Made::default();
        for number in 0..1_000 {
            made.add(&number.to_string());
        }
        assert!(made.0.len() == CHANGES && made.has("999") && !made.has("0"));
    }
}
