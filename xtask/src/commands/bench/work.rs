//! The pieces of work that `cargo xtask bench` knows, by the names that `--only` takes. `tests/bench` has a file for each.

use clap::ValueEnum;

/// A piece of work, in the order of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum BenchWork {
    /// Nodes that wait when the controller starts: 1,000 (and 5,000), and 200 at each side's defaults.
    NodeWave,
    /// 500 Services that want a load balancer, and their deletion.
    Services,
    /// A Node more and a Node less behind 200 Services.
    FanOut,
    /// Nothing happens in a cluster of 1,000 (5,000) Nodes; then 1,000 of them are silent.
    Steady,
    /// From the start to the first Node, with and without compiled code.
    ColdStart,
    /// Loading a component and calling it; Cloudwit alone.
    Component,
    /// 5,000 Nodes passed to a guest; Cloudwit alone.
    Passing,
    /// A provider is swapped while Nodes join; Cloudwit alone.
    Swap,
    /// Components and binaries.
    Sizes,
    /// Clusters of 1,000 and 5,000 (15,000 and 50,000) Nodes; Cloudwit alone.
    Growth,
}

impl BenchWork {
    /// As `--only` takes it; ids of sections begin with it.
    pub fn name(self) -> &'static str {
        match self {
            Self::NodeWave => "node-wave",
            Self::Services => "services",
            Self::FanOut => "fan-out",
            Self::Steady => "steady",
            Self::ColdStart => "cold-start",
            Self::Component => "component",
            Self::Passing => "passing",
            Self::Swap => "swap",
            Self::Sizes => "sizes",
            Self::Growth => "growth",
        }
    }

    /// A name of a piece of work, or of a section of one, as `--only` takes it.
    ///
    /// # Errors
    ///
    /// When there is no such piece of work; names them all.
    pub fn named(name: &str) -> Result<String, String> {
        if Self::of_section(name).is_some() {
            return Ok(name.to_owned());
        }
        let all: Vec<&str> = Self::value_variants().iter().map(|work| work.name()).collect();
        Err(format!("there is no such piece of work; there are {}", all.join(", ")))
    }

    /// To which a section belongs.
    pub fn of_section(id: &str) -> Option<Self> {
        Self::value_variants().iter().copied().find(|work| {
            id.strip_prefix(work.name())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_the_command_line_takes_and_sections_too() {
        for work in BenchWork::value_variants() {
            assert_eq!(BenchWork::named(work.name()).as_deref(), Ok(work.name()));
            assert_eq!(BenchWork::of_section(work.name()), Some(*work));
        }
        assert!(BenchWork::named("growth-50000").is_ok());
        let error = BenchWork::named("grow").unwrap_err();
        assert!(
            error
                .ends_with("node-wave, services, fan-out, steady, cold-start, component, passing, swap, sizes, growth"),
            "{error}"
        );
    }

    #[test]
    fn a_section_belongs_to_the_work_it_is_named_after() {
        assert_eq!(BenchWork::of_section("node-wave-1000-0ms"), Some(BenchWork::NodeWave));
        assert_eq!(BenchWork::of_section("sizes"), Some(BenchWork::Sizes));
        assert_eq!(BenchWork::of_section("sizesome"), None);
    }
}
