//! What a Service requests by annotations.

use cloudwit_guest_sdk::annotations::{Annotation, Table};
use cloudwit_guest_sdk::prelude::*;

/// All annotations; the one in README.md is printed from it.
pub const TABLE: Table = Table::new(
    "service.beta.kubernetes.io/rackspace-load-balancer-",
    &[
        Annotation::new(
            "internal",
            "false",
            "`true`: an address of ServiceNet, none of the Internet. A change gives the Service another address",
        ),
        Annotation::new(
            "algorithm",
            "ROUND_ROBIN",
            "`ROUND_ROBIN`, `LEAST_CONNECTIONS` or `RANDOM`",
        ),
        Annotation::new(
            "timeout",
            "30",
            "seconds after which a connection without traffic ends, 1 to 120",
        ),
    ],
);

/// The annotations' values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Asked {
    /// Whether the address is one of ServiceNet.
    pub internal: bool,
    /// In CLB's words.
    pub algorithm: &'static str,
    /// Seconds.
    pub timeout: i64,
}

/// Reads them.
///
/// # Errors
/// `invalid` with everything that is wrong.
pub fn read(service: &Service) -> Result<Asked, Failure> {
    const ALGORITHMS: [(&str, &str); 3] = [
        ("ROUND_ROBIN", "ROUND_ROBIN"),
        ("LEAST_CONNECTIONS", "LEAST_CONNECTIONS"),
        ("RANDOM", "RANDOM"),
    ];
    let mut read = TABLE.read(service);
    let asked = Asked {
        internal: read.boolean("internal").unwrap_or_default(),
        algorithm: read.word("algorithm", &ALGORITHMS).unwrap_or_default(),
        timeout: read.integer("timeout", 1..=120).unwrap_or_default(),
    };
    read.finish().map(|()| asked)
}

#[cfg(test)]
mod tests {
    use cloudwit_guest_sdk::testing::assert_readme;

    use super::*;

    #[test]
    fn readme_shows_the_annotations() {
        assert_readme(include_str!("../../README.md"), &TABLE);
    }

    #[test]
    fn defaults_match_table_and_mistakes_are_reported_together() {
        let mut service = Service::new("default", "web", "u");
        let asked = read(&service).unwrap();
        assert_eq!(
            (asked.internal, asked.algorithm, asked.timeout),
            (false, "ROUND_ROBIN", 30)
        );
        service.annotations = ["internal", "algorithm", "timeout"]
            .map(|key| Pair::new(TABLE.key(key), "121"))
            .into();
        let failure = read(&service).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Invalid);
        for key in ["internal", "algorithm", "timeout"] {
            assert!(failure.message().contains(&TABLE.key(key)), "{}", failure.message());
        }
    }
}
