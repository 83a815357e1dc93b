//! AWS by a third party: moto, with signatures checked, for the time of a test.
//!
//! Tests make what an administrator of a cluster would have made ([`Moto::cluster`], [`AwsCluster::machines`]) and look at the outcome with
//! [`Moto::call`], which goes through boto3: neither the server nor the one who asks it is ours. A cluster of its own (VPC, cluster tag) keeps a
//! test out of the others' way, so the tests of a file share one server. `tests/python/moto_server.py` is what runs.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use http::Method;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::clouds::stand_in;
use crate::programs::child::Child;

/// The region that everything lies in.
pub const REGION: &str = "us-east-1";

/// How long it may take to start on a busy machine. It usually takes 2 s.
const START: Duration = Duration::from_secs(120);

/// A key and its secret.
#[derive(Debug, Clone, PartialEq)]
pub struct Credentials {
    /// Access key id.
    pub access_key: String,
    /// Secret access key.
    pub secret_key: String,
}

/// A call that somebody else than [`Moto::call`] made.
#[derive(Debug, Clone, PartialEq)]
pub struct CloudCall {
    /// `ec2`, `elasticloadbalancing`, `sts`, or nothing for an unsigned request.
    pub service: String,
    /// Such as `DescribeInstances`.
    pub action: String,
    /// The access key it was signed with.
    pub key: String,
    /// The header `User-Agent`.
    pub agent: String,
    /// Status of the answer; 0 while there is none.
    pub status: u16,
}

/// A running moto. Dropping it ends it.
#[derive(Debug)]
pub struct Moto {
    /// Behind a lock, so that threads may share it.
    process: Mutex<Child>,
    url: String,
    administrator: Credentials,
    clusters: AtomicU8,
}

/// What an administrator has made before Cloudwit comes: a VPC with an internet gateway, two public subnets, a route table and a security
/// group for Nodes, all with the cluster's tag.
#[derive(Debug, Clone)]
pub struct AwsCluster {
    /// Its name, which is in its tag `kubernetes.io/cluster/NAME`.
    pub name: String,
    /// `vpc-...`.
    pub vpc: String,
    /// Two, in the zones `a` and `b`.
    pub subnets: Vec<Subnet>,
    /// The main route table, `rtb-...`; it leads to the internet gateway.
    pub route_table: String,
    /// The security group of the Nodes, `sg-...`.
    pub security_group: String,
}

/// A subnet.
#[derive(Debug, Clone, PartialEq)]
pub struct Subnet {
    /// `subnet-...`.
    pub id: String,
    /// Such as `us-east-1a`.
    pub zone: String,
    /// Its range.
    pub cidr: String,
}

/// A running instance.
#[derive(Debug, Clone, PartialEq)]
pub struct AwsMachine {
    /// `i-...`.
    pub id: String,
    /// Such as `us-east-1a`.
    pub zone: String,
    /// The name of its Node.
    pub private_dns: String,
    /// Its address within the VPC.
    pub private_ip: String,
    /// `t3.small`.
    pub kind: String,
}

impl AwsMachine {
    /// As it stands in a Node.
    pub fn provider_id(&self) -> String {
        format!("aws:///{}/{}", self.zone, self.id)
    }
}

impl Moto {
    /// The server that all tests of this file (this process) share; the first one who asks starts it.
    ///
    /// # Panics
    ///
    /// When it cannot be started, with the reason and the end of its log.
    pub async fn shared() -> &'static Self {
        static SHARED: OnceCell<Moto> = OnceCell::const_new();
        SHARED
            .get_or_init(|| async { Self::start().await.unwrap_or_else(|error| panic!("{error:#}")) })
            .await
    }

    /// Starts a server of its own, in about 2 s, for tests with so many instances or such faults that others would notice. Makes the Python
    /// environment first when that has not been done yet (a minute, with progress).
    ///
    /// # Errors
    ///
    /// When Python or a package is missing, or the server does not start (with the end of its log).
    pub async fn start() -> Result<Self> {
        Self::start_with(&[]).await
    }

    /// The same with two things as they are in AWS, without which AWS's own controller cannot be run: new load balancers check health by
    /// themselves, and the topology of instances is refused properly.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub async fn start_lifelike() -> Result<Self> {
        Self::start_with(&["--lifelike"]).await
    }

    async fn start_with(flags: &'static [&str]) -> Result<Self> {
        tokio::task::spawn_blocking(|| spawn(flags))
            .await
            .context("the thread that starts moto panicked")?
    }

    /// Its URL, without a slash at its end. All services answer there, and so does the metadata service of an instance.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Where it writes its log, a line for each request.
    pub fn log(&self) -> PathBuf {
        self.process().log().to_owned()
    }

    /// Whether it still runs.
    pub fn runs(&self) -> bool {
        self.process().runs()
    }

    fn process(&self) -> MutexGuard<'_, Child> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A key with all rights.
    pub fn administrator(&self) -> &Credentials {
        &self.administrator
    }

    /// A further key that may do only what the policy document says.
    ///
    /// # Errors
    ///
    /// When there is such a user already.
    pub async fn user(&self, name: &str, policy: &Value) -> Result<Credentials> {
        let user = json!({ "UserName": name });
        self.call("iam", "create_user", user.clone()).await?;
        let policy = json!({ "UserName": name, "PolicyName": "policy", "PolicyDocument": policy.to_string() });
        self.call("iam", "put_user_policy", policy).await?;
        let made = self.call("iam", "create_access_key", user).await?;
        Ok(Credentials {
            access_key: text(&made, "/AccessKey/AccessKeyId")?,
            secret_key: text(&made, "/AccessKey/SecretAccessKey")?,
        })
    }

    /// What boto3 answers: `service` and `method` are boto3's names (`ec2`, `elb`, `elbv2`, `iam`, `sts`; `describe_instances`).
    ///
    /// # Errors
    ///
    /// When boto3 or moto refuses; with the code and the message of the error.
    pub async fn call(&self, service: &str, method: &str, arguments: Value) -> Result<Value> {
        let path = format!("/test/call/{service}/{method}");
        self.ask(Method::POST, &path, arguments.to_string()).await
    }

    /// The calls that were not made by [`call`](Self::call), in their order, since the start or [`forget_calls`](Self::forget_calls).
    /// On a shared server they are those of all tests: tell them apart by the key of a [`user`](Self::user).
    ///
    /// # Errors
    ///
    /// When the server does not answer.
    pub async fn calls(&self) -> Result<Vec<CloudCall>> {
        let answer = self.ask(Method::GET, "/test/calls", String::new()).await?;
        let calls = answer.as_array().context("the calls are no list")?;
        let word = |call: &Value, name: &str| call[name].as_str().unwrap_or_default().to_owned();
        let call = |call| CloudCall {
            service: word(call, "service"),
            action: word(call, "action"),
            key: word(call, "key"),
            agent: word(call, "agent"),
            status: call["status"]
                .as_u64()
                .and_then(|status| u16::try_from(status).ok())
                .unwrap_or_default(),
        };
        Ok(calls.iter().map(call).collect())
    }

    /// Begins to remember calls anew.
    ///
    /// # Errors
    ///
    /// When the server does not answer.
    pub async fn forget_calls(&self) -> Result<()> {
        self.ask(Method::DELETE, "/test/calls", String::new()).await.map(drop)
    }

    /// Makes what a cluster of this name needs. Its VPC has a range of its own, `10.N.0.0/16`.
    ///
    /// # Errors
    ///
    /// When moto refuses something.
    pub async fn cluster(&self, name: &str) -> Result<AwsCluster> {
        let number = self.clusters.fetch_add(1, Ordering::Relaxed);
        let tags = |kind| json!([{ "ResourceType": kind, "Tags": cluster_tags(name) }]);
        let made = json!({ "CidrBlock": format!("10.{number}.0.0/16"), "TagSpecifications": tags("vpc") });
        let vpc = text(&self.call("ec2", "create_vpc", made).await?, "/Vpc/VpcId")?;
        let gateway = self.call("ec2", "create_internet_gateway", json!({})).await?;
        let gateway = text(&gateway, "/InternetGateway/InternetGatewayId")?;
        let attached = json!({ "InternetGatewayId": gateway, "VpcId": vpc });
        self.call("ec2", "attach_internet_gateway", attached).await?;
        let of_vpc = json!({ "Filters": [{ "Name": "vpc-id", "Values": [vpc] }] });
        let tables = self.call("ec2", "describe_route_tables", of_vpc).await?;
        let route_table = text(&tables, "/RouteTables/0/RouteTableId")?;
        let tagged = json!({ "Resources": [route_table], "Tags": cluster_tags(name) });
        self.call("ec2", "create_tags", tagged).await?;
        let out = json!({ "RouteTableId": route_table, "DestinationCidrBlock": "0.0.0.0/0", "GatewayId": gateway });
        self.call("ec2", "create_route", out).await?;
        let mut subnets = Vec::new();
        for (part, zone) in ["a", "b"].into_iter().enumerate() {
            let (cidr, zone) = (format!("10.{number}.{}.0/18", part * 64), format!("{REGION}{zone}"));
            let subnet = json!({
                "VpcId": vpc, "CidrBlock": cidr, "AvailabilityZone": zone, "TagSpecifications": tags("subnet"),
            });
            let id = text(&self.call("ec2", "create_subnet", subnet).await?, "/Subnet/SubnetId")?;
            subnets.push(Subnet { id, zone, cidr });
        }
        let group = json!({
            "VpcId": vpc, "GroupName": format!("{name}-nodes"), "Description": "Nodes", "TagSpecifications": tags("security-group"),
        });
        let security_group = text(&self.call("ec2", "create_security_group", group).await?, "/GroupId")?;
        Ok(AwsCluster {
            name: name.to_owned(),
            vpc,
            subnets,
            route_table,
            security_group,
        })
    }

    async fn ask(&self, method: Method, path: &str, body: String) -> Result<Value> {
        stand_in::ask(&self.url, method, path, body).await
    }
}

impl AwsCluster {
    /// Starts so many instances in the subnet with this number (0 or 1), with the cluster's tag and the Nodes' security group.
    ///
    /// # Errors
    ///
    /// When moto refuses.
    pub async fn machines(&self, moto: &Moto, subnet: usize, count: u16) -> Result<Vec<AwsMachine>> {
        let subnet = self
            .subnets
            .get(subnet)
            .with_context(|| format!("there is no subnet number {subnet}"))?;
        let run = json!({
            "ImageId": "ami-12c6146b",
            "InstanceType": "t3.small",
            "MinCount": count,
            "MaxCount": count,
            "SubnetId": subnet.id,
            "SecurityGroupIds": [self.security_group],
            "TagSpecifications": [{ "ResourceType": "instance", "Tags": cluster_tags(&self.name) }],
        });
        let made = moto.call("ec2", "run_instances", run).await?;
        let made = made["Instances"]
            .as_array()
            .context("run_instances gave no instances")?;
        let machine = |instance: &Value| {
            Ok(AwsMachine {
                id: text(instance, "/InstanceId")?,
                zone: text(instance, "/Placement/AvailabilityZone")?,
                private_dns: text(instance, "/PrivateDnsName")?,
                private_ip: text(instance, "/PrivateIpAddress")?,
                kind: text(instance, "/InstanceType")?,
            })
        };
        made.iter().map(machine).collect()
    }
}

/// The tag that says whose something is.
fn cluster_tags(name: &str) -> Value {
    json!([{ "Key": format!("kubernetes.io/cluster/{name}"), "Value": "owned" }])
}

fn text(value: &Value, pointer: &str) -> Result<String> {
    let found = value.pointer(pointer).and_then(Value::as_str);
    found
        .map(str::to_owned)
        .ok_or_else(|| anyhow!("there is no {pointer} in {value}"))
}

fn spawn(flags: &[&str]) -> Result<Moto> {
    let python = xtask::servers::moto()?.python();
    let script = xtask::workspace::root().join("tests/python/moto_server.py");
    let script = script.display().to_string();
    let arguments: Vec<String> = [script.as_str()].iter().chain(flags).map(ToString::to_string).collect();
    let process = Child::start(&python, &arguments, &log_file("moto")?)?;
    let url = format!("http://127.0.0.1:{}", process.said("PORT=", START)?);
    let administrator = Credentials {
        access_key: process.said("ACCESS_KEY=", START)?,
        secret_key: process.said("SECRET_KEY=", START)?,
    };
    process.said("READY", START)?;
    Ok(Moto {
        process: Mutex::new(process),
        url,
        administrator,
        clusters: AtomicU8::new(1),
    })
}

/// A file for the log of one more server of this process. The next run of the same tests writes it anew.
pub(crate) fn log_file(server: &str) -> Result<PathBuf> {
    static SERVERS: AtomicUsize = AtomicUsize::new(1);
    let folder = xtask::workspace::target().join("tmp/servers");
    fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    let program = std::env::current_exe().context("looking for our own program")?;
    let program = program.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok(folder.join(format!(
        "{program}-{server}-{}.log",
        SERVERS.fetch_add(1, Ordering::Relaxed)
    )))
}

#[cfg(test)]
mod tests;
