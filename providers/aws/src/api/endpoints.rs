//! Where each service of AWS is reached, and what signatures for it name.
//!
//! Follows from the region, unless a `[ServiceOverride]` replaces it.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::url::is_url;

use crate::config::credentials::Source;
use crate::config::{Config, quoted};

/// A service of AWS that is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// EC2: instances, networks, security groups.
    Ec2,
    /// Elastic Load Balancing: classic load balancers.
    Elb,
    /// Elastic Load Balancing v2: network load balancers.
    ElbV2,
    /// Security Token Service: temporary credentials.
    Sts,
}

impl Service {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Ec2, Self::Elb, Self::ElbV2, Self::Sts];

    /// The service's name in AWS's SDKs, as upstream's `ServiceOverride` has it; `STS` is Cloudwit's own, upstream cannot override it.
    fn id(self) -> &'static str {
        match self {
            Self::Ec2 => "EC2",
            Self::Elb => "Elastic Load Balancing",
            Self::ElbV2 => "Elastic Load Balancing v2",
            Self::Sts => "STS",
        }
    }

    /// Its name in host names and signatures.
    fn name(self) -> &'static str {
        match self {
            Self::Ec2 => "ec2",
            Self::Elb | Self::ElbV2 => "elasticloadbalancing",
            Self::Sts => "sts",
        }
    }

    /// The version of its API that is spoken.
    pub fn version(self) -> &'static str {
        match self {
            Self::Ec2 => "2016-11-15",
            Self::Elb => "2012-06-01",
            Self::ElbV2 => "2015-12-01",
            Self::Sts => "2011-06-15",
        }
    }

    /// Whether an override's `Service` means it. Configurations of older upstreams have the names of hosts there.
    fn is_meant(self, name: &str) -> bool {
        name.eq_ignore_ascii_case(self.id()) || name.eq_ignore_ascii_case(self.name())
    }

    fn purpose(self) -> &'static str {
        match self {
            Self::Ec2 => "instances, routes, subnets and security groups",
            Self::Elb | Self::ElbV2 => "load balancers",
            Self::Sts => "temporary credentials",
        }
    }
}

/// Where a service is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// URL without a slash at its end.
    pub url: String,
    /// The region in signatures.
    pub region: String,
    /// The service's name in signatures.
    pub name: String,
}

/// The endpoints of all services.
#[derive(Debug, Clone)]
pub struct Endpoints([Endpoint; 4]);

impl Endpoints {
    /// As configured.
    pub fn new(config: &Config) -> Self {
        Self(Service::ALL.map(|service| endpoint(config, service)))
    }

    /// That of a service.
    pub fn of(&self, service: Service) -> &Endpoint {
        let [ec2, elb, elb_v2, sts] = &self.0;
        match service {
            Service::Ec2 => ec2,
            Service::Elb => elb,
            Service::ElbV2 => elb_v2,
            Service::Sts => sts,
        }
    }

    /// What the configuration needs to reach: the services, STS only when a role is taken on or a token is exchanged, the metadata
    /// service only when credentials come from it.
    pub fn wishes(config: &Config) -> Vec<HttpWish> {
        let endpoints = Self::new(config);
        let source = config.credentials.source();
        let mut wishes: Vec<HttpWish> = Vec::new();
        for service in Service::ALL {
            let used = service != Service::Sts || source == Source::WebIdentity || !config.global.role_arn.is_empty();
            let wish = HttpWish::for_url(&endpoints.of(service).url, &["POST"], service.purpose()).filter(|_| used);
            let Some(wish) = wish else { continue };
            let same = |known: &&mut HttpWish| {
                (&known.scheme, &known.host, known.port) == (&wish.scheme, &wish.host, wish.port)
            };
            match wishes.iter_mut().find(same) {
                Some(known) if known.reason != wish.reason => {
                    known.reason = format!("{}, {}", known.reason, wish.reason)
                }
                Some(_) => {}
                None => wishes.push(wish),
            }
        }
        if source == Source::InstanceProfile {
            let reason = "credentials of the instance's role; a link-local address has to be allowed";
            wishes.extend(HttpWish::for_url(
                config.credentials.metadata(),
                &["GET", "PUT"],
                reason,
            ));
        }
        wishes
    }

    /// The mistakes in `[ServiceOverride]`.
    pub(crate) fn validate(config: &Config, problems: &mut Problems) {
        let mut seen: Vec<(String, &str)> = Vec::new();
        for (name, over) in &config.service_overrides {
            let at = |key: &str| format!("serviceoverride.{name}.{key}");
            let required = [
                ("service", &over.service),
                ("region", &over.region),
                ("url", &over.url),
                ("signingregion", &over.signing_region),
            ];
            for (key, value) in required {
                if value.trim().is_empty() {
                    problems.add(
                        at(key),
                        "is missing; Service, Region, URL and SigningRegion have to be there",
                    );
                }
            }
            let service = over.service.trim().to_ascii_lowercase();
            // Upstream has it, and neither upstream nor Cloudwit calls it.
            let known = service == "kms" || Service::ALL.iter().any(|known| known.is_meant(&service));
            if !service.is_empty() && !known {
                let advice = "is no service that is called; they are EC2, Elastic Load Balancing, Elastic Load Balancing v2 and STS";
                problems.add(at("service"), quoted(&over.service, advice));
            }
            if !over.url.trim().is_empty() && !is_url(over.url.trim()) {
                problems.add(
                    at("url"),
                    quoted(&over.url, "is no URL; write it like https://ec2.example.com"),
                );
            }
            if !matches!(over.signing_method.as_str(), "" | "v4") {
                problems.add(
                    at("signingmethod"),
                    quoted(&over.signing_method, "is not known; write v4 or leave it out"),
                );
            }
            let key = (service, over.region.trim());
            if seen.contains(&key) {
                problems.add(
                    at("service"),
                    "this service has another override for the same region; leave one of the two out",
                );
            }
            seen.push(key);
        }
    }
}

fn endpoint(config: &Config, service: Service) -> Endpoint {
    let region = config.region();
    let meant = config
        .service_overrides
        .values()
        .find(|over| service.is_meant(over.service.trim()) && over.region.trim() == region);
    match meant {
        Some(over) => Endpoint {
            url: over.url.trim().trim_end_matches('/').into(),
            region: over.signing_region.trim().into(),
            name: match over.signing_name.trim() {
                "" => service.name().into(),
                name => name.into(),
            },
        },
        None => Endpoint {
            url: format!("https://{}.{region}.{}", service.name(), suffix(region)),
            region: region.into(),
            name: service.name().into(),
        },
    }
}

/// How host names end in a region's partition (aws-sdk-go `endpoints/defaults.go`, `dnsSuffix`).
fn suffix(region: &str) -> &'static str {
    const SUFFIXES: [(&str, &str); 6] = [
        ("cn-", "amazonaws.com.cn"),
        ("us-iso-", "c2s.ic.gov"),
        ("us-isob-", "sc2s.sgov.gov"),
        ("us-isof-", "csp.hci.ic.gov"),
        ("eu-isoe-", "cloud.adc-e.uk"),
        ("eusc-", "amazonaws.eu"),
    ];
    let known = SUFFIXES.iter().find(|(prefix, _)| region.starts_with(prefix));
    known.map_or("amazonaws.com", |(_, suffix)| suffix)
}
