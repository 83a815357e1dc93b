//! What the deciding files of the controllers (`*/plan.rs`) may import: the model, Kubernetes' types, and files that are as
//! pure as they are. No clock, no cluster, no task: a decision is a function of what it is given.

use std::collections::BTreeSet;

/// Crates that hold data and no effects.
const PURE_CRATES: [&str; 8] = [
    "std",
    "cloudwit_model",
    "k8s_openapi",
    "ipnet",
    "jiff",
    "serde",
    "serde_json",
    "thiserror",
];

/// Crates with effects that could also be named without an import.
const IMPURE_CRATES: [&str; 7] = [
    "futures",
    "kube",
    "prometheus_client",
    "rand",
    "tokio",
    "tokio_util",
    "tracing",
];

/// Parts of `std` that act on the world.
const EFFECTS_OF_STD: [&str; 6] = ["env", "fs", "os", "process", "thread", "net::Tcp"];

/// Calls that read the clock.
const CLOCKS: [&str; 4] = ["Instant::now", "SystemTime::now", "Timestamp::now", "Zoned::now"];

/// What is impure in a file, and in the files of the same crate that it imports: one sentence each.
///
/// `read` gives the text of a module of the crate (`a::b`), or nothing if there is no such file.
pub fn impurities(module: &str, read: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
    let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
    visit(module, read, &mut seen, &mut found);
    found
}

fn visit(module: &str, read: &dyn Fn(&str) -> Option<String>, seen: &mut BTreeSet<String>, found: &mut Vec<String>) {
    let Some((module, text)) = nearest(module, read) else {
        found.push(format!(
            "crate::{module} is no file; import from the file that defines it"
        ));
        return;
    };
    if !seen.insert(module.clone()) {
        return;
    }
    let code = code_of(&text);
    for clock in CLOCKS.iter().filter(|clock| code.contains(**clock)) {
        found.push(format!("{module}.rs reads the clock: {clock}"));
    }
    let (imports, rest) = split_imports(&code);
    for name in IMPURE_CRATES.iter().filter(|name| names_crate(&rest, name)) {
        found.push(format!("{module}.rs names {name}"));
    }
    for path in imports {
        let mut segments = path.split("::");
        match (segments.next().unwrap_or_default(), segments.next()) {
            ("crate", Some(_)) => visit(&path["crate::".len()..], read, seen, found),
            ("self" | "super", _) => {}
            ("std", Some(_))
                if EFFECTS_OF_STD
                    .iter()
                    .any(|part| path["std::".len()..].starts_with(part)) =>
            {
                found.push(format!("{module}.rs acts on the world: {path}"));
            }
            (root, _) if PURE_CRATES.contains(&root) => {}
            _ => found.push(format!("{module}.rs imports {path}")),
        }
    }
}

/// The file that a path leads to: the longest beginning of it that is one.
fn nearest(path: &str, read: &dyn Fn(&str) -> Option<String>) -> Option<(String, String)> {
    let mut module = path;
    loop {
        if let Some(text) = read(module) {
            return Some((module.to_owned(), text));
        }
        module = module.rsplit_once("::")?.0;
    }
}

/// The text without comments and without its tests, which may use what they need.
pub fn code_of(text: &str) -> String {
    let before_tests = text.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = before_tests
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

/// Whether code holds `name::` as the beginning of a path.
fn names_crate(code: &str, name: &str) -> bool {
    let inner = |sign: char| sign.is_alphanumeric() || sign == '_' || sign == ':';
    code.match_indices(&format!("{name}::"))
        .any(|(at, _)| !code[..at].ends_with(inner))
}

/// Takes the `use` declarations out of the code: the paths that they import one by one, and the rest of the code.
fn split_imports(code: &str) -> (Vec<String>, String) {
    let (mut paths, mut rest, mut open) = (Vec::new(), String::new(), None::<String>);
    for line in code.lines() {
        let item = line.trim().trim_start_matches("pub(crate) ").trim_start_matches("pub ");
        match (&mut open, item.strip_prefix("use ")) {
            (Some(tree), _) => tree.push_str(line),
            (None, Some(begin)) => open = Some(begin.to_owned()),
            (None, None) => {
                rest.push_str(line);
                rest.push('\n');
            }
        }
        if let Some(tree) = open.take_if(|tree| tree.trim_end().ends_with(';')) {
            expand("", tree.trim_end().trim_end_matches(';'), &mut paths);
        }
    }
    (paths, rest)
}

/// `a::{b, c::d}` becomes `a::b` and `a::c::d`.
fn expand(prefix: &str, tree: &str, paths: &mut Vec<String>) {
    let Some((begin, group)) = tree.split_once('{') else {
        let name = tree.split(" as ").next().unwrap_or_default().trim();
        if !name.is_empty() {
            paths.push(format!("{prefix}{name}"));
        }
        return;
    };
    let group = group.rsplit_once('}').map_or(group, |(inner, _)| inner);
    let prefix = format!("{prefix}{}", begin.trim());
    let mut depth = 0;
    let parts = group.split(|sign| {
        depth += i32::from(sign == '{') - i32::from(sign == '}');
        sign == ',' && depth == 0
    });
    parts.for_each(|part| expand(&prefix, part, paths));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &str)]) -> Vec<String> {
        let read = |name: &str| {
            files
                .iter()
                .find(|(file, _)| *file == name)
                .map(|(_, text)| (*text).to_owned())
        };
        impurities("a_plan", &read)
    }

    #[test]
    fn data_and_pure_siblings_are_fine() {
        let found = of(&[
            (
                "a_plan",
                "use std::collections::{BTreeMap, BTreeSet};\nuse crate::helpers::{a, b};\n#[cfg(test)]\nuse tokio::x;",
            ),
            (
                "helpers",
                "// use kube::Api;\nuse k8s_openapi::api::core::v1::Node;\nuse crate::a_plan::Plan;",
            ),
        ]);
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn an_import_of_the_cluster_is_found_also_behind_a_sibling() {
        let found = of(&[
            ("a_plan", "use crate::{helpers::a, other};"),
            ("helpers", "pub use kube::{Api, client::{Client, Body}};"),
            (
                "other",
                "use std::{\n  fs::read,\n  time::Instant,\n};\nfn f() { Instant::now(); tokio::spawn(g()); my_tokio::x(); }",
            ),
        ]);
        assert_eq!(
            found,
            [
                "helpers.rs imports kube::Api",
                "helpers.rs imports kube::client::Client",
                "helpers.rs imports kube::client::Body",
                "other.rs reads the clock: Instant::now",
                "other.rs names tokio",
                "other.rs acts on the world: std::fs::read",
            ]
        );
    }

    #[test]
    fn a_module_that_is_no_file_is_found() {
        assert_eq!(of(&[("a_plan", "use crate::Plan;")]).len(), 1);
    }
}
