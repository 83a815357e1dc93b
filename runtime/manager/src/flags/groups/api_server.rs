//! Flags of the API server.

use std::path::PathBuf;

use crate::flags::values::go::{decimal, url, whole};
use http::Uri;

/// Flags about reaching the API server.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "API server")]
pub struct ApiServerArgs {
    /// Kubeconfig file; without it the service account of the Pod.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// URL of the API server; wins over the one in the kubeconfig.
    #[arg(long, value_name = "URL", value_parser = url)]
    pub master: Option<Uri>,

    /// Requests a second that each client (one for each controller) may make; 0 or less for no limit, since API servers since 1.20 limit
    /// clients themselves (API priority and fairness) and what is written at a time is bounded by --concurrent-*-syncs.
    #[arg(long, value_name = "N", default_value_t = 0.0, allow_negative_numbers = true, value_parser = decimal)]
    pub kube_api_qps: f32,

    /// Requests that each client may make at once after a rest, where --kube-api-qps limits it.
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = whole(0..=u32::MAX))]
    pub kube_api_burst: u32,

    /// Accepted for compatibility: application/json or application/vnd.kubernetes.protobuf. Cloudwit uses JSON in both cases.
    #[arg(long, value_name = "TYPE", default_value = "application/vnd.kubernetes.protobuf")]
    pub kube_api_content_type: String,

    /// Let each controller act as a service account of its own in kube-system (node-controller, service-controller, route-controller),
    /// made if it is missing.
    #[arg(long, value_name = "BOOL", default_value_t = false, action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = crate::flags::values::go::boolean)]
    pub use_service_account_credentials: bool,
}

impl ApiServerArgs {
    /// What is wrong with them.
    pub fn mistakes(&self) -> Vec<String> {
        let mut mistakes = Vec::new();
        if let Some(url) = self.master.as_ref().filter(|url| !is_address(url)) {
            mistakes.push(format!(
                "--master={url}: an address begins with http:// or https:// and a host; write for example https://10.0.0.1:6443"
            ));
        }
        if self.kube_api_qps.is_nan() || (self.kube_api_qps > 0.0 && self.kube_api_burst == 0) {
            mistakes.push(format!(
                "--kube-api-burst={}: with --kube-api-qps={} no request could ever be sent; give at least 1",
                self.kube_api_burst, self.kube_api_qps
            ));
        }
        if !["application/json", "application/vnd.kubernetes.protobuf", ""]
            .contains(&self.kube_api_content_type.as_str())
        {
            mistakes.push(format!(
                "--kube-api-content-type={}: unknown; leave it away, or give application/json",
                self.kube_api_content_type
            ));
        }
        mistakes
    }
}

fn is_address(url: &Uri) -> bool {
    matches!(url.scheme_str(), Some("http" | "https")) && url.host().is_some_and(|host| !host.is_empty())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Flags {
        #[command(flatten)]
        api_server: ApiServerArgs,
    }

    fn of(flags: &[&str]) -> ApiServerArgs {
        Flags::parse_from(["x"].iter().chain(flags)).api_server
    }

    #[test]
    fn upstreams_ways_to_the_api_server_are_accepted() {
        let args = of(&[
            "--master=https://10.0.0.1:6443",
            "--kube-api-qps=20",
            "--kube-api-burst=30",
            "--kube-api-content-type=application/vnd.kubernetes.protobuf",
            "--use-service-account-credentials",
        ]);
        assert_eq!(args.mistakes(), Vec::<String>::new());
        assert!(args.use_service_account_credentials);
        assert_eq!(of(&["--kube-api-qps=-1"]).mistakes(), Vec::<String>::new());
    }

    #[test]
    fn an_address_without_scheme_or_host_is_a_mistake() {
        for wrong in ["10.0.0.1:6443", "ftp://10.0.0.1/", "/api", ":"] {
            let mistakes = of(&[&format!("--master={wrong}")]).mistakes();
            assert!(mistakes[0].starts_with(&format!("--master={wrong}: ")), "{mistakes:?}");
        }
    }

    #[test]
    fn zero_budget_and_unknown_type_are_mistakes() {
        let wrong = of(&[
            "--kube-api-qps=5",
            "--kube-api-burst=0",
            "--kube-api-content-type=text/x",
        ])
        .mistakes();
        assert_eq!(wrong.len(), 2, "{wrong:?}");
        assert!(
            wrong[0].starts_with("--kube-api-burst=0") && wrong[1].contains("text/x"),
            "{wrong:?}"
        );
    }
}
