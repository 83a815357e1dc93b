//! Contract version and exported interfaces of a component, read from its type.
//!
//! Everything here happens before anything is linked, on the names of exports and imports. Versions are compared the
//! way the component model does it: `0.1.0` and `0.1.7` fit each other, `0.2.0` is another contract.

use std::fmt;
use std::path::Path;

use cloudwit_model::Abilities;

use crate::LoadError;
use crate::load::toolchain::Toolchain;

/// Package of the contract.
const PACKAGE: &str = "cloudwit:provider";

/// The versions there is an adapter for, newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Contract {
    /// `wit/v0.1`.
    V0_1,
}

impl Contract {
    const ALL: [Self; 1] = [Self::V0_1];

    /// The line of compatible versions.
    fn line(self) -> &'static str {
        match self {
            Self::V0_1 => "0.1",
        }
    }
}

impl fmt::Display for Contract {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.line())
    }
}

/// The interfaces of a component, with versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Offer {
    /// The newest version that both sides speak.
    pub contract: Contract,
    /// The interfaces it exports.
    pub abilities: Abilities,
}

/// Packages that are linked for guests, and the line of each.
const OFFERED: [(&str, &str); 8] = [
    (PACKAGE, "0.1"),
    ("wasi:cli", "0.2"),
    ("wasi:clocks", "0.2"),
    ("wasi:filesystem", "0.2"),
    ("wasi:http", "0.2"),
    ("wasi:io", "0.2"),
    ("wasi:random", "0.2"),
    ("wasi:sockets", "0.2"),
];

/// A name such as `cloudwit:provider/info@0.1.0`.
struct Name<'a> {
    package: &'a str,
    interface: &'a str,
    /// The major version, and the minor one where the major one is 0.
    line: String,
}

impl<'a> Name<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let (package, rest) = text.split_once('/')?;
        let (interface, version) = rest.split_once('@').unwrap_or((rest, ""));
        let mut numbers = version.split('.');
        let line = match (numbers.next(), numbers.next()) {
            (Some("0"), Some(minor)) => format!("0.{minor}"),
            (Some(major), _) => major.to_owned(),
            (None, _) => String::new(),
        };
        Some(Self {
            package,
            interface,
            line,
        })
    }
}

/// Reads what the component offers from the names of its exports. An error does not include the toolchain.
pub(crate) fn offer(file: &Path, exports: &[&str]) -> Result<Offer, LoadError> {
    let ours: Vec<Name<'_>> = exports
        .iter()
        .filter_map(|name| Name::parse(name))
        .filter(|name| name.package == PACKAGE)
        .collect();
    if ours.is_empty() {
        let exports = if exports.is_empty() {
            "nothing".into()
        } else {
            exports.join(", ")
        };
        return Err(LoadError::OtherWorld {
            file: file.into(),
            exports,
            toolchain: Toolchain::Unknown,
        });
    }
    let Some(contract) = Contract::ALL
        .into_iter()
        .find(|contract| ours.iter().any(|name| name.line == contract.line()))
    else {
        let mut theirs: Vec<&str> = ours.iter().map(|name| name.line.as_str()).collect();
        theirs.dedup();
        let known: Vec<&str> = Contract::ALL.iter().map(|contract| contract.line()).collect();
        return Err(LoadError::OtherVersion {
            file: file.into(),
            theirs: theirs.join(" and "),
            ours: known.join(" and "),
        });
    };
    let interfaces: Vec<&str> = ours
        .iter()
        .filter(|name| name.line == contract.line())
        .map(|name| name.interface)
        .collect();
    let has = |interface: &str| interfaces.contains(&interface);
    let names = || {
        interfaces
            .iter()
            .map(|name| format!("`{name}`"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    if !has("info") {
        return Err(LoadError::NoInfo {
            file: file.into(),
            exports: names(),
            toolchain: Toolchain::Unknown,
        });
    }
    let abilities = Abilities::of(has);
    if abilities == Abilities::default() {
        return Err(LoadError::NothingToAsk {
            file: file.into(),
            exports: names(),
        });
    }
    Ok(Offer { contract, abilities })
}

/// Finds imports of packages or versions that are not offered.
pub(crate) fn check_imports(file: &Path, imports: &[&str]) -> Result<(), LoadError> {
    let offered =
        |text: &str| Name::parse(text).is_some_and(|name| OFFERED.contains(&(name.package, name.line.as_str())));
    let missing: Vec<&str> = imports.iter().copied().filter(|import| !offered(import)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(missing_import(file, missing.join(", ")))
}

/// The error for an import that is not there.
pub(crate) fn missing_import(file: &Path, imports: String) -> LoadError {
    let offers = OFFERED.map(|(package, line)| format!("{package}@{line}")).join(", ");
    LoadError::MissingImport {
        file: file.into(),
        imports,
        offers,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(exports: &[&str]) -> String {
        offer(Path::new("sim.wasm"), exports).unwrap_err().to_string()
    }

    #[test]
    fn abilities_are_the_exported_interfaces() {
        let exports = [
            "cloudwit:provider/info@0.1.0",
            "cloudwit:provider/routes@0.1.4",
            "acme:extra/things",
        ];
        let offer = offer(Path::new("sim.wasm"), &exports).unwrap();
        assert_eq!(offer.contract, Contract::V0_1);
        assert_eq!(
            offer.abilities,
            Abilities {
                routes: true,
                ..Abilities::default()
            }
        );
    }

    #[test]
    fn component_of_another_kind_is_named() {
        let text = refusal(&["wasi:http/incoming-handler@0.2.3"]);
        assert!(
            text.contains("exports wasi:http/incoming-handler@0.2.3 and nothing of cloudwit:provider"),
            "{text}"
        );
        assert!(refusal(&[]).contains("exports nothing and nothing of cloudwit:provider"));
    }

    #[test]
    fn another_version_names_both_sides() {
        for (theirs, line) in [
            ("0.2.0", "0.2"),
            ("0.2.0-draft", "0.2"),
            ("1.3.0", "1"),
            ("0.10.0", "0.10"),
        ] {
            let text = refusal(&[&format!("cloudwit:provider/info@{theirs}")]);
            assert!(
                text.contains(&format!("speaks cloudwit:provider {line}, and this Cloudwit")),
                "{text}"
            );
            assert!(
                text.contains(&format!("a Cloudwit that speaks {line} or a provider built for 0.1")),
                "{text}"
            );
        }
    }

    #[test]
    fn of_two_versions_the_one_we_speak_counts() {
        let exports = [
            "cloudwit:provider/info@0.2.0",
            "cloudwit:provider/info@0.1.0",
            "cloudwit:provider/instances@0.1.0",
        ];
        assert!(offer(Path::new("sim.wasm"), &exports).unwrap().abilities.instances);
    }

    #[test]
    fn without_info_or_anything_besides_it_is_no_provider() {
        let text = refusal(&["cloudwit:provider/routes@0.1.0"]);
        assert!(
            text.contains("exports `routes` of cloudwit:provider but not `info`"),
            "{text}"
        );
        let text = refusal(&["cloudwit:provider/info@0.1.0", "cloudwit:provider/billing@0.1.0"]);
        assert!(text.contains("only `info`, `billing`"), "{text}");
    }

    #[test]
    fn imports_that_do_not_exist_are_all_named() {
        let file = Path::new("sim.wasm");
        let fine = [
            "wasi:http/types@0.2.12",
            "cloudwit:provider/log@0.1.0",
            "wasi:cli/exit@0.2.6",
        ];
        check_imports(file, &fine).unwrap();
        let error = check_imports(file, &["acme:db/store@1.0.0", fine[0], "wasi:http/client@0.3.0"]).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("imports acme:db/store@1.0.0, wasi:http/client@0.3.0, and this"),
            "{error}"
        );
    }
}
