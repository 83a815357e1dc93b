//! The names upstream's provider gives. They MUST NOT change: what it left behind is found and adopted by them.

use cloudwit_guest_sdk::prelude::*;

/// How the names of load balancers made for Services begin, and the tags by which each names the Services that use it.
pub const PREFIX: &str = "kube_service_";

/// How the description of a floating IP begins that was made for a Service. Only such ones are ever deleted.
pub const FLOATING_IP_MARK: &str = "Floating IP for Kubernetes external service ";

/// Octavia's and Neutron's longest name.
const LONGEST: usize = 255;

/// The name of a Service's load balancer, and the tag by which the Service is named on whatever it uses.
pub fn balancer(cluster: &str, service: &Service) -> String {
    cut(format!("{PREFIX}{cluster}_{}_{}", service.namespace, service.name))
}

/// Whether this is the name that the Service's load balancer had under another name of the cluster.
pub fn is_former(name: &str, current: &str, service: &Service) -> bool {
    let end = format!("_{}_{}", service.namespace, service.name);
    name != current
        && name
            .strip_prefix(PREFIX)
            .is_some_and(|rest| rest.len() > end.len() && rest.ends_with(&end))
}

/// The name of a part of a load balancer: `kind` is `listener`, `pool` or `monitor`, `index` the port's place in the Service.
pub fn part(kind: &str, index: usize, balancer: &str) -> String {
    cut(format!("{kind}_{index}_{balancer}"))
}

/// The name of the security group that opens the node ports.
pub fn security_group(service: &Service) -> String {
    cut(format!("lb-sg-{}-{}-{}", service.uid, service.namespace, service.name))
}

/// The description of a load balancer.
pub fn description(cluster: &str, service: &Service) -> String {
    format!(
        "Kubernetes external service {}/{} from cluster {cluster}",
        service.namespace, service.name
    )
}

/// The description of a floating IP.
pub fn floating_ip(cluster: &str, service: &Service) -> String {
    format!(
        "{FLOATING_IP_MARK}{}/{} from cluster {cluster}",
        service.namespace, service.name
    )
}

fn cut(mut name: String) -> String {
    let mut end = LONGEST.min(name.len());
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.truncate(end);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_upstreams() {
        let service = Service::new("default", "web", "u-1");
        let name = balancer("kubernetes", &service);
        assert_eq!(name, "kube_service_kubernetes_default_web");
        assert_eq!(
            part("listener", 0, &name),
            "listener_0_kube_service_kubernetes_default_web"
        );
        assert_eq!(security_group(&service), "lb-sg-u-1-default-web");
        assert_eq!(
            floating_ip("kubernetes", &service),
            "Floating IP for Kubernetes external service default/web from cluster kubernetes"
        );
        assert_eq!(balancer(&"é".repeat(200), &service).len(), 255);
    }

    #[test]
    fn former_name_of_cluster_counts_for_same_service_only() {
        let service = Service::new("default", "web", "u-1");
        let current = "kube_service_new_default_web";
        assert!(is_former("kube_service_old_one_default_web", current, &service));
        for other in [
            current,
            "kube_service_old_default_api",
            "kube_service__default_web",
            "mine_old_default_web",
        ] {
            assert!(!is_former(other, current, &service), "{other}");
        }
    }
}
