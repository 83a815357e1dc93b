//! For tests of load balancers: whole lives of them, against answers that moto gave.
//!
//! Each test has a file `recorded/balancers/NAME.txt` with every request in order and moto's answer to it. A test fails when it makes
//! another request than the recorded one. To record them again start `moto_server -p 5555` and set `RECORD_FROM=127.0.0.1:5555`:
//! the provider's requests are then answered by moto and recorded. Review the difference before you keep it.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::rc::Rc;

use cloudwit_guest_sdk::form::Form;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::testing::{FakeAnswer, FakeHost, SentRequest};
use cloudwit_guest_sdk::xml::Element;

use crate::Aws;
use crate::api::endpoints::Service as Api;

/// The cluster's name and id.
pub const CLUSTER: &str = "stage";

/// The tag on everything of the cluster.
pub const CLUSTER_TAG: &str = "kubernetes.io/cluster/stage";

const TITLE: &str = "# moto 5.2.5, recorded by providers/aws/src/balancers/testing.rs\n";

/// Requests with their answers, to be given again or being written down.
enum Tape {
    Replay(VecDeque<(String, u16, String)>),
    Record {
        server: String,
        file: PathBuf,
        text: String,
    },
}

impl Tape {
    fn open(name: &str) -> Self {
        let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("recorded/balancers/{name}.txt"));
        if let Ok(server) = std::env::var("RECORD_FROM") {
            let text = TITLE.to_owned();
            exchange(&server, "/moto-api/reset", "ec2", "");
            return Self::Record { server, file, text };
        }
        let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let mut entries = VecDeque::new();
        for entry in text.split("\n> ").skip(1) {
            let (request, answer) = entry.split_once("\n< ").unwrap();
            let (status, body) = answer.split_once('\n').unwrap();
            entries.push_back((request.to_owned(), status.parse().unwrap(), body.to_owned()));
        }
        Self::Replay(entries)
    }

    fn answer(&mut self, service: &str, request: &str) -> (u16, String) {
        match self {
            Self::Replay(entries) => {
                let Some((expected, status, body)) = entries.pop_front() else {
                    panic!("no further request was recorded, but there is\n  {request}");
                };
                assert!(
                    expected == request,
                    "another request than was recorded:\n  {request}\nrecorded:\n  {expected}"
                );
                (status, body)
            }
            Self::Record { server, text, .. } => {
                let (status, body) = exchange(server, "/", service, request);
                text.push_str(&format!("\n> {request}\n< {status}\n{}", body.trim()));
                (status, body)
            }
        }
    }
}

impl Drop for Tape {
    fn drop(&mut self) {
        match self {
            _ if std::thread::panicking() => {}
            Self::Replay(left) => assert!(left.is_empty(), "recorded, but not made:\n  {}", left[0].0),
            Self::Record { file, text, .. } => fs::write(file, text).unwrap(),
        }
    }
}

/// One request over plain HTTP. moto takes the service from the signature, which it does not check here.
fn exchange(server: &str, path: &str, service: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(server).unwrap();
    let key = format!(
        "AWS4-HMAC-SHA256 Credential=A/20260101/us-east-1/{service}/aws4_request, SignedHeaders=host, Signature=0"
    );
    write!(
        stream,
        "POST {path} HTTP/1.0\r\nhost: {service}.us-east-1.amazonaws.com\r\nauthorization: {key}\r\n\
         content-type: application/x-www-form-urlencoded; charset=utf-8\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

/// A VPC with two public subnets and instances for Nodes, and the provider beside it.
pub struct Stage {
    pub host: FakeHost,
    tape: Rc<RefCell<Tape>>,
    config: String,
    pub vpc: String,
    pub subnets: Vec<String>,
    pub group: String,
    pub instances: Vec<String>,
}

impl Stage {
    pub fn new(name: &str) -> Self {
        Self::with(name, "")
    }

    /// With further lines in `[Global]`.
    pub fn with(name: &str, global: &str) -> Self {
        let host = FakeHost::new();
        host.cluster(CLUSTER, &[]).now(1_767_225_600);
        host.secret("access-key-id", "AKIDEXAMPLE")
            .secret("secret-access-key", "secret");
        let tape = Rc::new(RefCell::new(Tape::open(name)));
        let of_server = Rc::clone(&tape);
        host.serve(move |request: &SentRequest| {
            let service = if request.url.contains("//ec2.") {
                "ec2"
            } else {
                "elasticloadbalancing"
            };
            let (status, body) = of_server.borrow_mut().answer(service, &request.text());
            FakeAnswer::xml(status, &body)
        });
        let mut stage = Self {
            host,
            tape,
            config: String::new(),
            vpc: String::new(),
            subnets: Vec::new(),
            group: String::new(),
            instances: Vec::new(),
        };
        stage.set_up(global);
        stage
    }

    fn set_up(&mut self, global: &str) {
        let text = |answer: &Element, at: &[&str]| answer.at(at).map(|one| one.own_text().to_owned()).unwrap();
        let answer = self.call(Api::Ec2, "CreateVpc", &[("CidrBlock", "10.0.0.0/16")]);
        self.vpc = text(&answer, &["vpc", "vpcId"]);
        let gateway = text(
            &self.call(Api::Ec2, "CreateInternetGateway", &[]),
            &["internetGateway", "internetGatewayId"],
        );
        let vpc = self.vpc.clone();
        self.call(
            Api::Ec2,
            "AttachInternetGateway",
            &[("InternetGatewayId", &gateway), ("VpcId", &vpc)],
        );
        let tables = self.call(
            Api::Ec2,
            "DescribeRouteTables",
            &[("Filter.1.Name", "vpc-id"), ("Filter.1.Value.1", &vpc)],
        );
        let table = text(&tables, &["routeTableSet", "item", "routeTableId"]);
        let route = [
            ("RouteTableId", table.as_str()),
            ("DestinationCidrBlock", "0.0.0.0/0"),
            ("GatewayId", &gateway),
        ];
        self.call(Api::Ec2, "CreateRoute", &route);
        for (zone, cidr) in [("us-east-1a", "10.0.0.0/24"), ("us-east-1b", "10.0.1.0/24")] {
            let subnet = [("VpcId", vpc.as_str()), ("CidrBlock", cidr), ("AvailabilityZone", zone)];
            let answer = self.call(Api::Ec2, "CreateSubnet", &subnet);
            self.subnets.push(text(&answer, &["subnet", "subnetId"]));
        }
        self.group = self.make_group("nodes", true);
        self.instances = self.start_instances(2, &self.group.clone());
        self.config = format!("[Global]\nRegion = us-east-1\nVPC = {vpc}\n{global}\n");
        self.host.config(&self.config);
    }

    /// Makes a security group in the VPC.
    pub fn make_group(&self, name: &str, tagged: bool) -> String {
        let mut fields = vec![("GroupName", name), ("GroupDescription", name), ("VpcId", &self.vpc)];
        if tagged {
            fields.push(("TagSpecification.1.ResourceType", "security-group"));
            fields.push(("TagSpecification.1.Tag.1.Key", CLUSTER_TAG));
            fields.push(("TagSpecification.1.Tag.1.Value", "owned"));
        }
        let answer = self.call(Api::Ec2, "CreateSecurityGroup", &fields);
        answer.text("groupId").unwrap().into()
    }

    /// Starts instances in the first subnet and this group.
    pub fn start_instances(&self, count: usize, group: &str) -> Vec<String> {
        let count = count.to_string();
        let fields = [
            ("ImageId", "ami-12c6146b"),
            ("MinCount", &count),
            ("MaxCount", &count),
            ("SubnetId", &self.subnets[0]),
            ("SecurityGroupId.1", group),
        ];
        let answer = self.call(Api::Ec2, "RunInstances", &fields);
        let set = answer.child("instancesSet").unwrap();
        set.children("item")
            .map(|one| one.text("instanceId").unwrap().to_owned())
            .collect()
    }

    /// A request from outside, such as an administrator's. It is recorded too.
    pub fn call(&self, service: Api, action: &str, fields: &[(&str, &str)]) -> Element {
        let mut form = Form::new().field("Action", action).field("Version", service.version());
        for (name, value) in fields {
            form = form.field(name, value);
        }
        let name = if service == Api::Ec2 {
            "ec2"
        } else {
            "elasticloadbalancing"
        };
        let (status, body) = self.tape.borrow_mut().answer(name, &form.encode());
        assert!(status < 300, "{action}: {status} {body}");
        Element::parse(&body).unwrap()
    }

    /// The provider, in a new instance as for each call.
    pub fn aws(&self) -> Aws {
        self.host.provider()
    }

    /// The actions that the provider requests during `work`.
    pub fn actions<T>(&self, work: impl FnOnce(&Aws) -> T) -> (T, Vec<String>) {
        let before = self.host.requests().len();
        let result = work(&self.aws());
        let requests = self.host.requests();
        (
            result,
            requests[before..]
                .iter()
                .map(|request| request.field("Action").unwrap())
                .collect(),
        )
    }

    /// The same without those that only read.
    pub fn writes<T>(&self, work: impl FnOnce(&Aws) -> T) -> (T, Vec<String>) {
        let (result, mut actions) = self.actions(work);
        actions.retain(|action| !action.starts_with("Describe"));
        (result, actions)
    }

    /// The instances as targets.
    pub fn targets(&self) -> Vec<Target> {
        self.instances.iter().map(|id| target(id)).collect()
    }
}

/// A Node on this instance.
pub fn target(instance: &str) -> Target {
    Target {
        node: NodeRef::named(instance).with_provider_id(format!("aws:///us-east-1a/{instance}")),
        ready: true,
    }
}

/// A Service with TCP port 80 and these annotations, without their prefix.
pub fn service(annotations: &[(&str, &str)]) -> Service {
    let mut service = Service::new("default", "web", "1bf6e8a3-6f0a-4d3e-9a3c-000000000001");
    service.ports = vec![port(80, 30080)];
    let prefix = "service.beta.kubernetes.io/aws-load-balancer-";
    let pair = |(key, value): &(&str, &str)| Pair::new(format!("{prefix}{key}"), *value);
    service.annotations = annotations.iter().map(pair).collect();
    service
}

/// A TCP port.
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

/// What [`service`]'s load balancer is called.
pub const NAME: &str = "a1bf6e8a36f0a4d3e9a3c00000000000";
