//! AWS, by moto: a VPC with two subnets, looked at through boto3.

use std::path::PathBuf;

use anyhow::{Context, Result};
use cloudwit_test_support::clouds::moto::{AwsCluster, Moto, REGION};
use cloudwit_test_support::files::aws::aws_files;
use cloudwit_test_support::scenes::deployment::{CLUSTER_NAME, CloudFiles, Deployment};
use serde_json::json;

use crate::clouds::{Cloud, Machine, Route, list};

/// A cluster's VPC in moto.
pub struct Aws {
    moto: Moto,
    cluster: AwsCluster,
}

impl Cloud for Aws {
    const PROVIDER: &'static str = "aws";
    const NAME: &'static str = "AWS (moto, with signatures checked)";

    async fn start(_: &Deployment) -> Result<Self> {
        let moto = Moto::start().await?;
        let cluster = moto.cluster(CLUSTER_NAME).await?;
        Ok(Self { moto, cluster })
    }

    fn url(&self) -> String {
        self.moto.url().to_owned()
    }

    fn log(&self) -> PathBuf {
        self.moto.log()
    }

    fn runs(&self) -> bool {
        self.moto.runs()
    }

    async fn files(&self, deployment: &Deployment) -> Result<CloudFiles> {
        aws_files(&self.cluster, self.moto.url(), self.moto.administrator(), deployment)
    }

    fn looks(&self) -> Vec<String> {
        let (key, url) = (self.moto.administrator(), self.moto.url());
        vec![
            format!("the cloud as a page:   {url}/moto-api/"),
            format!(
                "export AWS_ACCESS_KEY_ID={} AWS_SECRET_ACCESS_KEY={}",
                key.access_key, key.secret_key
            ),
            format!("aws --endpoint-url {url} --region {REGION} elb describe-load-balancers"),
        ]
    }

    async fn create_machine(&self, number: u8) -> Result<Machine> {
        let subnet = usize::from(number) % self.cluster.subnets.len();
        let mut made = self.cluster.machines(&self.moto, subnet, 1).await?;
        let machine = made.pop().context("moto made no instance")?;
        Ok(Machine {
            provider_id: machine.provider_id(),
            // On Nitro, what the firmware reports begins with ec2; nobody looks at it.
            system_uuid: machine.id.replace("i-", "ec2"),
            labels: vec![
                ("node.kubernetes.io/instance-type", machine.kind),
                ("topology.kubernetes.io/zone", machine.zone),
                ("topology.kubernetes.io/region", REGION.to_owned()),
            ],
            addresses: vec![machine.private_ip.clone(), machine.private_dns.clone()],
            ip: machine.private_ip,
            node: machine.private_dns,
            id: machine.id,
        })
    }

    async fn delete_machine(&self, machine: &Machine) -> Result<()> {
        let asked = json!({ "InstanceIds": [machine.id] });
        self.moto.call("ec2", "terminate_instances", asked).await.map(drop)
    }

    async fn routes(&self) -> Result<Option<Vec<Route>>> {
        let asked = json!({ "RouteTableIds": [self.cluster.route_table] });
        let answer = self.moto.call("ec2", "describe_route_tables", asked).await?;
        let routes = answer.pointer("/RouteTables/0").context("the route table is gone")?;
        let mut found = Vec::new();
        for route in list(routes, "Routes")?
            .iter()
            .filter(|route| route["State"] == "active")
        {
            if let (Some(to), Some(by)) = (route["DestinationCidrBlock"].as_str(), route["InstanceId"].as_str()) {
                found.push(Route {
                    destination: to.to_owned(),
                    by: by.to_owned(),
                });
            }
        }
        Ok(Some(found))
    }

    async fn balancers(&self) -> Result<Option<Vec<usize>>> {
        let answer = self.moto.call("elb", "describe_load_balancers", json!({})).await?;
        let balancers = list(&answer, "LoadBalancerDescriptions")?.iter();
        let sizes = balancers.map(|balancer| Ok(list(balancer, "Instances")?.len()));
        Ok(Some(sizes.collect::<Result<_>>()?))
    }
}
