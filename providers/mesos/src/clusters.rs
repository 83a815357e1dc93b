//! The one cluster of the masters, and the leading one among them, as the in-tree provider reported them (`Clusters`, `Master`).

use cloudwit_guest_sdk::prelude::*;

use crate::Mesos;

/// The name of a cluster whose operator gave it none (`pkg/cloudprovider/providers/mesos/client.go` of Kubernetes 1.5).
const UNNAMED: &str = "mesos";

impl Clusters for Mesos {
    fn clusters(&self) -> Result<Vec<KnownCluster>, Failure> {
        let (leader, summary) = self.api.summary()?;
        let name = summary.cluster.filter(|name| !name.is_empty());
        let cluster = KnownCluster::new(name.unwrap_or_else(|| UNNAMED.to_owned()));
        let Some(at) = HttpWish::for_url(&leader, &[], "") else {
            return Err(Failure::other(format!("the leading master {leader} has no URL")));
        };
        let usual = if at.scheme == "https" { 443 } else { 80 };
        Ok(vec![cluster.host(Some(at.host)).port(at.port.unwrap_or(usual))])
    }
}

#[cfg(test)]
mod tests {
    use cloudwit_guest_sdk::serde_json::json;
    use cloudwit_guest_sdk::testing::FakeHost;

    use super::*;

    fn cluster(master: &str, url: &str, answer: serde_json::Value) -> (String, Option<String>, Option<u16>) {
        let host = FakeHost::new();
        host.config(format!("[mesos-cloud]\nmesos-master = {master}\n"));
        host.expect("GET", url).answers(200, answer);
        let mut clusters = host.provider::<Mesos>().clusters().unwrap();
        let one = clusters.remove(0);
        assert!(clusters.is_empty());
        (one.name, one.host, one.port)
    }

    #[test]
    fn cluster_is_told_with_its_leading_master() {
        let named = cluster(
            "m.test:5050",
            "http://m.test:5050/master/state-summary",
            json!({"cluster": "prod", "hostname": "m.test", "slaves": []}),
        );
        assert_eq!(named, ("prod".into(), Some("m.test".into()), Some(5050)));
        let unnamed = cluster(
            "https://dcos.test/mesos",
            "https://dcos.test/mesos/master/state-summary",
            json!({"hostname": "10.0.0.1"}),
        );
        assert_eq!(unnamed, ("mesos".into(), Some("dcos.test".into()), Some(443)));
    }

    #[test]
    fn redirect_leads_to_the_leading_one() {
        let host = FakeHost::new();
        host.config("[mesos-cloud]\nmesos-master = a.test:5050,b.test:5050\n");
        host.expect("GET", "http://a.test:5050/master/state-summary")
            .answers_with(307, &[("Location", "//b.test:5050/master/state-summary")], "");
        host.expect("GET", "http://b.test:5050/master/state-summary")
            .answers(200, json!({"cluster": ""}));
        let clusters = host.provider::<Mesos>().clusters().unwrap();
        assert_eq!(
            (clusters[0].name.as_str(), clusters[0].host.as_deref()),
            ("mesos", Some("b.test"))
        );
    }
}
