//! `cargo xtask clouds`: the table of clouds in README.md, from the built components and from what each provider's README states of its proof.
//!
//! Interfaces are what a component exports, by `cloudwit inspect`; the cloud's name is that of its guide, level and judge are in one line of the
//! provider's README. A test renders the table again and compares.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{guests, programs, tools, workspace};

/// What stands before the table.
const BEGIN: &str = "<!-- Written by `cargo xtask clouds`. Change the providers, not this table. -->\n";

/// What stands behind it.
const END: &str = "<!-- End of what `cargo xtask clouds` writes. -->\n";

/// The example that comes last.
const LAST: &str = "sim";

/// Levels of proof; `A for this, B for that` is one as well.
const LEVELS: [&str; 4] = ["A", "B", "C", "D"];

/// What a provider's README states, in one line: `**Proof: level A.** Judged by moto.`
#[derive(Debug, PartialEq, Eq)]
pub struct Proof {
    /// `A` to `D`, also for parts; `none` for the example.
    pub level: String,
    /// Who or what judges.
    pub judge: String,
}

/// Writes the table anew, after building all providers.
///
/// # Errors
///
/// When something does not build, or a README or a guide lacks what the table says.
pub fn run() -> Result<()> {
    let program = programs::build(&["cloudwit"])?.join("cloudwit");
    let (file, text) = rendered(&program, guests::provider)?;
    fs::write(&file, text).with_context(|| format!("writing {}", file.display()))?;
    println!("{}", file.display());
    Ok(())
}

/// README.md with the table that it should have. `component` gives the file of a provider.
///
/// # Errors
///
/// As [`run`].
pub fn rendered(program: &Path, component: impl Fn(&str) -> Result<PathBuf>) -> Result<(PathBuf, String)> {
    let mut names: Vec<&str> = guests::PROVIDERS.to_vec();
    names.sort_unstable_by_key(|name| (*name == LAST, *name));
    let rows = names.into_iter().map(|name| {
        let interfaces = interfaces(program, &component(name)?).with_context(|| format!("looking into {name}"))?;
        row(name, &interfaces)
    });
    let rows: String = rows.collect::<Result<_>>()?;
    let file = workspace::root().join("README.md");
    let text = fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
    let (before, rest) = text.split_once(BEGIN).context("README.md has no table of clouds")?;
    let (_, behind) = rest
        .split_once(END)
        .context("README.md has no end of the table of clouds")?;
    let head = "| cloud | interfaces | proof | judged by |\n| ----- | ---------- | ----- | --------- |\n";
    Ok((file.clone(), format!("{before}{BEGIN}{head}{rows}{END}{behind}")))
}

fn row(name: &str, interfaces: &str) -> Result<String> {
    let root = workspace::root();
    let read = |path: String| fs::read_to_string(root.join(&path)).with_context(|| format!("reading {path}"));
    let guide = read(format!("docs/guide/{name}.md"))?;
    let cloud = title(&guide).with_context(|| format!("docs/guide/{name}.md does not begin with {TITLE:?}"))?;
    let proof = proof(&read(format!("providers/{name}/README.md"))?);
    let Proof { level, judge } = proof.with_context(|| format!("providers/{name}/README.md"))?;
    Ok(format!(
        "| [{cloud}](docs/guide/{name}.md) | {interfaces} | {level} | {judge} |\n"
    ))
}

/// How each guide begins.
const TITLE: &str = "# Run Cloudwit on ";

/// The cloud that a guide is about.
pub fn title(guide: &str) -> Option<&str> {
    guide.lines().next()?.strip_prefix(TITLE)
}

/// The one line of a provider's README about its proof.
///
/// # Errors
///
/// When there is none, or several, or it has another shape; says which it has to have.
pub fn proof(readme: &str) -> Result<Proof> {
    const SHAPE: &str = "one line like `**Proof: level A.** Judged by SOMETHING.`";
    let lines: Vec<&str> = readme.lines().filter(|line| line.starts_with("**Proof")).collect();
    let [line] = lines.as_slice() else {
        bail!("has {} lines about its proof, and needs {SHAPE}", lines.len());
    };
    let parts = line
        .strip_prefix("**Proof: level ")
        .and_then(|rest| rest.split_once(".** Judged by "));
    let parts = parts.and_then(|(level, judge)| Some((level, judge.strip_suffix('.')?)));
    let Some((level, judge)) = parts.filter(|(_, judge)| !judge.contains(". ") && !judge.contains('|')) else {
        bail!("needs {SHAPE}, with one sentence and no more in it, and has {line:?}");
    };
    let is_level = |part: &str| LEVELS.contains(&part.split_once(" for ").map_or(part, |(level, _)| level));
    if level != "none" && !level.split(", ").all(is_level) {
        bail!("needs {SHAPE}, and {level:?} is no level");
    }
    Ok(Proof {
        level: level.to_owned(),
        judge: judge.to_owned(),
    })
}

/// What a component exports, for people.
fn interfaces(program: &Path, component: &Path) -> Result<String> {
    let mut inspect = Command::new(program);
    // Nothing on this machine may lead to a cluster.
    inspect
        .arg("inspect")
        .arg(component)
        .args(["--output", "json"])
        .env("KUBECONFIG", "/nowhere");
    let told: Value = serde_json::from_str(&tools::output(&mut inspect)?).context("what cloudwit inspect says")?;
    let abilities = told["abilities"]
        .as_array()
        .context("cloudwit inspect names no abilities")?;
    let names: Vec<&str> = abilities.iter().filter_map(Value::as_str).collect();
    Ok(in_words(&names))
}

/// The optional interfaces of volumes stand behind them in brackets.
fn in_words(abilities: &[&str]) -> String {
    let of_volumes = |name: &&str| name.strip_prefix("volume-").is_some_and(|part| part != "labels");
    let (parts, all): (Vec<&str>, Vec<&str>) = abilities.iter().partition(|name| of_volumes(name));
    let parts: Vec<&str> = parts.iter().map(|name| name.trim_start_matches("volume-")).collect();
    let words = all.into_iter().map(|name| match (name, parts.is_empty()) {
        ("volumes", false) => format!("volumes ({})", parts.join(", ")),
        _ => name.replace('-', " "),
    });
    words.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proof_is_one_line_of_one_shape() {
        let found =
            proof("# A\n\n**Proof: level A for servers, B for the rest.** Judged by a, and b.\nMore. And more.\n")
                .unwrap();
        assert_eq!(
            (found.level.as_str(), found.judge.as_str()),
            ("A for servers, B for the rest", "a, and b")
        );
        assert_eq!(
            proof("**Proof: level none.** Judged by no third party.\n")
                .unwrap()
                .level,
            "none"
        );
        for odd in [
            "",
            "**Proof: level A.** Every call is judged.\n",
            "**Proof: level A.** Judged by a. And b.\n",
            "**Proof: level A.** Judged by a\n",
            "**Proof: level E.** Judged by a.\n",
            "**Proof: level A, E for b.** Judged by a.\n",
            "**Proof: level A.** Judged by a|b.\n",
            "**Proof: level A.** Judged by a.\n**Proof: level B.** Judged by b.\n",
        ] {
            assert!(proof(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn interfaces_of_volumes_stand_in_brackets() {
        assert_eq!(in_words(&["instances", "load-balancers"]), "instances, load balancers");
        assert_eq!(
            in_words(&[
                "instances",
                "volumes",
                "volume-expansion",
                "volume-listing",
                "volume-labels"
            ]),
            "instances, volumes (expansion, listing), volume labels"
        );
        assert_eq!(in_words(&["volumes"]), "volumes");
    }

    #[test]
    fn a_guide_is_named_after_its_cloud() {
        assert_eq!(title("# Run Cloudwit on AWS\n\nText\n"), Some("AWS"));
        assert_eq!(title("# AWS\n"), None);
    }
}
