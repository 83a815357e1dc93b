//! The cloud config: JSON with these keys. README.md has the same as a table.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::url::is_url;
use cloudwit_guest_sdk::volumes::InTreeSource;
use serde::Deserialize;

/// The most machines that the cloud takes or gives in one request.
pub const MAX_PAGE_SIZE: u16 = 1_000;

/// What the operator configures. The token is no part of it: it is a secret.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Config {
    /// URL of the cloud's API, such as `https://sim.example.com`.
    pub endpoint: String,
    /// URL of the metadata service; `endpoint` when left out.
    pub metadata_endpoint: Option<String>,
    /// Only machines of this region; all when left out.
    pub region: Option<String>,
    /// Machines per request, 1 to 1,000.
    #[serde(default = "max_page_size")]
    pub page_size: u16,
    /// What provider ids have before `://`: letters, digits and `-`. Another than `sim` for a second cloud in the same cluster.
    #[serde(default = "scheme")]
    pub provider_id_scheme: String,
    /// Sources of PersistentVolumes that name disks of this cloud by their ids, such as `gcePersistentDisk`; none when left out. For trying the admission
    /// webhook `persistent-volume-label`.
    #[serde(default)]
    pub label_sources: Vec<LabelSource>,
}

/// A source of a PersistentVolume, as Kubernetes calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum LabelSource {
    /// Of Amazon EC2.
    AwsElasticBlockStore,
    /// Of Google Compute Engine.
    GcePersistentDisk,
    /// Of Microsoft Azure.
    AzureDisk,
    /// Of OpenStack.
    Cinder,
    /// Of vSphere.
    VsphereVolume,
}

impl LabelSource {
    /// The contract's word for it.
    pub fn source(self) -> InTreeSource {
        match self {
            Self::AwsElasticBlockStore => InTreeSource::AwsElasticBlockStore,
            Self::GcePersistentDisk => InTreeSource::GcePersistentDisk,
            Self::AzureDisk => InTreeSource::AzureDisk,
            Self::Cinder => InTreeSource::Cinder,
            Self::VsphereVolume => InTreeSource::VsphereVolume,
        }
    }
}

fn scheme() -> String {
    crate::PROVIDER_ID_SCHEME.into()
}

fn max_page_size() -> u16 {
    MAX_PAGE_SIZE
}

impl Config {
    /// What types cannot express.
    pub fn validate(&self, problems: &mut Problems) {
        if !is_url(&self.endpoint) {
            problems.add(
                "endpoint",
                format!("\"{}\" is no URL; write it like https://sim.example.com", self.endpoint),
            );
        }
        if let Some(endpoint) = self.metadata_endpoint.as_deref().filter(|endpoint| !is_url(endpoint)) {
            problems.add(
                "metadataEndpoint",
                format!("\"{endpoint}\" is no URL; write it like http://169.254.169.254"),
            );
        }
        if !(1..=MAX_PAGE_SIZE).contains(&self.page_size) {
            problems.add(
                "pageSize",
                format!("{} is not between 1 and {MAX_PAGE_SIZE}", self.page_size),
            );
        }
        let scheme = &self.provider_id_scheme;
        if scheme.is_empty()
            || !scheme
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        {
            problems.add(
                "providerIdScheme",
                format!("\"{scheme}\" is no scheme; use lower-case letters, digits and -"),
            );
        }
        let twice = |(at, source): (usize, &LabelSource)| self.label_sources[..at].contains(source);
        if self.label_sources.iter().enumerate().any(twice) {
            problems.add("labelSources", "a source is there twice; name each once");
        }
        if self.region.as_deref() == Some("") {
            problems.add(
                "region",
                "an empty region matches nothing; leave the key out for all regions",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use cloudwit_guest_sdk::testing::FakeHost;

    use crate::Sim;

    #[test]
    fn an_endpoint_is_enough() {
        let host = FakeHost::new();
        host.config(r#"{"endpoint": "https://sim.test:8443/api"}"#);
        assert_eq!(host.check::<Sim>(), []);
        let description = host.describe::<Sim>();
        let wish = &description.http[0];
        assert_eq!(
            (wish.scheme.as_str(), wish.host.as_str(), wish.port),
            ("https", "sim.test", Some(8443))
        );
        assert_eq!(description.provider_id_prefixes, ["sim://"]);
    }

    #[test]
    fn every_mistake_is_named() {
        let host = FakeHost::new();
        host.config(r#"{"endpoint": "sim.test", "metadataEndpoint": "", "pageSize": 0, "region": "", "providerIdScheme": "a:b"}"#);
        let places: Vec<String> = host.check::<Sim>().into_iter().map(|problem| problem.at).collect();
        assert_eq!(
            places,
            ["endpoint", "metadataEndpoint", "pageSize", "providerIdScheme", "region"]
        );
    }

    #[test]
    fn it_describes_itself_even_when_the_configuration_is_wrong() {
        let host = FakeHost::new();
        host.config("endpoint=https://sim.test");
        assert_eq!(host.check::<Sim>().len(), 1);
        let description = host.describe::<Sim>();
        assert_eq!((description.name.as_str(), description.http.len()), ("sim", 0));
        assert_eq!(description.secrets[0].name, "token");
    }
}
