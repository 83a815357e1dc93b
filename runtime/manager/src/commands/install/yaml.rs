//! Readable YAML of manifests: multi-line texts as blocks, components and secrets in own files.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::Context;
use serde::ser::{SerializeMap as _, SerializeSeq as _};
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_saphyr::LitStr;

/// What the annotations of an object may have in all, in bytes (apimachinery pkg/api/validation, `TotalAnnotationSizeLimitB`). Client-side
/// `kubectl apply` keeps the whole object in one.
const ANNOTATIONS_LIMIT: usize = 256 << 10;

/// One text with all of them, for `kubectl apply --server-side -f -`.
pub fn stream(objects: &[Value]) -> anyhow::Result<String> {
    let mut text = "# kubectl apply --server-side -f -\n".to_owned();
    if objects
        .iter()
        .any(|object| object.to_string().len() > ANNOTATIONS_LIMIT)
    {
        text += "# (Without --server-side it is refused: a copy of the components does not fit into an annotation.)\n";
    }
    text += &documents(objects)?;
    Ok(text)
}

/// Files of a folder, which is made where it is missing: the namespace, components, secrets (for the owner alone), and the rest. Their names are
/// in the order in which `kubectl apply -f FOLDER` takes them. Gives the names.
pub fn write(objects: &[Value], folder: &Path) -> anyhow::Result<Vec<&'static str>> {
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    let mut files = BTreeMap::<&'static str, Vec<Value>>::new();
    for object in objects {
        files.entry(file_of(object)).or_default().push(object.clone());
    }
    for (name, objects) in &files {
        let path = folder.join(name);
        let mode = if *name == SECRETS { 0o600 } else { 0o644 };
        let made = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(mode)
            .open(&path);
        let written = made.and_then(|mut file| {
            // The file may have been there with other rights.
            file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(mode))?;
            file.write_all(documents(objects).map_err(std::io::Error::other)?.as_bytes())
        });
        written.with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(files.into_keys().collect())
}

const SECRETS: &str = "cloudwit-secrets.yaml";

fn file_of(object: &Value) -> &'static str {
    match object["kind"].as_str() {
        Some("Namespace") => "cloudwit-namespace.yaml",
        Some("ConfigMap") if object.get("binaryData").is_some() => "cloudwit-providers.yaml",
        Some("Secret") => SECRETS,
        _ => "cloudwit.yaml",
    }
}

fn documents(objects: &[Value]) -> anyhow::Result<String> {
    let mut text = String::new();
    for object in objects {
        text += "---\n";
        text += &document(object)?;
    }
    Ok(text)
}

/// With blocks where these read as the same, which odd texts may not.
fn document(object: &Value) -> anyhow::Result<String> {
    // Lines of base64 stay whole: nothing that reads YAML has to put them together.
    let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
    let readable = serde_saphyr::to_string_with_options(&Readable(object), options.clone())?;
    match serde_saphyr::from_str::<Value>(&readable) {
        Ok(same) if same == *object => Ok(readable),
        _ => Ok(serde_saphyr::to_string_with_options(object, options)?),
    }
}

/// A value whose texts of several lines are written as blocks.
struct Readable<'a>(&'a Value);

impl Serialize for Readable<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::String(text) if text.trim_end().contains('\n') => LitStr(text).serialize(serializer),
            Value::Array(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    list.serialize_element(&Readable(item))?;
                }
                list.end()
            }
            Value::Object(fields) => {
                let mut map = serializer.serialize_map(Some(fields.len()))?;
                for (name, value) in fields {
                    map.serialize_entry(name, &Readable(value))?;
                }
                map.end()
            }
            other => other.serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use serde_json::json;

    use super::*;

    fn config_map(text: &str) -> Value {
        json!({ "kind": "ConfigMap", "metadata": { "name": "c" }, "data": { "cloudwit.yaml": text } })
    }

    #[test]
    fn configuration_is_a_block_that_people_read() {
        let text = document(&config_map("providers:\n  - name: \"sim\"\n    grants: {}\n")).unwrap();
        assert!(
            text.contains("cloudwit.yaml: |\n    providers:\n      - name: \"sim\"\n        grants: {}\n"),
            "{text}"
        );
        let base64 = json!({ "kind": "ConfigMap", "binaryData": { "sim.wasm": "AGFzbQ".repeat(1000) } });
        assert_eq!(document(&base64).unwrap().lines().count(), 3);
    }

    #[test]
    fn whatever_a_text_has_is_read_again_as_it_was() {
        for text in [
            "a\nb",
            "a\n\n\n",
            " a\nb\n",
            "\na\nb",
            "a \nb\t\n",
            "a\r\nb\n",
            "a\n\u{1b}[2J\nb",
            "- a\n...\n---\nb",
            "\n",
            "a\n \n b\n",
            "\u{feff}a\nb",
            "a\u{85}b\nc\u{2028}d\n",
        ] {
            let object = config_map(text);
            let read: Value = serde_saphyr::from_str(&document(&object).unwrap()).unwrap();
            assert_eq!(read, object, "{text:?}");
        }
    }

    #[test]
    fn a_folder_has_components_and_secrets_in_files_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("new");
        let objects = [
            json!({ "kind": "Namespace" }),
            json!({ "kind": "ConfigMap", "data": {} }),
            json!({ "kind": "ConfigMap", "binaryData": {} }),
            json!({ "kind": "Secret", "data": {} }),
            json!({ "kind": "Deployment" }),
        ];
        let names = [
            "cloudwit-namespace.yaml",
            "cloudwit-providers.yaml",
            SECRETS,
            "cloudwit.yaml",
        ];
        for _ in 0..2 {
            assert_eq!(write(&objects, &dir).unwrap(), names);
            let mode = fs::metadata(dir.join(SECRETS)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        let rest = fs::read_to_string(dir.join("cloudwit.yaml")).unwrap();
        assert_eq!(rest.matches("---\n").count(), 2);
        assert!(rest.contains("Deployment") && !rest.contains("Secret") && !rest.contains("binaryData"));
    }
}
