//! Which crate may depend on which: the table of `ARCHITECTURE.md`, as data.
//!
//! All kinds of dependency count, those of tests too: a crate that needs a neighbour to be tested is not on its own.

use std::fmt;

/// One crate of the workspace and what it depends on.
#[derive(Debug, Clone)]
pub struct Crate {
    /// Package name.
    pub name: String,
    /// Folder, from the root of the repository.
    pub folder: String,
    /// Package names of its dependencies of all kinds.
    pub dependencies: Vec<String>,
}

/// An arrow that is not in the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The crate that it starts from.
    pub from: String,
    /// The crate that it leads to; empty when the crate itself has no rule.
    pub to: String,
    /// Which rule it breaks.
    pub rule: &'static str,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {}: {}", self.from, self.to, self.rule)
    }
}

/// What a crate may use from outside the workspace.
enum Outside {
    /// Nothing else.
    Only(&'static [&'static str]),
    /// Anything else. A name with a star stands for all names that begin so.
    AllBut(&'static [&'static str]),
}

/// The crates under a folder, and what they may import.
struct Rule {
    folder: &'static str,
    ours: &'static [&'static str],
    outside: Outside,
    why: &'static str,
}

/// The first rule whose folder fits counts.
const RULES: [Rule; 9] = [
    Rule {
        folder: "runtime/model",
        ours: &[],
        outside: Outside::Only(&["data-encoding", "serde", "serde_json", "thiserror", "zeroize"]),
        why: "the model is pure: encodings of text, thiserror, memory that is wiped, and nothing of ours",
    },
    Rule {
        folder: "runtime/controllers",
        ours: &["cloudwit-model"],
        outside: Outside::AllBut(&[
            "wasmtime*",
            "wasm*",
            "wit-*",
            "wasip2",
            "reqwest",
            "hyper*",
            "axum",
            "clap",
        ]),
        why: "the controllers know Kubernetes and the model, no wasm and no cloud",
    },
    Rule {
        folder: "runtime/host",
        ours: &["cloudwit-model"],
        outside: Outside::AllBut(&["kube*", "k8s-openapi", "clap"]),
        why: "the host knows wasm and the model, no Kubernetes",
    },
    Rule {
        folder: "runtime/csi-node",
        ours: &["cloudwit-model", "cloudwit-csi"],
        outside: Outside::AllBut(&["kube*", "k8s-openapi", "wasmtime*", "wit-*", "reqwest", "clap"]),
        why: "the plugin on the machine knows the storage interface and the model, no Kubernetes, no wasm and no cloud",
    },
    Rule {
        folder: "runtime/csi",
        ours: &["cloudwit-model"],
        outside: Outside::AllBut(&["kube*", "k8s-openapi", "wasmtime*", "wit-*", "reqwest", "clap"]),
        why: "the storage interface knows the model, no Kubernetes and no wasm",
    },
    Rule {
        folder: "runtime/manager",
        ours: &[
            "cloudwit-model",
            "cloudwit-controllers",
            "cloudwit-csi",
            "cloudwit-csi-node",
            "cloudwit-host",
        ],
        outside: Outside::AllBut(&["wasmtime*", "wit-*", "wasip2"]),
        why: "the manager wires model, controllers, csi, csi-node and host together",
    },
    Rule {
        folder: "guest-sdk",
        ours: &[],
        // All of these are built for components too; ring stands in for the host's keys in tests that run natively.
        outside: Outside::Only(&[
            "data-encoding",
            "httpdate",
            "ipnet",
            "jiff",
            "percent-encoding",
            "quick-xml",
            "ring",
            "serde",
            "serde-saphyr",
            "serde_json",
            "serde_path_to_error",
            "wasip2",
            "wit-bindgen",
        ]),
        why: "what every provider carries is small and knows nothing of the runtime",
    },
    Rule {
        folder: "providers/",
        ours: &["cloudwit-guest-sdk"],
        outside: Outside::AllBut(&["kube*", "k8s-openapi", "wasmtime*", "tokio*", "reqwest", "hyper*"]),
        why: "a provider knows the guest SDK and nothing else of ours",
    },
    Rule {
        folder: "xtask",
        ours: &[],
        outside: Outside::AllBut(&["kube*", "k8s-openapi", "wasmtime*", "tokio*", "reqwest"]),
        why: "cargo xtask builds in seconds",
    },
];

/// All arrows that the table does not have.
pub fn violations(crates: &[Crate]) -> Vec<Violation> {
    crates.iter().flat_map(|one| violations_of(one, crates)).collect()
}

fn violations_of(one: &Crate, crates: &[Crate]) -> Vec<Violation> {
    let violation = |to: &str, rule| Violation {
        from: one.name.clone(),
        to: to.to_owned(),
        rule,
    };
    if is_test(one) {
        return Vec::new();
    }
    let Some(rule) = RULES.iter().find(|rule| one.folder.starts_with(rule.folder)) else {
        return vec![violation(
            "",
            "a crate without a rule: add it to the table of ARCHITECTURE.md and to RULES",
        )];
    };
    let wrong = |dependency: &&String| match crates.iter().find(|other| other.name == **dependency) {
        // Its own tests name it once more, with all its features.
        Some(other) => other.name != one.name && !rule.ours.contains(&dependency.as_str()),
        None => match rule.outside {
            Outside::Only(names) => !names.contains(&dependency.as_str()),
            Outside::AllBut(names) => names.iter().any(|name| fits(name, dependency)),
        },
    };
    one.dependencies
        .iter()
        .filter(wrong)
        .map(|dependency| violation(dependency, rule.why))
        .collect()
}

/// Crates under `tests/` may import anything. Since no rule names them, nobody may import them.
fn is_test(one: &Crate) -> bool {
    one.folder.starts_with("tests/")
}

fn fits(pattern: &str, name: &str) -> bool {
    pattern
        .strip_suffix('*')
        .map_or(pattern == name, |begin| name.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made_up(folder: &str, name: &str, dependencies: &[&str]) -> Crate {
        let dependencies = dependencies.iter().map(|name| (*name).to_owned()).collect();
        Crate {
            name: name.into(),
            folder: folder.into(),
            dependencies,
        }
    }

    /// A workspace in which all is well.
    fn workspace() -> Vec<Crate> {
        vec![
            made_up("runtime/model", "cloudwit-model", &["serde", "thiserror"]),
            made_up(
                "runtime/controllers",
                "cloudwit-controllers",
                &["cloudwit-model", "kube", "tokio"],
            ),
            made_up(
                "runtime/host",
                "cloudwit-host",
                &["cloudwit-model", "wasmtime", "reqwest"],
            ),
            made_up("runtime/csi", "cloudwit-csi", &["cloudwit-model", "tonic", "tokio"]),
            made_up(
                "runtime/csi-node",
                "cloudwit-csi-node",
                &["cloudwit-model", "cloudwit-csi", "rustix"],
            ),
            made_up(
                "runtime/manager",
                "cloudwit",
                &[
                    "cloudwit-model",
                    "cloudwit-controllers",
                    "cloudwit-csi",
                    "cloudwit-csi-node",
                    "cloudwit-host",
                ],
            ),
            made_up(
                "guest-sdk",
                "cloudwit-guest-sdk",
                &["serde", "wit-bindgen", "cloudwit-guest-sdk"],
            ),
            made_up(
                "providers/sim",
                "cloudwit-provider-sim",
                &["cloudwit-guest-sdk", "serde"],
            ),
            made_up("tests/support", "cloudwit-test-support", &["kube", "xtask"]),
            made_up("xtask", "xtask", &["clap"]),
        ]
    }

    #[test]
    fn the_drawn_arrows_are_fine() {
        assert_eq!(violations(&workspace()), []);
    }

    #[test]
    fn every_arrow_that_is_not_drawn_is_found() {
        for (from, to) in [
            ("cloudwit-model", "tokio"),
            ("cloudwit-model", "cloudwit-host"),
            ("cloudwit-controllers", "cloudwit-host"),
            ("cloudwit-controllers", "wasmtime"),
            ("cloudwit-controllers", "wasmtime-wasi"),
            ("cloudwit-host", "cloudwit-controllers"),
            ("cloudwit-csi", "cloudwit-controllers"),
            ("cloudwit-csi", "kube"),
            ("cloudwit-csi", "cloudwit-csi-node"),
            ("cloudwit-csi-node", "kube"),
            ("cloudwit-csi-node", "cloudwit-controllers"),
            ("cloudwit-host", "kube"),
            ("cloudwit-host", "kube-client"),
            ("cloudwit-host", "k8s-openapi"),
            ("cloudwit-host", "cloudwit-test-support"),
            ("cloudwit", "cloudwit-guest-sdk"),
            ("cloudwit", "cloudwit-provider-sim"),
            ("cloudwit-guest-sdk", "cloudwit-model"),
            ("cloudwit-guest-sdk", "reqwest"),
            ("cloudwit-provider-sim", "cloudwit-model"),
            ("cloudwit-provider-sim", "tokio"),
            ("xtask", "cloudwit-test-support"),
            ("xtask", "kube"),
        ] {
            let mut crates = workspace();
            let one = crates.iter_mut().find(|one| one.name == from).unwrap();
            one.dependencies.push(to.to_owned());
            let found: Vec<_> = violations(&crates)
                .into_iter()
                .map(|found| (found.from, found.to))
                .collect();
            assert_eq!(found, [(from.to_owned(), to.to_owned())]);
        }
    }

    #[test]
    fn a_crate_without_a_rule_is_found() {
        let mut crates = workspace();
        crates.push(made_up("runtime/extra", "cloudwit-extra", &[]));
        assert_eq!(violations(&crates).len(), 1);
    }
}
