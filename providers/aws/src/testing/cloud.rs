//! For tests: a small AWS with classic load balancers and security groups, which keeps its state.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use cloudwit_guest_sdk::names::default_load_balancer_name;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::testing::{FakeAnswer, FakeHost, SentRequest};

use crate::Aws;
use crate::testing::{CONFIG, host, refusal};

/// A security group: whether it carries the cluster's tag, and the groups that it lets everything in from.
#[derive(Debug, Default)]
pub struct CloudGroup {
    pub tags: Vec<(String, String)>,
    pub trusts: Vec<String>,
}

/// A classic load balancer: ports with node ports, security groups, instances.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CloudBalancer {
    pub listeners: Vec<(u16, u16)>,
    pub groups: Vec<String>,
    pub instances: Vec<String>,
}

type Meddler = Box<dyn FnMut(&mut CloudState, &str)>;

/// All that there is.
#[derive(Default)]
pub struct CloudState {
    pub groups: BTreeMap<String, CloudGroup>,
    pub balancers: BTreeMap<String, CloudBalancer>,
    /// This action is refused with this code.
    pub refuses: Option<(&'static str, &'static str)>,
    /// Called before each action with its name.
    pub meddler: Option<Meddler>,
}

/// The cloud and a host for the provider.
pub struct SmallCloud {
    pub host: FakeHost,
    pub state: Rc<RefCell<CloudState>>,
}

/// The tag on what is the cluster's.
pub fn cluster_tag() -> (String, String) {
    ("kubernetes.io/cluster/test".into(), "owned".into())
}

impl SmallCloud {
    /// With further lines in `[Global]`, the group `sg-nodes` with the cluster's tag, and these groups of an operator's.
    pub fn new(global: &str, groups: &[&str]) -> Self {
        let host = host();
        host.config(format!("{CONFIG}VPC = vpc-1\n{global}"));
        let state = Rc::new(RefCell::new(CloudState::default()));
        let nodes = CloudGroup {
            tags: vec![cluster_tag()],
            ..CloudGroup::default()
        };
        state.borrow_mut().groups.insert("sg-nodes".into(), nodes);
        for id in groups {
            state.borrow_mut().groups.insert((*id).into(), CloudGroup::default());
        }
        let of_server = Rc::clone(&state);
        host.serve(move |request| of_server.borrow_mut().answer(request));
        Self { host, state }
    }

    /// A load balancer as [`crate::balancers::testing::service`] of this uid requests it, in these groups.
    pub fn standing(&self, service: &Service, groups: &[&str]) {
        let balancer = CloudBalancer {
            listeners: vec![(80, 30080)],
            groups: groups.iter().map(|id| (*id).into()).collect(),
            instances: vec!["i-1".into()],
        };
        let name = default_load_balancer_name(&service.uid);
        self.state.borrow_mut().balancers.insert(name, balancer);
    }

    /// The groups that the Nodes' group trusts.
    pub fn trusted(&self) -> Vec<String> {
        self.state.borrow().groups["sg-nodes"].trusts.clone()
    }

    /// Has the Nodes' group trust this one.
    pub fn trust(&self, id: &str) {
        let mut state = self.state.borrow_mut();
        state.groups.get_mut("sg-nodes").unwrap().trusts.push(id.into());
    }

    /// The provider of one call.
    pub fn aws(&self) -> Aws {
        self.host.provider()
    }

    /// How often this action was requested.
    pub fn count(&self, action: &str) -> usize {
        let asked = |request: &SentRequest| request.field("Action").as_deref() == Some(action);
        self.host.requests().iter().filter(|request| asked(request)).count()
    }
}

/// The instance that is behind every load balancer, as a target.
pub fn small_targets() -> Vec<Target> {
    vec![crate::balancers::testing::target("i-1")]
}

fn list(request: &SentRequest, prefix: &str) -> Vec<String> {
    let fields = request.form().into_iter();
    let fields = fields.filter(|(name, _)| name.starts_with(prefix));
    fields.map(|(_, value)| value).collect()
}

fn members(values: &[String]) -> String {
    values.iter().map(|value| format!("<member>{value}</member>")).collect()
}

impl CloudState {
    fn answer(&mut self, request: &SentRequest) -> FakeAnswer {
        let action = request.field("Action").unwrap();
        if let Some(mut meddler) = self.meddler.take() {
            meddler(self, &action);
            self.meddler = Some(meddler);
        }
        if let Some((_, code)) = self.refuses.filter(|(refused, _)| *refused == action) {
            return FakeAnswer::xml(400, &refusal(code, "refused by the test"));
        }
        let result = match request.field("Version").as_deref() {
            Some("2016-11-15") => return FakeAnswer::xml(200, &self.ec2(&action, request)),
            Some("2012-06-01") => self.classic(&action, request),
            _ => self.network(&action),
        };
        match result {
            Ok(text) => FakeAnswer::xml(
                200,
                &format!("<{action}Response><{action}Result>{text}</{action}Result></{action}Response>"),
            ),
            Err(code) => FakeAnswer::xml(400, &refusal(code, "as AWS does")),
        }
    }

    fn network(&self, action: &str) -> Result<String, &'static str> {
        match action {
            "DescribeLoadBalancers" => Err("LoadBalancerNotFound"),
            "DescribeTargetGroups" => Ok("<TargetGroups/>".into()),
            other => panic!("no network load balancer is here: {other}"),
        }
    }

    fn classic(&mut self, action: &str, request: &SentRequest) -> Result<String, &'static str> {
        let named = request
            .field("LoadBalancerName")
            .or(request.field("LoadBalancerNames.member.1"));
        let Some(name) = named else {
            let all: String = self.balancers.iter().map(show).collect();
            return Ok(format!("<LoadBalancerDescriptions>{all}</LoadBalancerDescriptions>"));
        };
        if action == "DeleteLoadBalancer" {
            self.balancers.remove(&name);
            return Ok(String::new());
        }
        let Some(balancer) = self.balancers.get_mut(&name) else {
            return Err("LoadBalancerNotFound");
        };
        let number = |key: &str| request.field(key).unwrap().parse().unwrap();
        match action {
            "ApplySecurityGroupsToLoadBalancer" => balancer.groups = list(request, "SecurityGroups."),
            "DeleteLoadBalancerListeners" => {
                let ports = list(request, "LoadBalancerPorts.");
                balancer
                    .listeners
                    .retain(|(port, _)| !ports.contains(&port.to_string()));
            }
            "CreateLoadBalancerListeners" => {
                let listener = (
                    number("Listeners.member.1.LoadBalancerPort"),
                    number("Listeners.member.1.InstancePort"),
                );
                balancer.listeners.push(listener);
            }
            "DescribeTags" => {
                return Ok("<TagDescriptions><member><Tags><member><Key>kubernetes.io/cluster/test</Key>\
                     <Value>owned</Value></member><member><Key>kubernetes.io/service-name</Key><Value>default/web</Value>\
                     </member></Tags></member></TagDescriptions>"
                    .into());
            }
            "DescribeLoadBalancerAttributes" => {
                return Ok("<LoadBalancerAttributes><CrossZoneLoadBalancing><Enabled>false</Enabled>\
                     </CrossZoneLoadBalancing><AccessLog><Enabled>false</Enabled></AccessLog><ConnectionDraining><Enabled>false</Enabled>\
                     </ConnectionDraining><ConnectionSettings><IdleTimeout>60</IdleTimeout></ConnectionSettings></LoadBalancerAttributes>"
                    .into());
            }
            "DescribeLoadBalancers" => {
                let one = show((&name, balancer));
                return Ok(format!("<LoadBalancerDescriptions>{one}</LoadBalancerDescriptions>"));
            }
            "RegisterInstancesWithLoadBalancer" | "DeregisterInstancesFromLoadBalancer" => {}
            other => panic!("nothing wants {other} here"),
        }
        Ok(String::new())
    }

    fn ec2(&mut self, action: &str, request: &SentRequest) -> String {
        let group = request.field("GroupId").unwrap_or_default();
        let source = request.field("IpPermissions.1.Groups.1.GroupId").unwrap_or_default();
        let text = match action {
            "DescribeSecurityGroups" => {
                let values = list(request, "Filter.1.Value.");
                let filter = request.field("Filter.1.Name").unwrap();
                let fits = |(id, group): &(&String, &CloudGroup)| match filter.as_str() {
                    "group-id" => values.contains(id),
                    "ip-permission.group-id" => group.trusts.iter().any(|id| values.contains(id)),
                    "tag-key" => group.tags.iter().any(|(key, _)| values.contains(key)),
                    _ => false,
                };
                let items: String = self.groups.iter().filter(fits).map(show_group).collect();
                format!("<securityGroupInfo>{items}</securityGroupInfo>")
            }
            "AuthorizeSecurityGroupIngress" => {
                self.groups.get_mut(&group).unwrap().trusts.push(source);
                String::new()
            }
            "RevokeSecurityGroupIngress" => {
                let group = self.groups.get_mut(&group).unwrap();
                group.trusts.retain(|id| *id != source);
                String::new()
            }
            "DescribeInstances" => {
                let item = |id: String| {
                    format!(
                        "<item><instanceId>{id}</instanceId><instanceState><name>running</name></instanceState>\
                         <groupSet><item><groupId>sg-nodes</groupId></item></groupSet></item>"
                    )
                };
                let items: String = list(request, "InstanceId.").into_iter().map(item).collect();
                format!("<reservationSet><item><instancesSet>{items}</instancesSet></item></reservationSet>")
            }
            "DescribeSubnets" => {
                "<subnetSet><item><subnetId>subnet-1</subnetId><availabilityZone>us-east-1a</availabilityZone>\
                 <cidrBlock>10.0.0.0/24</cidrBlock></item></subnetSet>"
                    .into()
            }
            "DescribeRouteTables" => {
                "<routeTableSet><item><associationSet><item><main>true</main></item></associationSet><routeSet>\
                 <item><gatewayId>igw-1</gatewayId></item></routeSet></item></routeTableSet>"
                    .into()
            }
            "DescribeAvailabilityZones" => {
                "<availabilityZoneInfo><item><zoneName>us-east-1a</zoneName></item></availabilityZoneInfo>".into()
            }
            "DescribeVpcs" => "<vpcSet/>".into(),
            other => panic!("nothing wants {other} here"),
        };
        format!("<{action}Response>{text}</{action}Response>")
    }
}

fn show((name, balancer): (&String, &CloudBalancer)) -> String {
    let listener = |(port, node_port): &(u16, u16)| {
        format!(
            "<member><Listener><Protocol>TCP</Protocol><LoadBalancerPort>{port}</LoadBalancerPort><InstanceProtocol>TCP</InstanceProtocol>\
             <InstancePort>{node_port}</InstancePort></Listener></member>"
        )
    };
    let listeners: String = balancer.listeners.iter().map(listener).collect();
    let instance = |id: &String| format!("<member><InstanceId>{id}</InstanceId></member>");
    let instances: String = balancer.instances.iter().map(instance).collect();
    let groups = members(&balancer.groups);
    format!(
        "<member><LoadBalancerName>{name}</LoadBalancerName><DNSName>{name}.elb.test</DNSName><Scheme>internet-facing</Scheme>\
         <ListenerDescriptions>{listeners}</ListenerDescriptions><Subnets><member>subnet-1</member></Subnets>\
         <SecurityGroups>{groups}</SecurityGroups><Instances>{instances}</Instances><HealthCheck><Target>TCP:30080</Target>\
         <Interval>10</Interval><Timeout>5</Timeout><UnhealthyThreshold>6</UnhealthyThreshold><HealthyThreshold>2</HealthyThreshold>\
         </HealthCheck></member>"
    )
}

fn show_group((id, group): (&String, &CloudGroup)) -> String {
    let tag = |(key, value): &(String, String)| format!("<item><key>{key}</key><value>{value}</value></item>");
    let tags: String = group.tags.iter().map(tag).collect();
    let rule = |source: &String| {
        format!("<item><ipProtocol>-1</ipProtocol><groups><item><groupId>{source}</groupId></item></groups></item>")
    };
    let rules: String = group.trusts.iter().map(rule).collect();
    format!(
        "<item><groupId>{id}</groupId><groupName>{id}</groupName><tagSet>{tags}</tagSet><ipPermissions>{rules}</ipPermissions></item>"
    )
}
