//! What this Octavia can do: by the version of its API and by its provider (upstream `pkg/util/openstack/loadbalancer.go`,
//! `IsOctaviaFeatureSupported`).

/// What can be used. OVN balances packets and supports few of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Features {
    /// Tags, and with them sharing: 2.5.
    pub tags: bool,
    /// Timeouts of listeners: 2.1.
    pub timeouts: bool,
    /// Flavors: 2.6.
    pub flavors: bool,
    /// `allowed_cidrs` of listeners: 2.12.
    pub allowed_cidrs: bool,
    /// Availability zones: 2.14.
    pub zones: bool,
    /// HTTP monitors: not with OVN.
    pub http_monitor: bool,
    /// HTTP monitors of UDP pools: 2.16.
    pub http_monitor_on_udp: bool,
}

impl Features {
    /// Those of a version.
    pub fn of(version: (u32, u32), ovn: bool) -> Self {
        let since = |minor| version >= (2, minor);
        Self {
            tags: since(5),
            timeouts: since(1) && !ovn,
            flavors: since(6) && !ovn,
            allowed_cidrs: since(12) && !ovn,
            zones: since(14) && !ovn,
            http_monitor: !ovn,
            http_monitor_on_udp: since(16) && !ovn,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_decides() {
        assert_eq!(
            Features::of((2, 0), false),
            Features {
                http_monitor: true,
                ..Features::default()
            }
        );
        let features = Features::of((2, 12), false);
        assert!(features.tags && features.timeouts && features.flavors && features.allowed_cidrs);
        assert!(!features.zones && !features.http_monitor_on_udp);
        assert!(Features::of((2, 16), false).http_monitor_on_udp && Features::of((3, 0), false).zones);
    }

    #[test]
    fn ovn_has_tags_only() {
        assert_eq!(
            Features::of((2, 30), true),
            Features {
                tags: true,
                ..Features::default()
            }
        );
    }
}
