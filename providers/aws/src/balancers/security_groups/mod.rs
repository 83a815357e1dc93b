//! Security groups: their form, and the requests about them.
//!
//! EC2 merges rules that differ in one part only, so all comparing is done on rules with one source each ([`Rule`]). What should be in a
//! group is decided in [`crate::balancers::security_groups::plan`]; requests are sent by `classic::apply` and `network::apply`.

pub mod own;
pub mod plan;

use cloudwit_guest_sdk::Pair;
use cloudwit_guest_sdk::form::Form;
use cloudwit_guest_sdk::xml::Element;

use crate::balancers::steps::Step;
use crate::tags::ec2_tags;

/// The group of a classic load balancer's own is called so, followed by its name (`clouds/aws.md`).
pub const CLASSIC_PREFIX: &str = "k8s-elb-";

/// Where traffic comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// An IPv4 range as a CIDR.
    Ipv4(String),
    /// An IPv6 range as a CIDR.
    Ipv6(String),
    /// Members of this group.
    Group(String),
    /// A managed prefix list.
    PrefixList(String),
}

impl Source {
    /// An address range of either family.
    pub fn range(cidr: &str) -> Self {
        match cidr.contains(':') {
            true => Self::Ipv6(cidr.into()),
            false => Self::Ipv4(cidr.into()),
        }
    }
}

/// One ingress rule with one source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// `tcp`, `udp`, `icmp`, a number, or `-1` for everything.
    pub protocol: String,
    /// First port, or the ICMP type; -1 for all.
    pub from: i32,
    /// Last port, or the ICMP code; -1 for all.
    pub to: i32,
    /// Where it comes from.
    pub source: Source,
    /// Free text; empty for none. The cloud does not distinguish rules by it.
    pub description: String,
}

impl Rule {
    /// A rule for one port.
    pub fn port(protocol: &str, port: u16, source: Source) -> Self {
        Self {
            protocol: protocol.into(),
            from: port.into(),
            to: port.into(),
            source,
            description: String::new(),
        }
    }

    /// ICMP "fragmentation needed" (type 3 code 4), without which path MTU discovery fails.
    pub fn mtu(source: Source) -> Self {
        Self {
            protocol: "icmp".into(),
            from: 3,
            to: 4,
            source,
            description: String::new(),
        }
    }

    /// Everything, from members of a group.
    pub fn all_from_group(group: &str) -> Self {
        Self {
            protocol: "-1".into(),
            from: -1,
            to: -1,
            source: Source::Group(group.into()),
            description: String::new(),
        }
    }

    /// The same rule with a text.
    pub fn described(mut self, description: &str) -> Self {
        self.description = description.into();
        self
    }

    /// Whether both let the same traffic through, whatever their texts: then they are one to the cloud.
    pub fn same(&self, other: &Self) -> bool {
        self.protocol == other.protocol
            && self.source == other.source
            && (self.protocol == "-1" || (self.from, self.to) == (other.from, other.to))
    }

    /// Whether one of these is the same.
    pub fn is_in(&self, rules: &[Self]) -> bool {
        rules.iter().any(|rule| rule.same(self))
    }
}

/// A security group as the cloud shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// `sg-…`.
    pub id: String,
    /// Unique in its VPC.
    pub name: String,
    /// Tags.
    pub tags: Vec<Pair>,
    /// Ingress rules, one source each.
    pub rules: Vec<Rule>,
}

/// Reads an item of `DescribeSecurityGroups`.
pub fn read_group(item: &Element) -> Group {
    Group {
        id: item.text("groupId").unwrap_or_default().into(),
        name: item.text("groupName").unwrap_or_default().into(),
        tags: ec2_tags(item),
        rules: item.all(&["ipPermissions", "item"]).flat_map(read_rules).collect(),
    }
}

/// The rules of one merged permission.
fn read_rules(permission: &Element) -> Vec<Rule> {
    let number = |name| permission.text(name).and_then(|text| text.parse().ok()).unwrap_or(-1);
    let (from, to) = (number("fromPort"), number("toPort"));
    let protocol = permission.text("ipProtocol").unwrap_or_default();
    let mut rules = Vec::new();
    type Kind = (&'static str, &'static str, fn(String) -> Source);
    let sources: [Kind; 4] = [
        ("ipRanges", "cidrIp", Source::Ipv4),
        ("ipv6Ranges", "cidrIpv6", Source::Ipv6),
        ("groups", "groupId", Source::Group),
        ("prefixListIds", "prefixListId", Source::PrefixList),
    ];
    for (set, key, source) in sources {
        for item in permission.all(&[set, "item"]) {
            if let Some(value) = item.text(key) {
                rules.push(Rule {
                    protocol: protocol.into(),
                    from,
                    to,
                    source: source(value.into()),
                    description: item.text("description").unwrap_or_default().into(),
                });
            }
        }
    }
    rules
}

/// Adds `TagSpecification.1` or `Tag.n` fields, by `prefix`.
pub fn tag_fields(mut form: Form, prefix: &str, tags: &[Pair]) -> Form {
    for (index, Pair { key, value }) in tags.iter().enumerate() {
        let item = format!("{prefix}{}", (index + 1));
        form = form.field(format!("{item}.Key"), key);
        form = form.field(format!("{item}.Value"), value);
    }
    form
}

/// Makes a group. Its tags are there from its first moment: nothing half-made is ever without an owner.
pub fn create(vpc: &str, name: &str, description: &str, tags: &[Pair]) -> Form {
    let form = Form::new()
        .field("GroupName", name)
        .field("GroupDescription", description)
        .field("VpcId", vpc)
        .field("TagSpecification.1.ResourceType", "security-group");
    tag_fields(form, "TagSpecification.1.Tag.", tags)
}

/// Lets traffic into a group; what is allowed already is done.
pub fn authorize(group: &str, rules: &[&Rule]) -> Step {
    Step::ec2("AuthorizeSecurityGroupIngress", rules_form(group, rules)).done_by(&["InvalidPermission.Duplicate"])
}

/// Takes rules out of a group; what is not there is done.
pub fn revoke(group: &str, rules: &[&Rule]) -> Step {
    Step::ec2("RevokeSecurityGroupIngress", rules_form(group, rules)).done_by(&["InvalidPermission.NotFound"])
}

fn rules_form(group: &str, rules: &[&Rule]) -> Form {
    let mut form = Form::new().field("GroupId", group);
    for (index, rule) in rules.iter().enumerate() {
        let prefix = format!("IpPermissions.{}.", (index + 1));
        form = form.field(format!("{prefix}IpProtocol"), &rule.protocol);
        if rule.protocol != "-1" {
            form = form.field(format!("{prefix}FromPort"), rule.from.to_string());
            form = form.field(format!("{prefix}ToPort"), rule.to.to_string());
        }
        let (set, key, value) = match &rule.source {
            Source::Ipv4(cidr) => ("IpRanges.1.", "CidrIp", cidr),
            Source::Ipv6(cidr) => ("Ipv6Ranges.1.", "CidrIpv6", cidr),
            Source::Group(id) => ("Groups.1.", "GroupId", id),
            Source::PrefixList(id) => ("PrefixListIds.1.", "PrefixListId", id),
        };
        form = form.field(format!("{prefix}{set}{key}"), value);
        if !rule.description.is_empty() {
            form = form.field(format!("{prefix}{set}Description"), &rule.description);
        }
    }
    form
}
