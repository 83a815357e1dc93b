//! A cluster in moto with two instances, and the provider beside it, which speaks through a gate.

use axum::http::{Method, StatusCode};
use cloudwit_host::destination::Scheme;
use cloudwit_host::grants::{Grants, HttpGrant, SecretGrant, SecretUse};
use cloudwit_host::{HostOptions, Provider, ProviderSettings};
use cloudwit_model::{
    Balancer, Cloud, CloudError, Endpoint, Failure, NodeRef, ObjectEvent, Protocol, Service, ServicePort, Target,
};
use cloudwit_suite::hosting::{Hosting, node, settings};
use cloudwit_test_support::clouds::moto::{AwsCluster, AwsMachine, Credentials, Moto};
use cloudwit_test_support::files::aws::cloud_config;
use cloudwit_test_support::gate::fault::Fault;
use cloudwit_test_support::gate::{Gate, Point};
use serde_json::{Value, json};

/// What annotations of load balancers begin with.
pub const PREFIX: &str = "service.beta.kubernetes.io/aws-load-balancer-";

/// Both kinds, as an annotation has them.
pub const KINDS: [&str; 2] = ["classic", "nlb"];

pub struct Stand {
    pub moto: &'static Moto,
    pub cluster: AwsCluster,
    pub machines: Vec<AwsMachine>,
    pub gate: Gate,
    pub hosting: Hosting,
    pub provider: Provider,
    key: Credentials,
    _secrets: tempfile::TempDir,
}

impl Stand {
    /// A cluster of this name, which no other test may have.
    pub async fn new(name: &str) -> Self {
        Self::with(name, "").await
    }

    /// With further lines in `[Global]`.
    pub async fn with(name: &str, global: &str) -> Self {
        let moto = Moto::shared().await;
        let cluster = moto.cluster(name).await.unwrap();
        let machines = cluster.machines(moto, 0, 2).await.unwrap();
        let key = moto.user(name, &policy()).await.unwrap();
        let gate = Gate::to_url(moto.url()).await.unwrap();
        // Compiled once for all tests.
        let cache_dir = Some(xtask::workspace::target().join("tmp/aws-balancers-cache"));
        let hosting = Hosting::new(HostOptions {
            cache_dir,
            ..HostOptions::default()
        });
        let secrets = tempfile::tempdir().unwrap();
        let text = cloud_config(&cluster, &gate.url()).replacen("[Global]\n", &format!("[Global]\n{global}\n"), 1);
        let settings = ProviderSettings {
            config_text: text,
            grants: grants(&gate, &key, secrets.path()),
            ..settings()
        };
        let component = tokio::task::spawn_blocking(|| cloudwit_test_support::programs::guests::provider("aws"));
        let provider = hosting.load_file(&component.await.unwrap(), settings).await.unwrap();
        Self {
            moto,
            cluster,
            machines,
            gate,
            hosting,
            provider,
            key,
            _secrets: secrets,
        }
    }

    pub async fn ensure(&self, service: &Service) -> Result<Balancer, Failure> {
        self.ensure_on(service, &self.targets()).await
    }

    pub async fn ensure_on(&self, service: &Service, targets: &[Target]) -> Result<Balancer, Failure> {
        failing(self.provider.ensure_balancer(service, targets, None).await)
    }

    pub async fn delete(&self, service: &Service) -> Result<(), Failure> {
        failing(self.provider.delete_balancer(service, None).await).map(drop)
    }

    pub fn targets(&self) -> Vec<Target> {
        self.machines.iter().map(target).collect()
    }

    /// The actions that the provider has asked moto for since the last time.
    pub async fn actions(&self) -> Vec<String> {
        let all = self.moto.calls().await.unwrap();
        let own = all.into_iter().filter(|call| call.key == self.key.access_key);
        own.map(|call| call.action).collect()
    }

    /// What `work` makes the provider ask for that is no mere reading, as far as it arrives.
    pub async fn writes<T>(&self, work: impl Future<Output = T>) -> (T, Vec<String>) {
        let reading = Point::before(Method::POST, "/").with("Action=Describe");
        let (passed, reads) = (self.gate.changes().len(), self.gate.count(&reading));
        let result = work.await;
        let (passed, reads) = (self.gate.changes().len() - passed, self.gate.count(&reading) - reads);
        if passed == reads {
            return (result, Vec::new());
        }
        let mut last = self.actions().await;
        last.drain(..last.len() - passed);
        last.retain(|action| !action.starts_with("Describe"));
        (result, last)
    }

    /// From now on requests for this action meet a fault.
    pub fn fail(&self, action: &str, fault: Fault) -> Fault {
        self.gate.fail(point(action), fault)
    }

    /// An answer of moto's to boto3.
    pub async fn ask(&self, service: &str, method: &str, arguments: Value) -> Value {
        self.moto.call(service, method, arguments).await.unwrap()
    }

    /// The classic load balancer of a Service.
    pub async fn classic(&self, service: &Service) -> Option<Value> {
        let arguments = json!({ "LoadBalancerNames": [name(service)] });
        let answer = self.moto.call("elb", "describe_load_balancers", arguments).await.ok()?;
        Some(answer["LoadBalancerDescriptions"][0].clone())
    }

    /// The network load balancer of a Service.
    pub async fn network(&self, service: &Service) -> Option<Value> {
        let arguments = json!({ "Names": [name(service)] });
        let answer = self
            .moto
            .call("elbv2", "describe_load_balancers", arguments)
            .await
            .ok()?;
        Some(answer["LoadBalancers"][0].clone())
    }

    /// The target groups in the cluster's VPC.
    pub async fn target_groups(&self) -> Vec<Value> {
        let answer = self.ask("elbv2", "describe_target_groups", json!({})).await;
        let all = answer["TargetGroups"].as_array().unwrap();
        all.iter()
            .filter(|group| group["VpcId"] == self.cluster.vpc.as_str())
            .cloned()
            .collect()
    }

    /// The ingress rules of a security group.
    pub async fn rules(&self, group: &str) -> Vec<Value> {
        let answer = self
            .ask("ec2", "describe_security_groups", json!({ "GroupIds": [group] }))
            .await;
        answer["SecurityGroups"][0]["IpPermissions"].as_array().unwrap().clone()
    }

    /// The ids of the cluster's security groups, but for the VPC's default one.
    pub async fn groups(&self) -> Vec<String> {
        let filter = json!({ "Filters": [{ "Name": "vpc-id", "Values": [self.cluster.vpc] }] });
        let answer = self.ask("ec2", "describe_security_groups", filter).await;
        let all = answer["SecurityGroups"].as_array().unwrap().iter();
        all.filter(|group| group["GroupName"] != "default")
            .map(|group| text(&group["GroupId"]))
            .collect()
    }

    /// Insists that nothing is left of these Services, and that the Nodes' group is as it was.
    pub async fn nothing_left(&self, services: &[&Service]) {
        for service in services {
            assert_eq!(self.classic(service).await, None, "{}", service.name);
            assert_eq!(self.network(service).await, None, "{}", service.name);
        }
        assert_eq!(self.target_groups().await, Vec::<Value>::new());
        assert_eq!(self.groups().await, std::slice::from_ref(&self.cluster.security_group));
        assert_eq!(self.rules(&self.cluster.security_group).await, Vec::<Value>::new());
    }

    /// The Events so far.
    pub fn events(&self) -> Vec<ObjectEvent> {
        self.hosting.outside.events()
    }
}

/// All that the provider is allowed to do to load balancers: the policy that operators are given.
fn policy() -> Value {
    let file = cloudwit_suite::root().join("deploy/examples/aws/policy.json");
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

fn grants(gate: &Gate, key: &Credentials, folder: &std::path::Path) -> Grants {
    let (host, port) = gate
        .url()
        .strip_prefix("http://")
        .unwrap()
        .rsplit_once(':')
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .unwrap();
    let secret = |name: &str, value: &str, usage| {
        let file = folder.join(name);
        std::fs::write(&file, value).unwrap();
        SecretGrant {
            name: name.into(),
            file,
            // Where a placeholder may be filled in; a key that only signs goes nowhere.
            hosts: if usage == SecretUse::Placeholder {
                vec![format!("{host}:{port}")]
            } else {
                Vec::new()
            },
            uses: vec![usage],
        }
    };
    Grants {
        http: vec![HttpGrant {
            scheme: Scheme::Http,
            host: host.clone(),
            port: Some(port.parse().unwrap()),
            methods: vec!["POST".into()],
            allow_loopback: true,
            ..HttpGrant::default()
        }],
        secrets: vec![
            secret("access-key-id", &key.access_key, SecretUse::Placeholder),
            secret("secret-access-key", &key.secret_key, SecretUse::Hmac),
        ],
        ..Grants::default()
    }
}

fn failing<T>(result: Result<T, CloudError>) -> Result<T, Failure> {
    result.map_err(|error| match error {
        CloudError::Failure(failure) => failure,
        fault => panic!("{fault:?}"),
    })
}

/// Requests for this action.
pub fn point(action: &str) -> Point {
    Point::before(Method::POST, "/").with(format!("Action={action}&"))
}

/// A refusal in the words of AWS.
pub fn refusal(status: u16, code: &str) -> Fault {
    let body = format!(
        "<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>No.</Message></Error></ErrorResponse>"
    );
    Fault::status(StatusCode::from_u16(status).unwrap()).body("text/xml", body)
}

/// A Service of this kind with TCP port 80. Its uid, and so its load balancer's name, follow from its name.
pub fn service(name: &str, kind: &str) -> Service {
    let mut uid = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    uid &= 0xffff_ffff_ffff;
    let mut service = Service {
        namespace: "default".into(),
        name: name.into(),
        uid: format!("{uid:012x}-0000-4000-8000-000000000001"),
        ports: vec![port(80, 30080)],
        ..Service::default()
    };
    annotate(&mut service, "type", kind);
    service
}

pub fn annotate(service: &mut Service, key: &str, value: &str) {
    service.annotations.insert(format!("{PREFIX}{key}"), value.into());
}

pub fn port(port: u16, node_port: u16) -> ServicePort {
    ServicePort {
        name: Some(format!("p{port}")),
        protocol: Protocol::Tcp,
        port,
        node_port: Some(node_port),
        target_port: None,
        app_protocol: None,
    }
}

/// What the Service's load balancer is called.
pub fn name(service: &Service) -> String {
    let uid: String = service.uid.chars().filter(|character| *character != '-').collect();
    format!("a{}", &uid[..31.min(uid.len())])
}

pub fn target(machine: &AwsMachine) -> Target {
    Target {
        node: NodeRef {
            provider_id: Some(machine.provider_id()),
            ..node(&machine.private_dns)
        },
        ready: true,
    }
}

pub fn hostname(balancer: &Balancer) -> String {
    match &balancer.ingress[0].endpoint {
        Endpoint::Hostname(name) => name.clone(),
        other => panic!("{other:?}"),
    }
}

pub fn text(value: &Value) -> String {
    value
        .as_str()
        .unwrap_or_else(|| panic!("{value} is no text"))
        .to_owned()
}
