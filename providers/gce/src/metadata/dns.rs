//! Search domains that Pods do not need.

use cloudwit_guest_sdk::prelude::*;

use crate::Gce;
use crate::config::Config;

/// What follows the number of a project in a search domain that no name is found under (upstream's `gce.go` of 1.6, `uselessDNSSearchRE`).
const USELESS: &str = ".google.internal";

impl Dns for Gce {
    fn scrub(_: Config, _: Context, found: Resolver) -> Result<Resolver, Failure> {
        Ok(found.without_searches(|search| {
            let number = search.strip_suffix(USELESS).unwrap_or_default();
            !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        }))
    }
}

#[cfg(test)]
mod tests {
    use cloudwit_guest_sdk::testing::FakeHost;

    use super::*;

    #[test]
    fn domain_of_the_projects_number_is_dropped_and_others_stay() {
        let host = FakeHost::new();
        let searches = [
            "c.my-project.internal.",
            "1234567890.google.internal.",
            "google.internal.",
            "x1.google.internal",
        ];
        let left = host.scrub::<Gce>(&["169.254.169.254"], &searches).unwrap();
        assert_eq!(
            left.searches,
            ["c.my-project.internal.", "google.internal.", "x1.google.internal"]
        );
        assert_eq!(left.nameservers, ["169.254.169.254"]);
    }
}
