//! Where the clouds are: the public one, the sovereign ones, Azure Stack.

use super::{Config, given};

/// A cloud's endpoints.
pub(super) struct Endpoints {
    resource_manager: &'static str,
    active_directory: &'static str,
}

const PUBLIC: Endpoints = Endpoints {
    resource_manager: "https://management.azure.com",
    active_directory: "https://login.microsoftonline.com",
};

const CHINA: Endpoints = Endpoints {
    resource_manager: "https://management.chinacloudapi.cn",
    active_directory: "https://login.chinacloudapi.cn",
};

const US_GOVERNMENT: Endpoints = Endpoints {
    resource_manager: "https://management.usgovcloudapi.net",
    active_directory: "https://login.microsoftonline.us",
};

/// The metadata service of every machine.
const METADATA: &str = "http://169.254.169.254";

/// The accepted names of clouds, for messages.
pub(super) const NAMES: &str = "AzurePublicCloud, AzureChinaCloud, AzureUSGovernmentCloud and AzureStackCloud";

/// Whether this is Azure Stack, whose endpoints differ by operator.
pub(super) fn is_stack(name: &str) -> bool {
    name.eq_ignore_ascii_case("AzureStackCloud")
}

impl Config {
    /// Whether the cloud is Azure Stack.
    pub fn is_stack(&self) -> bool {
        given(&self.cloud).is_some_and(is_stack)
    }

    pub(super) fn endpoints(&self) -> Option<&'static Endpoints> {
        let name = given(&self.cloud).unwrap_or_default().to_ascii_uppercase();
        match name.as_str() {
            "" | "AZURECLOUD" | "AZUREPUBLICCLOUD" => Some(&PUBLIC),
            "AZURECHINACLOUD" => Some(&CHINA),
            "AZUREUSGOVERNMENT" | "AZUREUSGOVERNMENTCLOUD" => Some(&US_GOVERNMENT),
            _ => None,
        }
    }

    /// The Resource Manager's URL, without a slash at its end.
    pub fn resource_manager(&self) -> String {
        let known = self.endpoints().map_or("", |cloud| cloud.resource_manager);
        let url = given(&self.resource_manager_endpoint).unwrap_or(known);
        url.trim_end_matches('/').into()
    }

    /// Audience of tokens: the Resource Manager's own URL, also where a proxy or a test stands before it.
    pub fn audience(&self) -> String {
        let known = self.endpoints().map_or("", |cloud| cloud.resource_manager);
        match given(&self.resource_manager_endpoint) {
            Some(url) if url.starts_with("https://") || known.is_empty() => url.trim_end_matches('/').into(),
            _ => known.into(),
        }
    }

    /// URL of Microsoft Entra ID, without a slash at its end.
    pub fn active_directory(&self) -> String {
        let known = self.endpoints().map_or("", |cloud| cloud.active_directory);
        let url = given(&self.active_directory_endpoint).unwrap_or(known);
        url.trim_end_matches('/').into()
    }

    /// URL of the metadata service, without a slash at its end.
    pub fn metadata(&self) -> String {
        given(&self.metadata_endpoint)
            .unwrap_or(METADATA)
            .trim_end_matches('/')
            .into()
    }
}
