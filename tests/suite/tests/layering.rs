//! The repository keeps to the arrows of `ARCHITECTURE.md`. The checks themselves are tested where they are, in `src`.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use cargo_metadata::{DependencyKind, MetadataCommand};
use cloudwit_suite::arrows::{Crate, violations};
use cloudwit_suite::folders::undrawn;
use cloudwit_suite::purity::impurities;
use cloudwit_suite::{files_below, root};

/// The crates as cargo sees them.
fn workspace() -> Vec<Crate> {
    let metadata = MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .no_deps()
        .exec()
        .unwrap();
    let crates = metadata.packages.iter().map(|package| Crate {
        name: package.name.to_string(),
        folder: package
            .manifest_path
            .parent()
            .unwrap()
            .strip_prefix(root())
            .unwrap()
            .to_string(),
        dependencies: package
            .dependencies
            .iter()
            // What tests alone need of others is not carried by anything.
            .filter(|one| one.kind != DependencyKind::Development || one.name.starts_with("cloudwit"))
            .map(|dependency| dependency.name.clone())
            .collect(),
    });
    crates.collect()
}

#[test]
fn no_crate_imports_what_it_must_not() {
    let found = violations(&workspace());
    assert!(
        found.is_empty(),
        "arrows that are not in ARCHITECTURE.md:\n{}",
        lines(&found)
    );
}

#[test]
fn an_arrow_added_to_the_real_workspace_is_found() {
    let mut crates = workspace();
    let host = crates.iter_mut().find(|one| one.name == "cloudwit-host").unwrap();
    host.dependencies.push("cloudwit-controllers".into());
    let found = violations(&crates);
    assert!(
        found
            .iter()
            .any(|one| one.from == "cloudwit-host" && one.to == "cloudwit-controllers"),
        "{found:?}"
    );
}

/// The files of the controllers without their tests: the module's path, and the text.
fn controllers() -> BTreeMap<String, String> {
    let folder = root().join("runtime/controllers/src");
    let files = files_below(&folder, ".rs").into_iter().filter_map(|file| {
        let path = file.strip_prefix(&folder).unwrap().with_extension("");
        let path = path.to_string_lossy().replace('/', "::");
        let is_test = path
            .split("::")
            .any(|part| part.ends_with("tests") || part == "testing");
        let module = path.strip_suffix("::mod").unwrap_or(&path).to_owned();
        (!is_test).then(|| (module, fs::read_to_string(&file).unwrap()))
    });
    files.collect()
}

#[test]
fn decisions_are_pure() {
    let files = controllers();
    let read = |module: &str| files.get(module).cloned();
    let mut found = BTreeSet::new();
    for controller in ["node", "lifecycle", "service", "route", "tagging"] {
        let plan = format!("{controller}::plan");
        assert!(files.contains_key(&plan), "{controller} decides without a plan file");
        let sentences = impurities(&plan, &read).into_iter();
        found.extend(sentences.map(|sentence| format!("{plan}: {sentence}")));
    }
    assert!(found.is_empty(), "plans decide and do nothing else:\n{}", lines(&found));
}

/// Folders of the host, and the parts of the crate that they must not import.
const HOST_ARROWS: [(&str, &[&str]); 7] = [
    (
        "net",
        &[
            "egress", "secrets", "contract", "call", "load", "swap", "host", "provider",
        ],
    ),
    (
        "grants",
        &[
            "egress", "secrets", "contract", "call", "load", "swap", "host", "provider",
        ],
    ),
    (
        "secrets",
        &["egress", "contract", "call", "load", "swap", "host", "provider"],
    ),
    ("egress", &["contract", "call", "load", "swap", "host", "provider"]),
    ("contract", &["net", "egress", "swap", "host", "provider"]),
    ("call", &["net", "swap", "host", "provider"]),
    ("load", &["egress", "secrets", "contract::v0_1", "swap", "provider"]),
];

/// What the code of a folder names that it must not, as `file: crate::path`.
fn forbidden_imports(folder: &Path, forbidden: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for file in files_below(folder, ".rs") {
        if file.to_string_lossy().ends_with("tests.rs") {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
            let names = |path: &&&str| {
                let begin = format!("crate::{path}");
                line.split_once(&begin)
                    .is_some_and(|(_, rest)| !rest.starts_with(|sign: char| sign.is_alphanumeric() || sign == '_'))
            };
            if let Some(path) = forbidden.iter().find(names) {
                found.push(format!("{}: crate::{path}", file.display()));
            }
        }
    }
    found
}

#[test]
fn folders_of_the_host_import_in_one_direction() {
    let host = root().join("runtime/host/src");
    let mut found = Vec::new();
    for (folder, forbidden) in HOST_ARROWS {
        assert!(host.join(folder).join("mod.rs").is_file(), "{folder} does not exist");
        found.extend(forbidden_imports(&host.join(folder), forbidden));
    }
    assert!(
        found.is_empty(),
        "arrows that are not in ARCHITECTURE.md:\n{}",
        lines(&found)
    );
    // An arrow that exists is found, or the check checks nothing.
    assert!(!forbidden_imports(&host.join("egress"), &["net"]).is_empty());
}

#[test]
fn folders_of_the_controllers_import_what_is_below_them() {
    let mut found = BTreeSet::new();
    for (module, text) in controllers().iter().filter(|(module, _)| *module != "lib") {
        let folder = module.split("::").next().unwrap_or_default();
        found.extend(
            undrawn(folder, text)
                .into_iter()
                .map(|arrow| format!("{module}: {arrow}")),
        );
    }
    assert!(
        found.is_empty(),
        "arrows that are not in ARCHITECTURE.md:\n{}",
        lines(&found)
    );
}

#[test]
fn folders_of_the_controllers_are_small() {
    let mut sizes = BTreeMap::<String, usize>::new();
    let files = controllers();
    for module in files.keys() {
        assert!(module.split("::").count() <= 3, "{module} is too deep");
        let inside = format!("{module}::");
        let is_folder = files.keys().any(|other| other.starts_with(&inside));
        let above = module.rsplit_once("::").map_or("src", |(folder, _)| folder);
        *sizes
            .entry(if is_folder { module } else { above }.to_owned())
            .or_default() += 1;
    }
    sizes.retain(|_, files| *files > 12);
    assert!(sizes.is_empty(), "folders with more than twelve files: {sizes:?}");
}

#[test]
fn code_that_the_compiler_cannot_check_is_in_one_file() {
    // Put together here, or this file would be found too.
    let keyword = concat!("un", "safe");
    let forms = ["{", "fn ", "impl ", "extern ", "trait "].map(|after| format!("{keyword} {after}"));
    let holds_it = |file: &PathBuf| {
        let text = fs::read_to_string(file).unwrap();
        forms.iter().any(|form| {
            text.lines()
                .any(|line| !line.trim_start().starts_with("//") && line.contains(form))
        })
    };
    let mut found = files_below(&root(), ".rs");
    found.retain(holds_it);
    assert_eq!(
        found.len(),
        1,
        "one file loads compiled code, and no other may be like it: {found:?}"
    );
    assert!(
        found[0].starts_with(root().join(Path::new("runtime/host/src"))),
        "{found:?}"
    );
}

fn lines<T: ToString>(found: impl IntoIterator<Item = T>) -> String {
    found
        .into_iter()
        .map(|one| format!("  {}", one.to_string()))
        .collect::<Vec<_>>()
        .join("\n")
}
