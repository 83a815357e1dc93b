//! Toolchain that made a component, for error messages. Read only where loading fails.

use wasmparser::{KnownCustom, Parser, Payload, ProducersSectionReader, Validator, WasmFeatures};

/// A toolchain, as its `producers` sections name it
/// (<https://github.com/WebAssembly/tool-conventions/blob/main/ProducersSection.md>).
///
/// In the order of what counts: runtimes of languages have parts in Rust and C.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Toolchain {
    /// None that is known here.
    #[default]
    Unknown,
    /// rustc.
    Rust,
    /// Go or TinyGo.
    Go,
    /// componentize-js.
    JavaScript,
    /// componentize-py.
    Python,
}

impl Toolchain {
    /// Reads the sections of a module or component and of all in it, up to the first invalid one.
    pub(crate) fn of(file: &[u8]) -> Self {
        let sections = Parser::new(0).parse_all(file).map_while(Result::ok);
        let producers = sections.filter_map(|payload| match payload {
            Payload::CustomSection(section) => match section.as_known() {
                KnownCustom::Producers(producers) => Some(Self::in_section(producers)),
                _ => None,
            },
            _ => None,
        });
        producers.max().unwrap_or_default()
    }

    fn in_section(producers: ProducersSectionReader<'_>) -> Self {
        let values = producers.into_iter().flatten().flat_map(|field| field.values);
        let named = values.flatten().map(|value| Self::named(value.name));
        named.max().unwrap_or_default()
    }

    fn named(name: &str) -> Self {
        match name.to_ascii_lowercase().as_str() {
            "rust" | "rustc" => Self::Rust,
            "go" | "tinygo" => Self::Go,
            "javascript" | "componentizejs" | "componentize-js" => Self::JavaScript,
            // The last is all that componentize-py 0.25 writes.
            "python" | "componentize-py" | "component-init-transform" => Self::Python,
            _ => Self::Unknown,
        }
    }

    /// How its modules become components.
    pub(crate) fn build(self) -> &'static str {
        match self {
            Self::Rust => "build it with `cargo build --target wasm32-wasip2`",
            Self::JavaScript => "build it with `componentize` of componentize-js",
            Self::Python => "build it with `componentize-py componentize`",
            Self::Go => "make one of it with `wasm-tools component new`",
            // Also Rust: `strip = true` takes the section away.
            Self::Unknown => {
                "in Rust build it with `cargo build --target wasm32-wasip2`, elsewhere make one of it with `wasm-tools component new`"
            }
        }
    }

    /// How its components get the exports of a provider.
    pub(crate) fn world(self) -> &'static str {
        match self {
            Self::Rust | Self::Unknown => {
                "export a world of wit/v0.1, in Rust with `register_provider!` of cloudwit-guest-sdk"
            }
            Self::Go => {
                "export a world of wit/v0.1: give it to `wit-bindgen go` and to `wasm-tools component embed` with `--world`"
            }
            Self::JavaScript => "export a world of wit/v0.1: give it to componentize-js with `--world-name`",
            Self::Python => "export a world of wit/v0.1: give it to componentize-py with `--world`",
        }
    }

    /// How its components get smaller, so that they need less of the compiler.
    pub(crate) fn smaller(self) -> &'static str {
        match self {
            Self::Rust => "build it with `opt-level = \"s\"` and `lto = true`",
            Self::Go => "build it with `-ldflags=-s -w`, and with fewer packages",
            Self::JavaScript | Self::Python => "most of it is the language's runtime, so give the process more",
            Self::Unknown => "build it smaller",
        }
    }
}

/// Whether a component that was found invalid would be valid where asynchronous functions are supported.
pub(crate) fn is_asynchronous(component: &[u8]) -> bool {
    let mut validator = Validator::new_with_features(WasmFeatures::default() | WasmFeatures::CM_ASYNC);
    let valid = validator.validate_all(component).is_ok();
    let mut without = Validator::new_with_features(WasmFeatures::default() - WasmFeatures::CM_ASYNC);
    valid && without.validate_all(component).is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A custom section `producers` with one field.
    fn made_by(names: &[&str]) -> String {
        let text = |text: &str| format!("\\{:02x}{text}", text.len());
        let values: String = names
            .iter()
            .map(|name| format!("{}{}", text(name), text("1")))
            .collect();
        let field = format!("\\01{}\\{:02x}{values}", text("processed-by"), names.len());
        format!("(@custom \"producers\" \"{field}\")")
    }

    fn of(text: &str) -> Toolchain {
        Toolchain::of(&wat::parse_str(text).unwrap())
    }

    #[test]
    fn the_language_counts_and_not_what_its_runtime_is_written_in() {
        let rust = made_by(&["clang", "rustc"]);
        assert_eq!(of(&format!("(module {rust})")), Toolchain::Rust);
        assert_eq!(of(&format!("(component (core module {rust}))")), Toolchain::Rust);
        let python = made_by(&["wit-component", "component-init-transform"]);
        assert_eq!(
            of(&format!("(component (core module {rust}) {python})")),
            Toolchain::Python
        );
        assert_eq!(of("(component)"), Toolchain::Unknown);
    }

    #[test]
    fn a_file_that_makes_no_sense_has_no_toolchain() {
        assert_eq!(Toolchain::of(b""), Toolchain::Unknown);
        let mut cut = wat::parse_str(format!("(module {})", made_by(&["rustc"]))).unwrap();
        cut.truncate(cut.len() - 1);
        assert_eq!(Toolchain::of(&cut), Toolchain::Unknown);
        assert_eq!(
            Toolchain::of(b"\0asm\x0d\0\x01\0\xff\xff\xff\xff\x0f"),
            Toolchain::Unknown
        );
    }

    #[test]
    fn asynchronous_functions_are_distinguished_from_mistakes() {
        let asynchronous = wat::parse_str("(component (type (func async)))").unwrap();
        assert!(is_asynchronous(&asynchronous));
        assert!(!is_asynchronous(&wat::parse_str("(component (type (func)))").unwrap()));
        assert!(!is_asynchronous(b"\0asm\x0d\0\x01\0\xff"));
    }
}
