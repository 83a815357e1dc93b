//! Clusters that a cloud itself manages, and the trait of clouds that list them.

use crate::Answer;

/// The most of them in one answer (`wit/v0.1/clusters.wit`).
pub const MAX_CLUSTERS: usize = 1_000;

/// The port of a control plane that says none.
pub const CONTROL_PLANE_PORT: u16 = 443;

/// A cluster of the cloud.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownCluster {
    /// What the cloud calls it.
    pub name: String,
    /// An IP address or a host name, without a port; none while there is none.
    pub host: Option<String>,
    /// The port there.
    pub port: u16,
}

impl KnownCluster {
    /// Where its control plane is, as host and port.
    pub fn address(&self) -> Option<String> {
        let (host, port) = (self.host.as_deref()?, self.port);
        Some(match host.contains(':') {
            true => format!("[{host}]:{port}"),
            false => format!("{host}:{port}"),
        })
    }
}

/// A cloud that has clusters. Read only, so it needs no gate.
pub trait KnownClusters: Send + Sync {
    /// All clusters that the configuration can mean.
    fn known_clusters(&self) -> Answer<'_, Vec<KnownCluster>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_has_brackets_where_needed() {
        let address = |host: Option<&str>, port| {
            let cluster = KnownCluster {
                name: "a".into(),
                host: host.map(str::to_owned),
                port,
            };
            cluster.address()
        };
        assert_eq!(address(Some("203.0.113.1"), 443).as_deref(), Some("203.0.113.1:443"));
        assert_eq!(
            address(Some("2001:db8::1"), 6443).as_deref(),
            Some("[2001:db8::1]:6443")
        );
        assert_eq!(address(None, 443), None);
    }
}
