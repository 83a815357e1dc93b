//! Access lists: who may connect. An item that allows takes precedence over one that denies, so a list that allows some ends with a denial of all.

use cloudwit_guest_sdk::cidr::{ANY_IPV4, ANY_IPV6, parse, source_ranges};
use cloudwit_guest_sdk::prelude::*;
use serde_json::{Value, json};

use super::clb::AccessItem;

/// Most items of a list (CLB's developer guide, "Access lists").
const MOST: usize = 100;

/// Items that are deleted in one request (the same).
const BATCH: usize = 10;

/// An item as it shall be: a network as text with its prefix length, and whether it is allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    network: String,
    allows: bool,
}

impl Rule {
    fn kind(&self) -> &'static str {
        if self.allows { "ALLOW" } else { "DENY" }
    }

    /// As it is sent.
    pub fn body(&self) -> Value {
        json!({ "address": self.network, "type": self.kind() })
    }

    fn is(&self, item: &AccessItem) -> bool {
        self.network == normal(&item.address) && item.kind == self.kind()
    }
}

/// The list for a Service with addresses of these families: empty when all may connect.
///
/// # Errors
/// `invalid` when it is too long, or a range cannot be read.
pub fn wanted(service: &Service, families: &[IpFamily]) -> Result<Vec<Rule>, Failure> {
    if service.source_ranges.is_empty() {
        return Ok(Vec::new());
    }
    let ranges = source_ranges(service)?;
    let mut rules: Vec<Rule> = Vec::new();
    for family in families {
        let any = match family {
            IpFamily::Ipv4 => ANY_IPV4,
            IpFamily::Ipv6 => ANY_IPV6,
        };
        let own: Vec<String> = ranges
            .iter()
            .filter(|range| range.addr().is_ipv4() == any.addr().is_ipv4())
            .map(ToString::to_string)
            .collect();
        if own.contains(&any.to_string()) {
            continue;
        }
        for network in own {
            let rule = Rule { network, allows: true };
            if !rules.contains(&rule) {
                rules.push(rule);
            }
        }
        rules.push(Rule {
            network: any.to_string(),
            allows: false,
        });
    }
    if rules.len() > MOST {
        return Err(Failure::invalid(format!(
            "{} source ranges: an access list of Cloud Load Balancers has at most {MOST} items, of which up to two deny everybody else",
            ranges.len()
        )));
    }
    Ok(rules)
}

/// The next request that brings a list closer to the desired one.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// These are added.
    Add(Vec<Value>),
    /// Those of these ids are deleted.
    Delete(Vec<u64>),
    /// Everything is deleted.
    Clear,
}

/// What is next; none where the list is right. Meanwhile no client is admitted that may not connect: a denial is deleted only after all others, or with the list.
pub fn next(wanted: &[Rule], found: &[AccessItem]) -> Option<Next> {
    if wanted.is_empty() {
        return (!found.is_empty()).then_some(Next::Clear);
    }
    let surplus = || found.iter().filter(|item| !wanted.iter().any(|rule| rule.is(item)));
    let ids = |items: &mut dyn Iterator<Item = &AccessItem>| items.map(|item| item.id).take(BATCH).collect::<Vec<_>>();
    // An address is in a list once, so an entry with the other type is deleted first.
    let taken = |item: &&AccessItem| wanted.iter().any(|rule| rule.network == normal(&item.address));
    let first = ids(&mut surplus().filter(taken));
    if !first.is_empty() {
        return Some(Next::Delete(first));
    }
    let missing: Vec<Value> = wanted
        .iter()
        .filter(|rule| !found.iter().any(|item| rule.is(item)))
        .map(Rule::body)
        .collect();
    // A list that is full has no room for what is missing.
    if !missing.is_empty() && found.len() + missing.len() <= MOST {
        return Some(Next::Add(missing));
    }
    let (allows, denies): (Vec<_>, Vec<_>) = surplus().partition(|item| item.kind == "ALLOW");
    let delete = ids(&mut allows.into_iter().chain(denies));
    (!delete.is_empty()).then_some(Next::Delete(delete))
}

/// The address of an item as [`Rule`] writes it; unchanged where it is no network.
fn normal(address: &str) -> String {
    let whole = match address.contains('/') {
        true => address.to_owned(),
        false if address.contains(':') => format!("{address}/128"),
        false => format!("{address}/32"),
    };
    parse(&whole).map_or(whole, |network| network.to_string())
}

#[cfg(test)]
mod tests;
