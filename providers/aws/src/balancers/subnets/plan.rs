//! Which subnets a load balancer is in. Pure: the VPC's subnets in, ids out.

use cloudwit_guest_sdk::prelude::*;

/// A subnet, as far as the choice depends on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subnet {
    /// `subnet-…`.
    pub id: String,
    /// Availability zone.
    pub zone: String,
    /// IPv4 range; health checks of a network load balancer come from it.
    pub cidr: String,
    /// Tag `Name`.
    pub name: String,
    /// See [`Traits`].
    pub traits: Traits,
}

/// Properties by which subnets are ranked, as bits, since it is kept between calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traits(pub u8);

impl Traits {
    /// Its route table leads to an internet gateway.
    pub const PUBLIC: u8 = 1;
    /// Its zone is a whole availability zone, no Local Zone, Wavelength Zone or Outpost.
    pub const WHOLE_ZONE: u8 = 2;
    /// Tag `kubernetes.io/role/elb`.
    pub const FOR_PUBLIC: u8 = 4;
    /// Tag `kubernetes.io/role/internal-elb`.
    pub const FOR_INTERNAL: u8 = 8;
    /// Carries this cluster's tag.
    pub const OURS: u8 = 16;
    /// Carries another cluster's tag and not ours.
    pub const FOREIGN: u8 = 32;

    fn has(self, bit: u8) -> bool {
        self.0 & bit != 0
    }
}

/// One subnet of each availability zone, in the zones' order: of several the one with the role's tag, then the one with our cluster's tag,
/// then the one with the smaller id. `fallback` (`SubnetID`, empty for none) counts only where every subnet is another cluster's, and has to be
/// in a whole zone and public as any other.
///
/// # Errors
/// `invalid` when there is none, with what was looked up.
pub fn discover(subnets: &[Subnet], internal: bool, fallback: &str) -> Result<Vec<String>, Failure> {
    let role = if internal {
        Traits::FOR_INTERNAL
    } else {
        Traits::FOR_PUBLIC
    };
    let all_foreign = subnets.iter().all(|subnet| subnet.traits.has(Traits::FOREIGN));
    let fits = |subnet: &&Subnet| {
        let traits = subnet.traits;
        let allowed = if all_foreign {
            subnet.id == fallback
        } else {
            !traits.has(Traits::FOREIGN)
        };
        allowed && traits.has(Traits::WHOLE_ZONE) && (internal || traits.has(Traits::PUBLIC))
    };
    let mut candidates: Vec<&Subnet> = subnets.iter().filter(fits).collect();
    let rank = |subnet: &Subnet| (!subnet.traits.has(role), !subnet.traits.has(Traits::OURS));
    candidates.sort_by(|a, b| (&a.zone, rank(a), &a.id).cmp(&(&b.zone, rank(b), &b.id)));
    candidates.dedup_by(|next, first| next.zone == first.zone);
    if candidates.is_empty() {
        return Err(Failure::invalid(if internal {
            "no suitable subnets for an internal load balancer: the VPC has none in an availability zone that is without another cluster's tag"
        } else {
            "no suitable subnets for a load balancer on the Internet: one has to be in an availability zone, have a route to an internet \
             gateway and carry no other cluster's tag; for an internal one set service.beta.kubernetes.io/aws-load-balancer-internal"
        }));
    }
    Ok(candidates.into_iter().map(|subnet| subnet.id.clone()).collect())
}

/// The subnets that an annotation names by id or by the tag `Name`.
///
/// # Errors
/// `invalid` naming each that is not there, or that is the name of several.
pub fn named(subnets: &[Subnet], wanted: &[String]) -> Result<Vec<String>, Failure> {
    let mut found: Vec<String> = Vec::new();
    let mut wrong: Vec<String> = Vec::new();
    for text in wanted {
        let mut matching = subnets
            .iter()
            .filter(|subnet| subnet.id == *text || subnet.name == *text);
        match (matching.next(), matching.next()) {
            (Some(one), None) => {
                if !found.contains(&one.id) {
                    found.push(one.id.clone());
                }
            }
            (None, _) => wrong.push(format!("the VPC has no subnet {text}")),
            (Some(_), Some(_)) => wrong.push(format!("several subnets are called {text}: write the id")),
        }
    }
    match wrong.is_empty() {
        true => Ok(found),
        false => Err(Failure::invalid(format!(
            "annotation service.beta.kubernetes.io/aws-load-balancer-subnets: {}",
            wrong.join("; ")
        ))),
    }
}

#[cfg(test)]
mod tests;
