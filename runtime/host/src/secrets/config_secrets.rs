//! Finds secrets inside a cloud config: `password = ...` and the like.
//!
//! Secrets belong into files that are granted (`keys`), but a cloud config that was taken over from upstream has them in its text, and a
//! provider quotes what it cannot read. What is found here is hidden by `redact` as well. The text may be git-config, YAML or JSON, and wrong in
//! any of them, so it is not parsed: a key is a word before `=` or `:`.

/// How the names of keys end whose values are secrets, without `-` and `_`.
const ENDINGS: [&str; 11] = [
    "password",
    "passwd",
    "pwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "accesskey",
    "secretkey",
    "privatekey",
    "credentials",
];

/// The values of single settings that are secrets by the names of their keys.
pub(crate) fn in_values(values: &[(String, String)]) -> Vec<(String, String)> {
    values.iter().filter(|(key, _)| is_secret(key)).cloned().collect()
}

/// Keys and values of the text that are secrets by the names of the keys. A value may be there in several forms.
pub(crate) fn in_text(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let lines: Vec<&str> = text.lines().collect();
    for (number, line) in lines.iter().enumerate() {
        for (at, _) in line.match_indices([':', '=']) {
            let Some(key) = key_before(&line[..at]).filter(|key| is_secret(key)) else {
                continue;
            };
            let value = line[at + 1..].trim();
            let values = if value.starts_with(['|', '>']) {
                block(&lines[number + 1..], indent(line))
            } else {
                forms(value)
            };
            found.extend(values.into_iter().map(|value| (key.to_owned(), value)));
        }
    }
    found
}

/// Whether a key is the name of a secret, by how it ends: `password`, `client_secret`, `Access-Token`.
pub fn is_secret(key: &str) -> bool {
    let key: String = key.chars().filter(|letter| letter.is_alphanumeric()).collect();
    let key = key.to_lowercase();
    ENDINGS.iter().any(|ending| key.ends_with(ending))
}

/// The word that the text ends with, without its quotes.
fn key_before(text: &str) -> Option<&str> {
    let text = text.trim_end().trim_end_matches(['"', '\'']);
    let in_word = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.');
    let start = text
        .char_indices()
        .rev()
        .take_while(|(_, letter)| in_word(*letter))
        .last()?
        .0;
    Some(&text[start..])
}

/// A value as it may be meant: quoted or not, to the end of the line or to where a list continues.
fn forms(value: &str) -> Vec<String> {
    if let Some(quote) = value.chars().next().filter(|first| matches!(first, '"' | '\'')) {
        let inner = &value[1..];
        let mut escaped = false;
        let end = inner.find(|letter| {
            let ends = letter == quote && !escaped;
            escaped = letter == '\\' && !escaped && quote == '"';
            ends
        });
        let inner = &inner[..end.unwrap_or(inner.len())];
        let meant = serde_json::from_str::<String>(&format!("\"{inner}\"")).ok();
        return [Some(inner.to_owned()), meant].into_iter().flatten().collect();
    }
    let without_comment = value.split([';', '#']).next().unwrap_or_default().trim();
    let in_list = value.split([',', '}', ']']).next().unwrap_or_default().trim();
    [value, without_comment, in_list].map(str::to_owned).into()
}

/// The lines of a YAML block below a key with this indentation.
fn block(lines: &[&str], below: usize) -> Vec<String> {
    let inside = |line: &&&str| line.trim().is_empty() || indent(line) > below;
    lines
        .iter()
        .take_while(inside)
        .map(|line| line.trim().to_owned())
        .collect()
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secrets::redact::Redactor;

    const CANARY: &str = "canary-7391-secret";

    fn hidden(config: &str, text: &str) -> String {
        let found = in_text(config);
        Redactor::new(found.iter().map(|(key, value)| (key.as_str(), value.as_bytes()))).redact(text.into())
    }

    #[test]
    fn password_is_found_in_any_format_even_malformed() {
        for config in [
            "[Global]\npassword = canary-7391-secret\n",
            "[Global]\nsecret-key=\"canary-7391-secret\" ; rotated\n",
            "global:\n  apiToken: canary-7391-secret # new\n",
            "global: {user: me, passwd: canary-7391-secret, port: x}",
            "  private_key: |\n    canary-7391-secret\n  port: 1\n",
            "{\"password\": \"canary-7391-secret\", \"port\": \"x\"",
            "{'token':'canary-7391-secret'}",
            "{\"url\": \"https://a:1\", \"client_secret\": \"canary-7391-secret\"}",
        ] {
            assert!(!hidden(config, CANARY).contains("canary"), "{config}");
        }
    }

    #[test]
    fn what_is_written_with_escapes_is_found_as_it_is_meant_too() {
        let config = r#"{"password": "cana\"ry-7391"}"#;
        assert_eq!(hidden(config, r#"denied: cana"ry-7391"#), "denied: [secret password]");
    }

    #[test]
    fn other_keys_are_left_alone() {
        let config = "user = canary-7391-secret\ntoken-file: /canary-7391-secret\nurl = https://x\n";
        assert_eq!(in_text(config), []);
        let values = [("apiKey", "a"), ("region", "b")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(in_values(&values), values[..1]);
    }
}
