//! Annotations of Services.

use cloudwit_guest_sdk::annotations::{Annotation, Table};
use cloudwit_guest_sdk::prelude::*;

/// All that are read.
pub const TABLE: Table = Table::new(
    "networking.gke.io/",
    &[
        Annotation::new(
            "load-balancer-type",
            "",
            "`Internal`: an internal load balancer; any other value: an external one",
        ),
        Annotation::new("cloud.google.com/load-balancer-type", "", "the same, an older spelling"),
        Annotation::new(
            "internal-load-balancer-allow-global-access",
            "false",
            "`true`: the internal load balancer is reached from other regions too",
        ),
        Annotation::new(
            "internal-load-balancer-subnet",
            "",
            "subnetwork of the internal load balancer. Default: config `subnetwork-name`",
        ),
        Annotation::new(
            "cloud.google.com/network-tier",
            "Premium",
            "`Premium` or `Standard`, of external load balancers",
        ),
        Annotation::new(
            "alpha.cloud.google.com/load-balancer-backend-share",
            "false",
            "`true`: internal load balancers share one backend service",
        ),
        Annotation::new(
            "cloud.google.com/load-balancer-backend-share",
            "false",
            "the same, an older spelling",
        ),
        Annotation::new(
            "cloud.google.com/l4-rbs",
            "",
            "`enabled`: another controller makes the load balancer",
        ),
    ],
);

/// What the annotations of a Service request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked<'a> {
    pub internal: bool,
    pub global_access: bool,
    pub subnetwork: Option<&'a str>,
    /// `PREMIUM` or `STANDARD`.
    pub tier: &'static str,
    pub share_backend: bool,
}

/// Reads them.
///
/// # Errors
/// `invalid` with all mistakes; `implemented-elsewhere` where another controller is named.
pub fn read(service: &Service) -> Result<Asked<'_>, Failure> {
    let mut read = TABLE.read(service);
    if read.text("cloud.google.com/l4-rbs") == Some("enabled") {
        let text = "the annotation cloud.google.com/l4-rbs gives this Service to the controller for backend services (ingress-gce)";
        return Err(Failure::implemented_elsewhere(text));
    }
    let kind = read
        .text("load-balancer-type")
        .or_else(|| read.text("cloud.google.com/load-balancer-type"));
    let shares = [
        "alpha.cloud.google.com/load-balancer-backend-share",
        "cloud.google.com/load-balancer-backend-share",
    ];
    let asked = Asked {
        internal: matches!(kind, Some("Internal" | "internal")),
        global_access: read
            .boolean("internal-load-balancer-allow-global-access")
            .unwrap_or_default(),
        subnetwork: read.text("internal-load-balancer-subnet"),
        tier: read
            .word(
                "cloud.google.com/network-tier",
                &[("Premium", "PREMIUM"), ("Standard", "STANDARD")],
            )
            .unwrap_or_default(),
        share_backend: shares.iter().any(|key| read.boolean(key).unwrap_or_default()),
    };
    read.finish().map(|()| asked)
}

/// Warns about annotations that have no effect.
pub fn warn(service: &Service, context: &Context) {
    TABLE.warn_unknown(service, context);
    let kind = TABLE.read(service).text("load-balancer-type").unwrap_or_default();
    if !matches!(kind, "" | "Internal" | "internal" | "External" | "external") {
        let text = format!(
            "networking.gke.io/load-balancer-type is \"{kind}\", which means an external load balancer; write Internal for an internal one"
        );
        context.service_event(EventKind::Warning, "UnknownLoadBalancerType", &text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(annotations: &[(&str, &str)]) -> Service {
        Service {
            annotations: annotations.iter().map(|(key, value)| Pair::new(*key, *value)).collect(),
            ..Service::new("default", "web", "1")
        }
    }

    #[test]
    fn the_readme_has_them() {
        cloudwit_guest_sdk::testing::assert_readme(include_str!("../../README.md"), &TABLE);
    }

    #[test]
    fn both_spellings_count_and_wrong_values_are_reported() {
        for key in [
            "networking.gke.io/load-balancer-type",
            "cloud.google.com/load-balancer-type",
        ] {
            assert!(read(&service(&[(key, "Internal")])).unwrap().internal);
            assert!(!read(&service(&[(key, "Other")])).unwrap().internal);
        }
        assert_eq!(read(&service(&[])).unwrap().tier, "PREMIUM");
        let wrong = service(&[
            ("cloud.google.com/network-tier", "Gold"),
            ("networking.gke.io/internal-load-balancer-allow-global-access", "maybe"),
        ]);
        let failure = read(&wrong).unwrap_err();
        assert!(
            failure.message().contains("Gold") && failure.message().contains("maybe"),
            "{failure:?}"
        );
        let other = read(&service(&[("cloud.google.com/l4-rbs", "enabled")])).unwrap_err();
        assert_eq!(other.kind, FailureKind::ImplementedElsewhere);
    }
}
