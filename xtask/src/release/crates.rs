//! The crates that a program or a component is made of, as cargo resolves them for its target.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context, Result};

use crate::{tools, workspace};

/// Name and version, which no two crates of one program share.
pub type CrateId = (String, String);

/// One crate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crate {
    /// SPDX expression of its licence; empty where it names none.
    pub license: String,
    /// Where its sources are; empty where it does not say.
    pub repository: String,
    /// SHA-256 of the file from the registry; none for our own.
    pub checksum: Option<String>,
    /// Runs in the compiler alone: a macro, or what only macros use.
    pub in_compiler: bool,
}

/// All crates of a package, and which of them uses which.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Crates {
    /// The package itself.
    pub root: CrateId,
    /// Everything, the package included.
    pub all: BTreeMap<CrateId, Crate>,
    /// What each one uses directly.
    pub uses: BTreeMap<CrateId, BTreeSet<CrateId>>,
}

/// What cargo prints of each crate.
const FORMAT: &str = " {p}|{l}|{r}";

impl Crates {
    /// Those of a package of this workspace, for a target. What only builds or tests need is not in there.
    ///
    /// # Errors
    ///
    /// When cargo cannot resolve them.
    pub fn of(package: &str, target: &str) -> Result<Self> {
        let mut tree = workspace::cargo();
        tree.args(["tree", "--locked", "--package", package, "--target", target])
            .args(["--edges", "normal", "--prefix", "depth", "--format", FORMAT]);
        let lock = workspace::root().join("Cargo.lock");
        let lock = fs::read_to_string(&lock).with_context(|| format!("reading {}", lock.display()))?;
        Self::read(&tools::output(&mut tree)?, &checksums(&lock))
            .with_context(|| format!("reading what cargo tree says of {package}"))
    }

    /// The crates of both; the package is that of the first.
    pub fn and(mut self, other: Self) -> Self {
        for (id, found) in other.all {
            let in_compiler = found.in_compiler;
            self.all.entry(id).or_insert(found).in_compiler &= in_compiler;
        }
        for (user, used) in other.uses {
            self.uses.entry(user).or_default().extend(used);
        }
        self
    }

    /// Reads lines such as `2 bytes v1.12.1|MIT|https://github.com/tokio-rs/bytes`, the depth first. A crate whose own lines stand elsewhere has ` (*)` at the end.
    fn read(tree: &str, checksums: &BTreeMap<CrateId, String>) -> Result<Self> {
        let mut crates = Self::default();
        let mut path: Vec<CrateId> = Vec::new();
        for line in tree.lines().filter(|line| !line.trim().is_empty()) {
            let (depth, id, mut found) = parsed(line).with_context(|| format!("the line {line:?}"))?;
            path.truncate(depth);
            match path.last() {
                Some(user) => {
                    crates.uses.entry(user.clone()).or_default().insert(id.clone());
                }
                None => crates.root = id.clone(),
            }
            path.push(id.clone());
            found.checksum = checksums.get(&id).cloned();
            crates.all.insert(id, found);
        }
        crates.mark_what_only_macros_use();
        Ok(crates)
    }

    fn mark_what_only_macros_use(&mut self) {
        let (mut linked, mut next) = (BTreeSet::new(), vec![self.root.clone()]);
        while let Some(id) = next.pop() {
            let is_macro = self.all.get(&id).is_none_or(|found| found.in_compiler);
            if !is_macro && linked.insert(id.clone()) {
                next.extend(self.uses.get(&id).into_iter().flatten().cloned());
            }
        }
        for (id, found) in &mut self.all {
            found.in_compiler = !linked.contains(id);
        }
    }
}

fn parsed(line: &str) -> Option<(usize, CrateId, Crate)> {
    let (depth, rest) = line.split_once(' ')?;
    let mut parts = rest.trim_end_matches(" (*)").split('|');
    let (package, license, repository) = (parts.next()?, parts.next()?, parts.next()?);
    let mut words = package.split(' ');
    let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
    let found = Crate {
        // As it was written before there were expressions.
        license: license.replace(" / ", "/").replace('/', " OR "),
        repository: repository.to_owned(),
        checksum: None,
        in_compiler: words.any(|word| word == "(proc-macro)"),
    };
    Some((depth.parse().ok()?, (name.to_owned(), version.to_owned()), found))
}

/// The digests in a `Cargo.lock`.
fn checksums(lock: &str) -> BTreeMap<CrateId, String> {
    let value = |package: &str, key: &str| {
        let begin = format!("{key} = \"");
        let line = package.lines().find_map(|line| line.strip_prefix(&begin))?;
        Some(line.trim_end_matches('"').to_owned())
    };
    let packages = lock.split("[[package]]").skip(1);
    packages
        .filter_map(|package| {
            Some((
                (value(package, "name")?, value(package, "version")?),
                value(package, "checksum")?,
            ))
        })
        .collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const TREE: &str = "0 ours v0.1.0 (/work/ours)|Apache-2.0|https://example.com/ours\n\
                        1 axum v0.8.9|MIT|https://example.com/axum\n\
                        2 bytes v1.12.1|Apache-2.0 / MIT|\n\
                        1 bytes v1.12.1|Apache-2.0 / MIT|\n\
                        1 derive v1.0.0 (proc-macro)|MIT/Apache-2.0|https://example.com/derive\n\
                        2 axum v0.8.9|MIT|https://example.com/axum (*)\n\
                        2 syn v2.0.0|MIT|\n";

    const LOCK: &str = "version = 4\n\n[[package]]\nname = \"bytes\"\nversion = \"1.12.1\"\nsource = \"r\"\nchecksum = \"ab\"\n\n\
                        [[package]]\nname = \"ours\"\nversion = \"0.1.0\"\ndependencies = [\n \"bytes\",\n]\n";

    /// A small program.
    pub fn example() -> Crates {
        Crates::read(TREE, &checksums(LOCK)).unwrap()
    }

    fn id(name: &str, version: &str) -> CrateId {
        (name.to_owned(), version.to_owned())
    }

    #[test]
    fn tree_becomes_crates_with_what_each_uses() {
        let crates = example();
        assert_eq!(crates.root, id("ours", "0.1.0"));
        assert_eq!(crates.all.len(), 5);
        let bytes = &crates.all[&id("bytes", "1.12.1")];
        assert_eq!(bytes.license, "Apache-2.0 OR MIT");
        assert_eq!(bytes.checksum.as_deref(), Some("ab"));
        let in_compiler = |name: &str, version: &str| crates.all[&id(name, version)].in_compiler;
        assert!(
            in_compiler("derive", "1.0.0") && in_compiler("syn", "2.0.0"),
            "a macro, and what only it uses"
        );
        assert!(!in_compiler("axum", "0.8.9") && !bytes.in_compiler);
        let used = |name: &str, version: &str| crates.uses.get(&id(name, version)).map_or(0, BTreeSet::len);
        assert_eq!((used("ours", "0.1.0"), used("axum", "0.8.9")), (3, 1));
        assert_eq!(used("derive", "1.0.0"), 2, "one of them has its own lines elsewhere");
    }

    #[test]
    fn a_line_of_another_shape_is_no_crate() {
        for line in ["ours v0.1.0|MIT|", "0 ours|MIT|", "0 ours v1|MIT", "x ours v1|MIT|"] {
            assert!(Crates::read(line, &BTreeMap::new()).is_err(), "{line}");
        }
    }

    #[test]
    fn two_programs_have_the_crates_of_both() {
        let other = "0 ours v0.1.0|MIT|\n1 only v2.0.0|MIT|\n1 syn v2.0.0|MIT|\n";
        let both = example().and(Crates::read(other, &BTreeMap::new()).unwrap());
        assert_eq!(both.all.len(), 6);
        assert!(!both.all[&id("syn", "2.0.0")].in_compiler, "it is in one of them");
        assert!(both.uses[&id("ours", "0.1.0")].contains(&id("only", "2.0.0")));
        assert!(both.uses[&id("ours", "0.1.0")].contains(&id("axum", "0.8.9")));
    }
}
