//! `cloudwit provider new`: the project of a provider that works, in one of four languages.
//!
//! ```text
//!   project   the template's files and the contract's, by their paths in the project, filled in
//!   mod       what is asked for, what is refused, and what is written
//! ```

mod project;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;

use crate::config::mistakes::Mistakes;
use project::Project;

/// Most bytes of a name: of a label in DNS, which is what a provider's name may be elsewhere.
const NAME_BYTES: usize = 63;

/// Names that compilers take for something else.
const TAKEN: [&str; 8] = [
    "alloc",
    "cloudwit-guest-sdk",
    "core",
    "proc-macro",
    "self",
    "std",
    "super",
    "test",
];

/// Keywords of Rust, which cargo refuses as names of libraries.
const KEYWORDS: [&str; 49] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn", "else",
    "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro", "match", "mod",
    "move", "mut", "override", "priv", "pub", "ref", "return", "static", "struct", "trait", "true", "try", "type",
    "typeof", "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// What a provider is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Language {
    /// With the guest SDK.
    Rust,
    /// Compiled by Go itself.
    Go,
    /// JavaScript.
    Js,
    /// Python.
    Python,
}

/// Arguments of `provider new`.
#[derive(Debug, clap::Args)]
pub struct NewArgs {
    /// Name of the provider and of its component: lower-case letters, digits and single dashes, such as `my-cloud`. Provider ids begin with it
    /// and never change.
    #[arg(id = "new_name", value_name = "NAME")]
    pub name: String,

    /// The language it is written in.
    #[arg(long, value_enum, value_name = "LANGUAGE")]
    pub lang: Language,

    /// The folder to write; NAME when left out. It must not exist or be empty.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Folder of the guest SDK, for Rust: a dependency by path. Without it, the released SDK of this Cloudwit's version.
    #[arg(long, value_name = "PATH")]
    pub sdk: Option<PathBuf>,
}

/// Writes the project and prints what to do next.
pub fn run(args: NewArgs) -> anyhow::Result<ExitCode> {
    let out = args.out.clone().unwrap_or_else(|| PathBuf::from(&args.name));
    let mut mistakes = Vec::new();
    mistakes.extend(mistake_of_name(&args.name));
    // A folder that is named after a wrong name is not checked.
    if args.out.is_some() || mistakes.is_empty() {
        mistakes.extend(mistake_of_folder(&out));
    }
    let sdk = match (&args.sdk, args.lang) {
        (None, _) => None,
        (Some(folder), Language::Rust) => sdk_at(folder).map_err(|mistake| mistakes.push(mistake)).ok(),
        (Some(_), _) => {
            mistakes.push("--sdk is for --lang rust only; leave it out".to_owned());
            None
        }
    };
    Mistakes::none_of(mistakes, "")?;
    let project = Project::of(args.lang, &args.name, sdk.as_deref())?;
    for (path, content) in project.files() {
        let file = out.join(path);
        let folder = file.parent().unwrap_or(&out);
        fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
        fs::write(&file, content).with_context(|| format!("{} cannot be written", file.display()))?;
    }
    let count = project.files().len();
    println!(
        "{}: {count} files of a provider that looks machines up.\n\nNext:\n",
        out.display()
    );
    for command in next(args.lang, &args.name, &out) {
        println!("  {command}");
    }
    println!("\nContinue with its README.md.");
    Ok(ExitCode::SUCCESS)
}

/// What is wrong with a name.
fn mistake_of_name(name: &str) -> Option<String> {
    let part = |part: &str| {
        let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        !part.is_empty() && part.bytes().all(inner)
    };
    let is_formed = name.len() <= NAME_BYTES
        && name.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase())
        && name.split('-').all(part);
    if !is_formed {
        return Some(format!(
            "the name {name:?} is refused: use lower-case letters, digits and single dashes, a letter first, at most {NAME_BYTES} bytes; \
             write it like my-cloud"
        ));
    }
    let is_taken = TAKEN.contains(&name) || KEYWORDS.contains(&name);
    is_taken.then(|| format!("the name {name:?} is reserved by compilers; add a word, such as {name}-cloud"))
}

/// Why nothing is written there.
fn mistake_of_folder(folder: &Path) -> Option<String> {
    let shown = folder.display();
    let other = "name another folder with --out";
    // A link that leads nowhere is there too.
    fs::symlink_metadata(folder).ok()?;
    match fs::read_dir(folder).map(|mut entries| entries.next().is_some()) {
        Ok(false) => None,
        Ok(true) => Some(format!("the folder {shown} is not empty; {other}")),
        Err(error) => Some(format!("{shown} cannot be written as a folder: {error}; {other}")),
    }
}

/// The SDK's folder as the project's manifest has it.
fn sdk_at(folder: &Path) -> Result<String, String> {
    let shown = folder.display();
    let wrong = |why: String| format!("--sdk={shown}: {why}; name the folder guest-sdk of Cloudwit's repository");
    let manifest =
        fs::read_to_string(folder.join("Cargo.toml")).map_err(|error| wrong(format!("Cargo.toml: {error}")))?;
    if !manifest
        .lines()
        .any(|line| line.trim() == "name = \"cloudwit-guest-sdk\"")
    {
        return Err(wrong("its Cargo.toml is not that of cloudwit-guest-sdk".to_owned()));
    }
    let absolute = fs::canonicalize(folder).map_err(|error| wrong(error.to_string()))?;
    let text = absolute.into_os_string().into_string();
    text.map_err(|_| wrong("its path is not UTF-8, which a manifest cannot name".to_owned()))
}

/// The commands that come next.
fn next(language: Language, name: &str, out: &Path) -> [String; 3] {
    let folder = out.display().to_string();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte);
    let folder = match folder.bytes().all(plain) {
        true => folder,
        false => format!("'{}'", folder.replace('\'', r"'\''")),
    };
    let (first, second, third) = match language {
        Language::Rust => (
            "cargo test",
            "cargo build --release --target wasm32-wasip2",
            format!(
                "cloudwit provider inspect target/wasm32-wasip2/release/{}.wasm",
                project::snake(name)
            ),
        ),
        Language::Js => (
            "npm ci && npm test",
            "npm run build",
            format!("cloudwit provider inspect {name}.wasm"),
        ),
        Language::Python => ("make test", "make", format!("cloudwit provider inspect {name}.wasm")),
        Language::Go => (
            "make test",
            "make ADAPTER=wasi_snapshot_preview1.reactor.wasm",
            format!("cloudwit provider inspect {name}.wasm"),
        ),
    };
    [format!("cd {folder} && {first}"), second.to_owned(), third]
}

#[cfg(test)]
mod tests;
