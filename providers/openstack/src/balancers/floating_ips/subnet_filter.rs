//! Which subnets of the external network a floating IP may come from: by the name, by tags, or both.

use cloudwit_guest_sdk::prelude::*;

use crate::api::wire::{Fields, Read};
use crate::balancers::annotations::FloatingSource;
use crate::balancers::floating_ips::pattern::Pattern;
use serde_json::Value;

/// A subnet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Subnet {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
    /// Its network.
    pub network_id: String,
    /// Its range.
    pub cidr: String,
    /// Tags.
    pub tags: Vec<String>,
}

impl Subnet {
    /// Reads one of Neutron's.
    pub fn read(json: &Value) -> Read<Self> {
        Ok(Self {
            id: json.need("id")?,
            name: json.text_or_empty("name"),
            network_id: json.need("network_id")?,
            cidr: json.need("cidr")?,
            tags: json.texts("tags"),
        })
    }
}

/// A pattern for names, and whether it is meant the other way round.
#[derive(Debug, Clone, PartialEq)]
pub struct NameFilter {
    pattern: Pattern,
    negated: bool,
}

impl NameFilter {
    /// A name, a glob, or `~` and a regular expression; behind `!` all others.
    ///
    /// # Errors
    /// What is wrong with the regular expression.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (rest, negated) = text.strip_prefix('!').map_or((text, false), |rest| (rest, true));
        let pattern = match rest.strip_prefix('~') {
            Some(regex) => Pattern::regex(regex)
                .map_err(|wrong| format!("the regular expression \"{regex}\" is malformed: {wrong}"))?,
            None => Pattern::glob(rest)?,
        };
        Ok(Self { pattern, negated })
    }

    fn takes(&self, name: &str) -> bool {
        self.pattern.matches(name) != self.negated
    }
}

/// The subnets that fit, in the cloud's order. Without a pattern and without tags all do.
///
/// # Errors
/// `invalid` when the pattern is none.
pub fn fitting(source: &FloatingSource<'_>, subnets: Vec<Subnet>) -> Result<Vec<Subnet>, Failure> {
    let name = source
        .subnet
        .map(NameFilter::parse)
        .transpose()
        .map_err(Failure::invalid)?;
    let fits = |subnet: &Subnet| {
        name.as_ref().is_none_or(|name| name.takes(&subnet.name))
            && source.subnet_tags.is_none_or(|tags| has_tags(tags, &subnet.tags))
    };
    Ok(subnets.into_iter().filter(fits).collect())
}

/// `a,b`: one of them; `&a,b`: all of them; behind `!` the other way round.
fn has_tags(wanted: &str, tags: &[String]) -> bool {
    let (rest, negated) = wanted.strip_prefix('!').map_or((wanted, false), |rest| (rest, true));
    let (rest, all) = rest.strip_prefix('&').map_or((rest, false), |rest| (rest, true));
    let mut wanted = rest.split(',').map(str::trim_ascii).filter(|tag| !tag.is_empty());
    let mut has = |tag: &str| tags.iter().any(|other| other == tag);
    let found = if all { wanted.all(&mut has) } else { wanted.any(has) };
    found != negated
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(subnet: Option<&str>, subnet_tags: Option<&str>) -> String {
        let source = FloatingSource {
            subnet,
            subnet_tags,
            ..FloatingSource::default()
        };
        let subnets = [("public-1", &["a", "b"][..]), ("public-2", &["a"]), ("lab", &["c"])];
        let subnets = subnets.map(|(name, tags)| Subnet {
            name: name.into(),
            tags: tags.iter().map(|tag| (*tag).into()).collect(),
            ..Subnet::default()
        });
        let fitting = fitting(&source, subnets.into()).unwrap();
        fitting
            .iter()
            .map(|subnet| subnet.name.as_str())
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn subnets_are_chosen_by_name_glob_and_expression() {
        assert_eq!(names(Some("lab"), None), "lab");
        assert_eq!(names(Some("public-*"), None), "public-1 public-2");
        assert_eq!(names(Some("!public-?"), None), "lab");
        assert_eq!(names(Some("~^(lab|.*2)$"), None), "public-2 lab");
        assert_eq!(names(Some("!~lic"), None), "lab");
        assert_eq!(names(None, None), "public-1 public-2 lab");
        assert_eq!(
            NameFilter::parse("~(").unwrap_err(),
            "the regular expression \"(\" is malformed: found open group without closing ')'"
        );
    }

    #[test]
    fn subnets_are_chosen_by_tags() {
        assert_eq!(names(None, Some("b, c")), "public-1 lab");
        assert_eq!(names(None, Some("&a,b")), "public-1");
        assert_eq!(names(None, Some("!a")), "lab");
        assert_eq!(names(None, Some("!&a,b")), "public-2 lab");
        assert_eq!(names(Some("*2"), Some("a")), "public-2");
    }
}
