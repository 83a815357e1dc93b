//! Memory a container needs for its settings; the formula is in docs/guide/install.md.
//!
//! ```text
//!   192 MiB                                               the process and its compiler
//!   + guestMemoryBytes                                    or twice limits.memoryBytes of each provider
//!   + bufferedBytes + answerBytes + state.maxBytes        of each provider
//! ```
//!
//! The chart has the same formula in templates/_helpers.tpl; a test holds the two together.

use cloudwit_host::{GUEST_CALLS_BY_DEFAULT, Grants, Limits};

use crate::providers::host;
use crate::providers::swap::Source;

/// For the process with 5,000 Nodes (docs/explanation/performance.md#memory) and for compiling a component, in bytes.
const PROCESS: u64 = 192 << 20;

const MIB: u64 = 1 << 20;

/// What one provider is allowed.
pub type Allowed<'a> = (&'a Limits, &'a Grants);

/// The memory limit for these providers, in bytes, in whole MiB. `guests`: `guestMemoryBytes`.
pub fn bytes<'a>(providers: impl Iterator<Item = Allowed<'a>>, guests: Option<u64>) -> u64 {
    let (mut calls, mut rest) = (0_u64, 0_u64);
    for (limits, grants) in providers {
        calls = calls.saturating_add(limits.memory_bytes.saturating_mul(GUEST_CALLS_BY_DEFAULT));
        for part in [limits.buffered_bytes, limits.answer_bytes, grants.state.max_bytes] {
            rest = rest.saturating_add(part);
        }
    }
    let all = PROCESS.saturating_add(guests.unwrap_or(calls)).saturating_add(rest);
    all.div_ceil(MIB).saturating_mul(MIB)
}

/// The same as Kubernetes writes it.
pub fn quantity(sources: &[Source], guests: Option<u64>) -> String {
    format!("{}Mi", bytes(sources.iter().map(allowed), guests) / MIB)
}

fn allowed(source: &Source) -> Allowed<'_> {
    (&source.settings.limits, &source.settings.grants)
}

/// Warns when the container's memory limit is below what the settings allow: then the kernel may end the process before a limit of its own holds.
pub fn warn_if_container_is_small(sources: &[Source], guests: Option<u64>) {
    let needed = bytes(sources.iter().map(allowed), guests);
    if let Some(limit) = host::container_memory().filter(|limit| *limit < needed) {
        tracing::warn!(
            memory_limit = limit,
            settings_allow = needed,
            "the container's memory limit is below what the settings allow; raise it, or lower guestMemoryBytes and limits"
        );
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::Value;

    use super::*;

    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Configuration {
        guest_memory_bytes: Option<u64>,
        providers: Vec<Entry>,
    }

    #[derive(Deserialize)]
    struct Entry {
        #[serde(default)]
        limits: Limits,
        #[serde(default)]
        grants: Grants,
    }

    #[test]
    fn a_provider_with_defaults_needs_369_mib() {
        let (limits, grants) = (Limits::default(), Grants::default());
        let one = || std::iter::once((&limits, &grants));
        assert_eq!(bytes(one(), None), 369 << 20);
        assert_eq!(bytes(one().chain(one()), None), (369 + 177) << 20);
        assert_eq!(bytes(one(), Some(100 << 20)), 341 << 20);
        assert_eq!(bytes(one(), Some((100 << 20) + 1)), 342 << 20);
    }

    #[test]
    fn the_chart_has_the_same_formula() {
        let values: Value =
            serde_saphyr::from_str(include_str!("../../../../deploy/chart/.snapshots/full.values.yaml")).unwrap();
        let configuration: Configuration = serde_json::from_value(values["configuration"].clone()).unwrap();
        let providers = configuration
            .providers
            .iter()
            .map(|entry| (&entry.limits, &entry.grants));
        let needed = bytes(providers, configuration.guest_memory_bytes);
        let rendered: Vec<Value> =
            serde_saphyr::from_multiple(include_str!("../../../../deploy/chart/.snapshots/full.yaml")).unwrap();
        let deployment = rendered.iter().find(|object| object["kind"] == "Deployment").unwrap();
        let limit = &deployment["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["memory"];
        assert_eq!(limit, &format!("{}Mi", needed / MIB));
    }
}
