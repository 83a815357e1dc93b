//! Flags of the tagging controller.
//!
//! Upstream's of cloud-provider-aws (`pkg/controllers/options/tagging_controller.go`).

use cloudwit_controllers::{Controller, Rate, TaggingOptions};
use cloudwit_model::Tags;

use crate::flags::values::go::{entries, whole};

/// What can be tagged.
const RESOURCE: &str = "instance";

/// Tags that one machine can have: EC2's limit, and the most that a provider is given.
const MOST_TAGS: usize = 50;

/// Bytes of a tag's key and of its value; the limits of the contract.
const KEY_BYTES: usize = 512;
const VALUE_BYTES: usize = 1024;

/// Flags about tags on machines.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Tags on machines")]
pub struct TaggingArgs {
    /// Tags, KEY=VALUE joined by commas, for the machines of all Nodes; they are taken off when a Node is gone. Needs --controllers=*,tagging
    /// and a provider that has tags.
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',')]
    pub tags: Vec<String>,

    /// What is tagged. There is `instance`: the machines.
    #[arg(long, value_name = "NAME", default_value = RESOURCE)]
    pub resources: Vec<String>,

    /// How many machines are tagged in a second on average. 0, here or in --tagging-controller-burst-limit: as fast as they come.
    #[arg(long, value_name = "NUMBER", default_value_t = 0.0, value_parser = rate)]
    pub tagging_controller_rate_limit: f64,

    /// How many machines may be tagged at once, with --tagging-controller-rate-limit.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole(0..=u32::MAX))]
    pub tagging_controller_burst_limit: u32,

    /// How many Nodes are written at a time; one call to the cloud serves all that wait, so this does not bound calls.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole(1..=u16::MAX))]
    pub tagging_controller_concurrent_node_syncs: u16,
}

impl TaggingArgs {
    /// Every mistake, if the controller runs; upstream reads them only then, too.
    pub fn mistakes(&self, controllers: &[Controller]) -> Vec<String> {
        if !controllers.contains(&Controller::Tagging) {
            return Vec::new();
        }
        let mut mistakes = Vec::new();
        match self.read_tags() {
            Ok(tags) if tags.is_empty() => {
                mistakes.push("--tags must not be empty and must be a form of key=value".to_owned())
            }
            Ok(_) => {}
            Err(wrong) => mistakes.extend(wrong),
        }
        let resources = entries(&self.resources);
        if resources.is_empty() {
            mistakes.push("--resources must not be empty".to_owned());
        }
        let unknown = resources.iter().filter(|name| **name != RESOURCE);
        mistakes.extend(unknown.map(|name| {
            format!("--resources: {name} is not a supported resource. Current supported resources [{RESOURCE}]")
        }));
        mistakes
    }

    fn read_tags(&self) -> Result<Tags, Vec<String>> {
        let (mut tags, mut mistakes) = (Tags::new(), Vec::new());
        for entry in self.tags.iter().filter(|entry| !entry.is_empty()) {
            match entry.split_once('=') {
                None => mistakes.push(format!("--tags: {entry} must be formatted as key=value")),
                Some(("", _)) => mistakes.push(format!("--tags: {entry} has no key")),
                Some((key, value)) if key.len() > KEY_BYTES || value.len() > VALUE_BYTES => mistakes.push(format!(
                    "--tags: {key:.40} is too long: a key has at most {KEY_BYTES} bytes, a value {VALUE_BYTES}"
                )),
                // The last of several counts, as in Go's maps.
                Some((key, value)) => drop(tags.insert(key.to_owned(), value.to_owned())),
            }
        }
        if tags.len() > MOST_TAGS {
            mistakes.push(format!("--tags: {} tags, at most {MOST_TAGS} are allowed", tags.len()));
        }
        match mistakes.is_empty() {
            true => Ok(tags),
            false => Err(mistakes),
        }
    }

    /// What the controller works with.
    pub fn options(&self) -> TaggingOptions {
        let (per_second, burst) = (self.tagging_controller_rate_limit, self.tagging_controller_burst_limit);
        TaggingOptions {
            tags: self.read_tags().unwrap_or_default(),
            // Upstream limits only where both are set.
            rate: (per_second > 0.0 && burst > 0).then_some(Rate { per_second, burst }),
            concurrent_syncs: self.tagging_controller_concurrent_node_syncs.into(),
        }
    }
}

fn rate(text: &str) -> Result<f64, String> {
    let rate: f64 = text
        .parse()
        .map_err(|_| "is not a valid number; write for example 20 or 0.5".to_owned())?;
    match rate.is_finite() && rate >= 0.0 {
        true => Ok(rate),
        false => Err("should not be less than zero".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::flags::args::Args;

    fn args(flags: &[&str]) -> TaggingArgs {
        Args::parse_from([&["cloudwit"], flags].concat()).tagging
    }

    fn mistakes(flags: &[&str]) -> Vec<String> {
        args(flags).mistakes(&[Controller::Tagging])
    }

    #[test]
    fn tags_are_read_as_upstream_reads_them() {
        let args = args(&["--tags=a=1,b=,c=x=y", "--tags=a=2", "--resources=instance"]);
        let tags: Vec<String> = args
            .options()
            .tags
            .iter()
            .map(|(key, value)| format!("{key}:{value}"))
            .collect();
        assert_eq!(tags, ["a:2", "b:", "c:x=y"]);
    }

    /// Upstream's `Validate`.
    #[test]
    fn what_upstream_refuses_is_refused_where_the_controller_runs() {
        assert_eq!(
            mistakes(&[]),
            ["--tags must not be empty and must be a form of key=value"]
        );
        assert_eq!(args(&[]).mistakes(&[Controller::CloudNode]), [""; 0]);
        assert_eq!(
            mistakes(&["--tags=a=1", "--resources=volume"]),
            ["--resources: volume is not a supported resource. Current supported resources [instance]"]
        );
        assert_eq!(mistakes(&["--tags=a"]), ["--tags: a must be formatted as key=value"]);
        assert_eq!(mistakes(&["--tags==a"]), ["--tags: =a has no key"]);
        let many: Vec<String> = (0..=MOST_TAGS).map(|number| format!("k{number}=v")).collect();
        assert_eq!(mistakes(&["--tags", &many.join(",")]).len(), 1);
        for flag in ["rate-limit=-1", "burst-limit=-1", "concurrent-node-syncs=0"] {
            let flag = format!("--tagging-controller-{flag}");
            assert!(Args::try_parse_from(["cloudwit", &flag]).is_err(), "{flag}");
        }
    }

    #[test]
    fn rate_is_limited_only_where_both_limits_are_set() {
        let rate = |flags: &[&str]| args(flags).options().rate;
        let (limit, burst) = (
            "--tagging-controller-rate-limit=2.5",
            "--tagging-controller-burst-limit=10",
        );
        assert_eq!(rate(&[limit]), None);
        assert_eq!(rate(&[burst]), None);
        let both = Rate {
            per_second: 2.5,
            burst: 10,
        };
        assert_eq!(rate(&[limit, burst]), Some(both));
    }
}
