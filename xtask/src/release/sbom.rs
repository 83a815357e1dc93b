//! Bills of materials in CycloneDX 1.5: what an artifact is made of, with licences and digests.
//!
//! Nothing in them says when or where they were made, so that the same sources give the same file.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::release::crates::{Crate, CrateId, Crates};
use crate::release::version::VERSION;

/// How its file is called behind the artifact's name.
pub const EXTENSION: &str = "cdx.json";

/// What a bill is about.
#[derive(Debug, Clone, Copy)]
pub struct Artifact<'a> {
    /// Its name.
    pub name: &'a str,
    /// `application` or `container`.
    pub kind: &'a str,
    /// What it was compiled for.
    pub targets: &'a [&'a str],
    /// SHA-256 of its file.
    pub digest: &'a str,
}

/// Writes the bill of an artifact that is made of these crates.
///
/// # Errors
///
/// When the file cannot be written.
pub fn write(file: &Path, artifact: &Artifact<'_>, crates: &Crates, compiler: &str) -> Result<()> {
    let text =
        serde_json::to_string_pretty(&bill(artifact, crates, compiler)).context("writing a bill of materials")?;
    fs::write(file, text + "\n").with_context(|| format!("writing {}", file.display()))
}

fn bill(artifact: &Artifact<'_>, crates: &Crates, compiler: &str) -> Value {
    let root = &crates.root;
    let parts = crates.all.iter().filter(|(id, _)| *id != root);
    let targets: Vec<Value> = artifact
        .targets
        .iter()
        .map(|target| json!({ "name": "cloudwit:target", "value": target }))
        .collect();
    json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "tools": { "components": [{ "type": "application", "name": "rustc", "version": compiler }] },
            "component": {
                "type": artifact.kind,
                "bom-ref": reference(root),
                "name": artifact.name,
                "version": VERSION,
                "licenses": [{ "expression": "Apache-2.0" }],
                "hashes": [hash(artifact.digest)],
                "properties": targets,
            },
        },
        "components": parts.map(|(id, part)| component(id, part)).collect::<Vec<_>>(),
        "dependencies": crates.all.keys().map(|id| dependencies(id, crates)).collect::<Vec<_>>(),
    })
}

fn component(id: &CrateId, part: &Crate) -> Value {
    let (name, version) = id;
    let mut component = json!({
        "type": "library",
        "bom-ref": reference(id),
        "name": name,
        "version": version,
        // Macros, and what only they use, run in the compiler and are in no artifact.
        "scope": if part.in_compiler { "excluded" } else { "required" },
    });
    if !part.license.is_empty() {
        component["licenses"] = json!([{ "expression": part.license }]);
    }
    if !part.repository.is_empty() {
        component["externalReferences"] = json!([{ "type": "vcs", "url": part.repository }]);
    }
    // Our own crates are in no registry.
    if let Some(checksum) = &part.checksum {
        component["hashes"] = json!([hash(checksum)]);
        component["purl"] = json!(format!("pkg:cargo/{name}@{}", version.replace('+', "%2B")));
    }
    component
}

fn dependencies(id: &CrateId, crates: &Crates) -> Value {
    let used = crates.uses.get(id).into_iter().flatten();
    json!({ "ref": reference(id), "dependsOn": used.map(reference).collect::<Vec<_>>() })
}

fn hash(digest: &str) -> Value {
    json!({ "alg": "SHA-256", "content": digest })
}

/// What names a crate within a bill.
fn reference((name, version): &CrateId) -> String {
    format!("{name}@{version}")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::release::crates::tests::example;

    fn example_bill() -> Value {
        let artifact = Artifact {
            name: "ours",
            kind: "application",
            targets: &["wasm32-wasip2"],
            digest: "cd",
        };
        bill(&artifact, &example(), "1.95.0")
    }

    #[test]
    fn bill_names_each_crate_with_licence_source_and_digest() {
        let bill = example_bill();
        let artifact = &bill["metadata"]["component"];
        assert_eq!(
            (&artifact["name"], &artifact["version"]),
            (&json!("ours"), &json!(VERSION))
        );
        assert_eq!(artifact["hashes"], json!([{ "alg": "SHA-256", "content": "cd" }]));
        let parts = bill["components"].as_array().unwrap();
        let names: Vec<&str> = parts.iter().filter_map(|part| part["name"].as_str()).collect();
        assert_eq!(
            names,
            ["axum", "bytes", "derive", "syn"],
            "sorted, and without the artifact"
        );
        let bytes = json!({
            "type": "library", "bom-ref": "bytes@1.12.1", "name": "bytes", "version": "1.12.1", "scope": "required",
            "licenses": [{ "expression": "Apache-2.0 OR MIT" }],
            "hashes": [{ "alg": "SHA-256", "content": "ab" }],
            "purl": "pkg:cargo/bytes@1.12.1",
        });
        assert_eq!(parts[1], bytes);
        assert_eq!(parts[2]["scope"], "excluded", "macros are in no artifact");
        assert_eq!(parts[2]["externalReferences"][0]["url"], "https://example.com/derive");
    }

    #[test]
    fn every_reference_leads_to_a_component() {
        let bill = example_bill();
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let known: BTreeSet<String> = list(&bill["components"])
            .iter()
            .chain([&bill["metadata"]["component"]])
            .map(|part| part["bom-ref"].as_str().unwrap().to_owned())
            .collect();
        let dependencies = list(&bill["dependencies"]);
        assert_eq!(dependencies.len(), known.len());
        for dependency in &dependencies {
            let of = list(&dependency["dependsOn"]);
            for reference in of.iter().chain([&dependency["ref"]]) {
                assert!(known.contains(reference.as_str().unwrap()), "{reference}");
            }
        }
        assert_eq!(
            dependencies.iter().find(|one| one["ref"] == "axum@0.8.9").unwrap()["dependsOn"],
            json!(["bytes@1.12.1"])
        );
    }
}
