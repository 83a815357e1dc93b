//! The VPC's subnets as the cloud shows them, kept for some minutes: they rarely change, and every load balancer needs them.
//!
//! The choice is made in [`crate::balancers::subnets::plan`].

pub mod plan;

use std::time::Duration;

use cloudwit_guest_sdk::state::Keep;
use cloudwit_guest_sdk::xml::Element;

use crate::Aws;
use crate::api::endpoints::Service as Api;
use crate::api::error::AwsError;
use crate::balancers::annotations::settings::Settings;
use crate::balancers::subnets::plan::{Subnet, Traits, discover, named};
use crate::tags::{CLUSTER_PREFIX, ec2_tags, tag};

/// How long the list is cached: a new subnet, tag or route counts after this time at the latest.
const KEPT: Duration = Duration::from_secs(5 * 60);

/// How long a call waits for another one with the same request.
const WAIT: Duration = Duration::from_secs(20);

/// Its place in the state.
const KEY: &str = "balancer-subnets";

/// Role tags of subnets, whatever their value (`clouds/aws.md`).
const ROLES: [(&str, u8); 2] = [
    ("kubernetes.io/role/elb", Traits::FOR_PUBLIC),
    ("kubernetes.io/role/internal-elb", Traits::FOR_INTERNAL),
];

/// A route table, as far as it decides whether a subnet is public.
struct RouteTable {
    main: bool,
    subnets: Vec<String>,
    public: bool,
}

impl Aws {
    /// The ids of the subnets for a load balancer, and all that are known.
    pub(crate) fn balancer_subnets(&self, settings: &Settings) -> Result<(Vec<String>, Vec<Subnet>), AwsError> {
        let known = self.subnets()?;
        if settings.subnets.is_empty() {
            let found = discover(&known, settings.internal, &self.config.global.subnet_id)?;
            return Ok((found, known));
        }
        match named(&known, &settings.subnets) {
            Ok(ids) => Ok((ids, known)),
            // It may have been made after the list.
            Err(_) => {
                self.context.state().remove(KEY);
                let known = self.subnets()?;
                Ok((named(&known, &settings.subnets)?, known))
            }
        }
    }

    fn subnets(&self) -> Result<Vec<Subnet>, AwsError> {
        let state = self.context.state();
        let ask = || Ok(self.ask_subnets()?);
        let kept: String = state.get_or_make(KEY, Keep::at_most(KEPT), WAIT, ask)?;
        let subnet = |line: &str| {
            let mut parts = line.split('\t');
            let mut next = || parts.next().unwrap_or_default();
            let (id, zone, cidr, traits) = (next().into(), next().into(), next().into(), next().parse());
            Subnet {
                id,
                zone,
                cidr,
                name: next().into(),
                traits: Traits(traits.unwrap_or_default()),
            }
        };
        Ok(kept.lines().map(subnet).collect())
    }

    /// A line for each subnet: id, zone, range, traits and name.
    fn ask_subnets(&self) -> Result<String, AwsError> {
        let vpc = self.vpc_id()?;
        let of_vpc = [("Filter.1.Name", "vpc-id"), ("Filter.1.Value.1", vpc.as_str())];
        let tables = self.ask_all(Api::Ec2, "DescribeRouteTables", &of_vpc, &["routeTableSet"])?;
        let tables: Vec<RouteTable> = tables.iter().map(read_table).collect();
        let zones = self.ask_all(Api::Ec2, "DescribeAvailabilityZones", &[], &["availabilityZoneInfo"])?;
        // Older answers have no type: then there were no other zones.
        let whole = |zone: &&Element| zone.text("zoneType").is_none_or(|kind| kind == "availability-zone");
        let zones: Vec<&str> = zones
            .iter()
            .filter(whole)
            .filter_map(|zone| zone.text("zoneName"))
            .collect();
        let subnets = self.ask_all(Api::Ec2, "DescribeSubnets", &of_vpc, &["subnetSet"])?;
        let mut lines = String::new();
        for item in &subnets {
            lines.push_str(&self.read_subnet(item, &tables, &zones));
        }
        Ok(lines)
    }

    fn read_subnet(&self, item: &Element, tables: &[RouteTable], zones: &[&str]) -> String {
        let text = |name: &str| item.text(name).unwrap_or_default().to_owned();
        let (id, zone, tags) = (text("subnetId"), text("availabilityZone"), ec2_tags(item));
        let table = tables
            .iter()
            .find(|table| table.subnets.contains(&id))
            .or_else(|| tables.iter().find(|table| table.main));
        let mut traits = 0;
        let mut set = |bit, on| traits |= if on { bit } else { 0 };
        set(Traits::PUBLIC, table.is_some_and(|table| table.public));
        set(Traits::WHOLE_ZONE, zones.contains(&zone.as_str()));
        for (key, bit) in ROLES {
            set(bit, tag(&tags, key).is_some());
        }
        let ours = self.cluster.marks(&tags);
        set(Traits::OURS, ours);
        set(
            Traits::FOREIGN,
            !ours && tags.iter().any(|tag| tag.key.starts_with(CLUSTER_PREFIX)),
        );
        let name = tag(&tags, "Name").unwrap_or_default().replace(['\t', '\n'], " ");
        format!("{id}\t{zone}\t{}\t{traits}\t{name}\n", text("cidrBlock"))
    }
}

fn read_table(item: &Element) -> RouteTable {
    let associations = || item.all(&["associationSet", "item"]);
    RouteTable {
        main: associations().any(|one| one.text("main") == Some("true")),
        subnets: associations()
            .filter_map(|one| one.text("subnetId").map(Into::into))
            .collect(),
        public: item
            .all(&["routeSet", "item"])
            .any(|route| route.text("gatewayId").is_some_and(|id| id.starts_with("igw"))),
    }
}
