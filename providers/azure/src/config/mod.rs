//! The cloud config: `azure.json` (or the same in YAML) as upstream reads it.
//!
//! Every key of upstream is handled: honoured, ignored, or refused with an error that names the alternative. README.md has them as a table.

mod clouds;

use std::fmt;

pub(crate) use cloudwit_guest_sdk::config::given;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::url::is_url;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::auth;

/// Port on which kube-proxy reports its health, its `--healthz-bind-address`.
const KUBE_PROXY: u16 = 10256;

/// The whole file.
#[derive(Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Config {
    /// `AzurePublicCloud` and its sovereign siblings, in whatever case.
    pub cloud: Option<String>,
    /// Another URL for the Resource Manager; needed for Azure Stack.
    pub resource_manager_endpoint: Option<String>,
    /// Another URL for Microsoft Entra ID; needed for Azure Stack.
    pub active_directory_endpoint: Option<String>,
    /// Another URL for the metadata service, where managed identities get tokens.
    pub metadata_endpoint: Option<String>,
    /// The tenant of the identity.
    pub tenant_id: Option<String>,
    /// Application (client) id.
    pub aad_client_id: Option<String>,
    /// The client secret in plain text; `msi` means a managed identity. The secret `client-secret` where it is left out.
    pub aad_client_secret: Option<String>,
    /// Thumbprint of the certificate whose key is the secret `client-certificate-key`: SHA-1 in hexadecimal, as the portal shows it.
    pub aad_client_cert_thumbprint: Option<String>,
    aad_client_cert_path: Option<String>,
    aad_client_cert_password: Option<String>,
    /// Tokens come from the machine's own identity.
    pub use_managed_identity_extension: bool,
    /// Which of several: a client id, or a resource id.
    #[serde(rename = "userAssignedIdentityID")]
    pub user_assigned_identity_id: Option<String>,
    /// Tokens come for the token of a Kubernetes service account, the secret `federated-token`.
    pub use_federated_workload_identity_extension: bool,
    aad_federated_token_file: IgnoredAny,
    #[serde(rename = "aadMSIDataPlaneIdentityPath")]
    aad_msi_data_plane_identity_path: Option<String>,
    #[serde(rename = "networkResourceTenantID")]
    network_resource_tenant_id: Option<String>,
    /// Subscription of the network, else that of the machines.
    #[serde(rename = "networkResourceSubscriptionID")]
    pub network_resource_subscription_id: Option<String>,
    user_agent: IgnoredAny,

    /// Subscription of the machines.
    pub subscription_id: String,
    /// Resource group of the machines.
    pub resource_group: String,
    /// Region.
    pub location: String,
    /// Virtual network of the machines.
    pub vnet_name: Option<String>,
    /// Its resource group, else that of the machines.
    pub vnet_resource_group: Option<String>,
    /// Subnet of the machines.
    pub subnet_name: Option<String>,
    /// Network security group of the machines; load balancers need it.
    pub security_group_name: Option<String>,
    /// Its resource group, else that of the machines.
    pub security_group_resource_group: Option<String>,
    /// Route table of that subnet; without it no routes are made.
    pub route_table_name: Option<String>,
    /// Its resource group, else that of the machines.
    pub route_table_resource_group: Option<String>,
    primary_availability_set_name: IgnoredAny,
    primary_scale_set_name: IgnoredAny,
    /// `vmss` (default), `vmssflex` or `standard`: with the last one no scale set is looked into.
    pub vm_type: Option<String>,
    extended_location_name: IgnoredAny,
    extended_location_type: IgnoredAny,

    load_balancer_sku: Option<String>,
    /// Name of the load balancers, else the cluster's.
    pub load_balancer_name: Option<String>,
    /// Their resource group, else that of the machines.
    pub load_balancer_resource_group: Option<String>,
    pre_configured_backend_pool_load_balancer_types: IgnoredAny,
    load_balancer_backend_pool_configuration_type: IgnoredAny,
    #[serde(rename = "excludeMasterFromStandardLB")]
    exclude_master_from_standard_lb: IgnoredAny,
    /// Machines behind an external load balancer do not reach the Internet through it.
    #[serde(rename = "disableOutboundSNAT")]
    pub disable_outbound_snat: bool,
    maximum_load_balancer_rule_count: IgnoredAny,
    multiple_standard_load_balancer_configurations: IgnoredAny,
    /// `servicenodeport` (default) or `shared`: one probe for all Services.
    cluster_service_load_balancer_health_probe_mode: Option<String>,
    /// Port of that one, else kube-proxy's.
    cluster_service_shared_load_balancer_health_probe_port: Option<u16>,
    /// Path of that one, else `/healthz`.
    cluster_service_shared_load_balancer_health_probe_path: Option<String>,
    /// Resource group of private link services, else that of the machines.
    pub private_link_service_resource_group: Option<String>,

    /// Tags of what is made, as `key=value,key=value`.
    pub tags: Option<String>,
    /// The same as an object; these win.
    pub tags_map: Option<serde_json::Map<String, serde_json::Value>>,
    system_tags: IgnoredAny,
    use_instance_metadata: IgnoredAny,
    cloud_provider_backoff: IgnoredAny,
    cloud_provider_backoff_retries: IgnoredAny,
    cloud_provider_backoff_exponent: IgnoredAny,
    cloud_provider_backoff_duration: IgnoredAny,
    cloud_provider_backoff_jitter: IgnoredAny,
    cloud_provider_rate_limit: IgnoredAny,
    #[serde(rename = "cloudProviderRateLimitQPS")]
    cloud_provider_rate_limit_qps: IgnoredAny,
    cloud_provider_rate_limit_bucket: IgnoredAny,
    #[serde(rename = "cloudProviderRateLimitQPSWrite")]
    cloud_provider_rate_limit_qps_write: IgnoredAny,
    cloud_provider_rate_limit_bucket_write: IgnoredAny,
    availability_set_nodes_cache_ttl_in_seconds: IgnoredAny,
    #[serde(rename = "availabilitySetsCacheTTLInSeconds")]
    availability_sets_cache_ttl_in_seconds: IgnoredAny,
    #[serde(rename = "vmssCacheTTLInSeconds")]
    vmss_cache_ttl_in_seconds: IgnoredAny,
    #[serde(rename = "vmssVirtualMachinesCacheTTLInSeconds")]
    vmss_virtual_machines_cache_ttl_in_seconds: IgnoredAny,
    #[serde(rename = "vmssFlexCacheTTLInSeconds")]
    vmss_flex_cache_ttl_in_seconds: IgnoredAny,
    #[serde(rename = "vmssFlexVMCacheTTLInSeconds")]
    vmss_flex_vm_cache_ttl_in_seconds: IgnoredAny,
    #[serde(rename = "vmCacheTTLInSeconds")]
    vm_cache_ttl_in_seconds: IgnoredAny,
    #[serde(rename = "loadBalancerCacheTTLInSeconds")]
    load_balancer_cache_ttl_in_seconds: IgnoredAny,
    #[serde(rename = "nsgCacheTTLInSeconds")]
    nsg_cache_ttl_in_seconds: IgnoredAny,
    #[serde(rename = "routeTableCacheTTLInSeconds")]
    route_table_cache_ttl_in_seconds: IgnoredAny,
    #[serde(rename = "publicIPCacheTTLInSeconds")]
    public_ip_cache_ttl_in_seconds: IgnoredAny,
    #[serde(rename = "plsCacheTTLInSeconds")]
    pls_cache_ttl_in_seconds: IgnoredAny,
    #[serde(rename = "availabilitySetsInstancesCacheTTLInSeconds")]
    availability_sets_instances_cache_ttl_in_seconds: IgnoredAny,
    disable_availability_set_nodes: IgnoredAny,
    enable_vmss_flex_nodes: IgnoredAny,
    #[serde(rename = "disableAPICallCache")]
    disable_api_call_cache: IgnoredAny,
    route_update_interval_in_seconds: IgnoredAny,
    load_balancer_backend_pool_update_interval_in_seconds: IgnoredAny,
    node_instance_not_found_grace_period_in_seconds: IgnoredAny,
    #[serde(rename = "putVMSSVMBatchSize")]
    put_vmss_vm_batch_size: IgnoredAny,
    maximum_load_balancer_rule_count_per_frontend: IgnoredAny,
}

/// Values are not shown: one may be a secret.
impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Config")
    }
}

impl Config {
    /// Path of a resource group in the subscription of the machines.
    pub fn group(&self, name: &str) -> String {
        format!("/subscriptions/{}/resourceGroups/{name}", self.subscription_id)
    }

    /// Path of a resource group in the subscription of the network.
    pub fn network_group(&self, name: Option<&str>) -> String {
        let subscription = given(&self.network_resource_subscription_id).unwrap_or(&self.subscription_id);
        let name = name.unwrap_or(&self.resource_group);
        format!("/subscriptions/{subscription}/resourceGroups/{name}")
    }

    /// Whether scale sets are looked into.
    pub fn has_scale_sets(&self) -> bool {
        !given(&self.vm_type).is_some_and(|kind| kind.eq_ignore_ascii_case("standard"))
    }

    /// Port and path of the one probe of all Services, where there is to be one.
    pub fn shared_probe(&self) -> Option<(u16, String)> {
        let mode = given(&self.cluster_service_load_balancer_health_probe_mode)?;
        let path = given(&self.cluster_service_shared_load_balancer_health_probe_path).unwrap_or("/healthz");
        let port = self.cluster_service_shared_load_balancer_health_probe_port;
        // 0 is the default, as with upstream.
        let port = port.filter(|port| *port > 0).unwrap_or(KUBE_PROXY);
        mode.eq_ignore_ascii_case("shared").then(|| (port, path.to_owned()))
    }

    /// Tags of what is made.
    pub fn all_tags(&self) -> serde_json::Map<String, serde_json::Value> {
        let pairs = given(&self.tags).unwrap_or_default().split(',');
        let pairs = pairs.filter_map(|pair| pair.split_once('='));
        let pairs = pairs.map(|(key, value)| (key.trim_ascii().to_owned(), value.trim_ascii().into()));
        let mut tags: serde_json::Map<_, _> = pairs.filter(|(key, _)| !key.is_empty()).collect();
        tags.extend(self.tags_map.clone().unwrap_or_default());
        tags
    }

    /// What types cannot express.
    pub fn validate(&self, problems: &mut Problems) {
        let needed = [
            ("subscriptionId", &self.subscription_id),
            ("resourceGroup", &self.resource_group),
            ("location", &self.location),
        ];
        for (key, value) in needed {
            if value.trim_ascii().is_empty() {
                problems.add(key, "this key is missing or empty");
            } else if value.contains(['/', '?', '#', '%']) {
                problems.add(
                    key,
                    format!("\"{value}\" is no name; write it without slashes and escapes"),
                );
            }
        }
        self.validate_endpoints(problems);
        if let Some(kind) = given(&self.vm_type)
            && !["vmss", "vmssflex", "standard"].contains(&kind.to_ascii_lowercase().as_str())
        {
            problems.add("vmType", format!("\"{kind}\" is none of vmss, vmssflex and standard"));
        }
        if let Some(mode) = given(&self.cluster_service_load_balancer_health_probe_mode)
            && !["servicenodeport", "shared"].contains(&mode.to_ascii_lowercase().as_str())
        {
            let text = format!("\"{mode}\" is none of servicenodeport and shared");
            problems.add("clusterServiceLoadBalancerHealthProbeMode", text);
        }
        if given(&self.load_balancer_sku).is_some_and(|sku| sku.eq_ignore_ascii_case("basic")) {
            let text = "Azure retired Basic load balancers in September 2025; write standard, or remove the key";
            problems.add("loadBalancerSku", text);
        }
        if given(&self.network_resource_tenant_id).is_some_and(|id| Some(id) != given(&self.tenant_id)) {
            let text = "a network in another tenant is not supported; give the identity access by a delegation (Azure Lighthouse) and remove the key";
            problems.add("networkResourceTenantID", text);
        }
        if let Some(values) = &self.tags_map {
            for (key, _) in values.iter().filter(|(_, value)| !value.is_string()) {
                problems.add(format!("tagsMap.{key}"), "this must be a text");
            }
        }
        if given(&self.aad_client_cert_path).is_some() && given(&self.aad_client_cert_thumbprint).is_none() {
            let text = "Cloudwit opens no file: grant the certificate's key (PEM) as the secret client-certificate-key, and write the certificate's \
                        SHA-1 thumbprint as aadClientCertThumbprint";
            problems.add("aadClientCertPath", text);
        }
        if given(&self.aad_client_cert_password).is_some() {
            let text = "this key has no effect: the key is granted as a PEM file without a password";
            problems.warn("aadClientCertPassword", text);
        }
        if given(&self.aad_msi_data_plane_identity_path).is_some() {
            let text = "data-plane identities are not supported; use a managed identity, workload identity, client secret or certificate";
            problems.add("aadMSIDataPlaneIdentityPath", text);
        }
        auth::validate(self, problems);
    }

    fn validate_endpoints(&self, problems: &mut Problems) {
        let urls = [
            ("resourceManagerEndpoint", &self.resource_manager_endpoint),
            ("activeDirectoryEndpoint", &self.active_directory_endpoint),
            ("metadataEndpoint", &self.metadata_endpoint),
        ];
        for (key, value) in urls {
            if let Some(text) = given(value).filter(|text| !is_url(text)) {
                problems.add(
                    key,
                    format!("\"{text}\" is no URL; write it like https://management.azure.com"),
                );
            }
        }
        if self.endpoints().is_some() {
            return;
        }
        let cloud = given(&self.cloud).unwrap_or_default();
        if !clouds::is_stack(cloud) {
            problems.add("cloud", format!("\"{cloud}\" is none of {}", clouds::NAMES));
            return;
        }
        for (key, value) in &urls[..2] {
            if given(value).is_none() {
                problems.add(
                    *key,
                    "this key is missing: where Azure Stack is, only its operator knows",
                );
            }
        }
    }
}

#[cfg(test)]
mod tests;
