//! The files of a new project: a template with the name in it and, beside it, the contract.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use include_dir::{Dir, DirEntry, include_dir};

use super::Language;

/// A folder for each language. Each file's name ends in `.tmpl`, so that no tool takes it for a file of this repository.
static TEMPLATES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/templates");

/// The contract, for toolchains that read it in the project. In Rust the SDK has it.
static CONTRACT: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../wit/v0.1");

/// What the name of each file of a template ends in.
const ENDING: &str = ".tmpl";

/// A project that is not written yet.
#[derive(Debug)]
pub struct Project {
    files: Vec<(PathBuf, Vec<u8>)>,
}

impl Project {
    /// The project of this name. `sdk` is the folder of the guest SDK; none for the released one.
    ///
    /// # Errors
    ///
    /// When a template is not as it has to be: a mistake in this program, which a test excludes.
    pub fn of(language: Language, name: &str, sdk: Option<&str>) -> anyhow::Result<Self> {
        let folder = match language {
            Language::Rust => "rust",
            Language::Go => "go",
            Language::Js => "js",
            Language::Python => "python",
        };
        let template = TEMPLATES
            .get_dir(folder)
            .with_context(|| format!("no template {folder}"))?;
        let filler = Filler::of(name, sdk)?;
        let mut files = Vec::new();
        for (path, content) in files_of(template, &PathBuf::from(folder))? {
            let path = path.to_str().and_then(|path| path.strip_suffix(ENDING));
            let path = path.with_context(|| format!("a file of the template {folder} does not end in {ENDING}"))?;
            let text = std::str::from_utf8(content).with_context(|| format!("{path} of {folder} is not UTF-8 text"))?;
            let filled = filler.fill(text);
            if placeholder_left(&filled) {
                bail!("{path} of the template {folder} has a placeholder that is not known");
            }
            files.push((PathBuf::from(filler.fill(path)), filled.into_bytes()));
        }
        if language != Language::Rust {
            let contract = files_of(&CONTRACT, &PathBuf::new())?.into_iter();
            files.extend(contract.map(|(path, content)| (PathBuf::from("wit").join(path), content.to_vec())));
        }
        files.sort();
        Ok(Self { files })
    }

    /// Its files, by their paths in it, in order.
    pub fn files(&self) -> &[(PathBuf, Vec<u8>)] {
        &self.files
    }
}

/// A name as identifiers have it.
pub fn snake(name: &str) -> String {
    name.replace('-', "_")
}

/// What stands for placeholders.
struct Filler {
    values: [(&'static str, String); 4],
}

impl Filler {
    fn of(name: &str, sdk: Option<&str>) -> anyhow::Result<Self> {
        let version = env!("CARGO_PKG_VERSION");
        let sdk = match sdk {
            // A string of JSON is one of TOML too.
            Some(path) => format!("{{ path = {} }}", serde_json::to_string(path)?),
            None => format!("\"{version}\""),
        };
        Ok(Self {
            values: [
                ("{{name}}", name.to_owned()),
                ("{{snake}}", snake(name)),
                ("{{version}}", version.to_owned()),
                ("{{sdk}}", sdk),
            ],
        })
    }

    fn fill(&self, text: &str) -> String {
        let fill = |text: String, (placeholder, value): &(&str, String)| text.replace(placeholder, value);
        self.values.iter().fold(text.to_owned(), fill)
    }
}

/// Whether `{{word}}` is in it. Words with spaces are other languages' own braces.
fn placeholder_left(text: &str) -> bool {
    text.split("{{").skip(1).any(|rest| {
        let word = rest.split("}}").next().unwrap_or_default();
        rest.len() > word.len() && !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase())
    })
}

/// All files below a folder, by their paths below `root`.
fn files_of(folder: &'static Dir<'static>, root: &PathBuf) -> anyhow::Result<Vec<(PathBuf, &'static [u8])>> {
    let mut found = Vec::new();
    for entry in folder.entries() {
        match entry {
            DirEntry::Dir(inner) => found.extend(files_of(inner, root)?),
            DirEntry::File(file) => found.push((file.path().strip_prefix(root)?.to_owned(), file.contents())),
        }
    }
    Ok(found)
}
