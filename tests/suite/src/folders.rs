//! Which folder of the controllers may import which: the layers of `ARCHITECTURE.md`, as data.

use std::collections::BTreeSet;

use crate::purity::code_of;

/// From the top to the bottom. A folder imports itself and what is below it; those of one layer do not import each other.
const LAYERS: [&[&str]; 11] = [
    &["cluster", "explain_object"],
    &["node", "lifecycle", "service", "route", "tagging"],
    &["context"],
    &["report"],
    &["cloud"],
    &["queue"],
    &["scope"],
    &["kube"],
    &["leadership"],
    &["metrics"],
    &["assign", "options", "ambient", "sync", "work"],
];

/// The arrows in a file of this folder (or file right below `src`) that are not drawn: one sentence each.
pub fn undrawn(folder: &str, text: &str) -> BTreeSet<String> {
    let Some(own) = layer(folder) else {
        return BTreeSet::from([format!(
            "{folder} has no layer: add it to LAYERS and to ARCHITECTURE.md"
        )]);
    };
    let code = code_of(text);
    let names = code.split("crate::").skip(1).filter_map(|rest| {
        let end = rest.find(|sign: char| !sign.is_alphanumeric() && sign != '_')?;
        Some(&rest[..end])
    });
    let drawn = |name: &&str| *name == folder || layer(name).is_some_and(|other| other > own);
    names
        .filter(|name| !drawn(name))
        .map(|name| format!("{folder} -> {name}"))
        .collect()
}

fn layer(folder: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_go_down_and_never_across_or_up() {
        let all = |folder, text| undrawn(folder, text).into_iter().collect::<Vec<_>>();
        assert!(all("node", "use crate::kube::cache::Key;\nuse crate::node::plan::plan;").is_empty());
        assert_eq!(
            all("node", "use crate::lifecycle::brake::Guard;"),
            ["node -> lifecycle"]
        );
        assert_eq!(
            all("kube", "fn f() { crate::report::explain::span() }"),
            ["kube -> report"]
        );
        assert!(all("kube", "#[cfg(test)]\nmod tests { use crate::cluster::Cluster; }").is_empty());
        assert_eq!(all("elsewhere", "").len(), 1);
    }
}
