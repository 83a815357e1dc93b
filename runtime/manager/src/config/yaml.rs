//! YAML reader whose errors quote nothing of the file.
//!
//! A cloud config inside a configuration file, a token in a kubeconfig: a line beside the mistake may be a secret. The parser's own messages
//! show such lines.

use serde::Deserialize;

/// Reads a document. The error names line and column.
pub fn read<'text, T: Deserialize<'text>>(text: &'text str) -> Result<T, String> {
    serde_saphyr::from_str(text).map_err(|error| without_quotes(&error))
}

/// What the error says without the lines of the file.
pub fn without_quotes(error: &serde_saphyr::Error) -> String {
    error.without_snippet().to_string()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn an_error_has_a_place_and_no_line_of_the_file() {
        for wrong in [
            "a: 1\npassword: canary-7391\n b: [",
            "password: 'canary-7391",
            "password: \"\\q canary-7391\"",
            "- canary-7391",
            "a: x\npassword: [canary-7391]",
        ] {
            let error = read::<BTreeMap<String, u16>>(wrong).unwrap_err();
            assert!(error.contains("line"), "{error}");
            assert!(!error.contains("canary"), "{error}");
        }
    }
}
