//! Links and commands in Markdown files, for the test that both still exist.

use std::path::Path;

/// Link targets inside the repository that lead nowhere. Links to the web are not looked at: tests reach loopback only.
pub fn broken_links(file: &Path, text: &str) -> Vec<String> {
    let folder = file.parent().unwrap_or(Path::new("."));
    let leads_nowhere = |target: &&str| {
        let path = target.split('#').next().unwrap_or_default();
        !target.contains("://") && !target.starts_with("mailto:") && !path.is_empty() && !folder.join(path).exists()
    };
    links(text)
        .into_iter()
        .filter(leads_nowhere)
        .map(str::to_owned)
        .collect()
}

/// The targets of all `[text](target)`.
fn links(text: &str) -> Vec<&str> {
    let starts = text.match_indices("](").map(|(at, _)| &text[at + 2..]);
    starts
        .filter_map(|rest| rest.split_once(')'))
        .map(|(target, _)| target.trim())
        .collect()
}

/// The commands of all `console` blocks: lines that begin with `$ `, with those that a backslash continues.
pub fn commands(text: &str) -> Vec<String> {
    let (mut commands, mut inside, mut continued) = (Vec::<String>::new(), false, false);
    for line in text.lines() {
        if let Some(language) = line.trim().strip_prefix("```") {
            inside = language == "console";
            continue;
        }
        let begin = line.trim().strip_prefix("$ ");
        if !inside || (begin.is_none() && !continued) {
            continue;
        }
        let part = begin.unwrap_or(line.trim());
        let body = part.trim_end_matches('\\').trim();
        match commands.last_mut().filter(|_| continued) {
            Some(command) => *command = format!("{command} {body}"),
            None => commands.push(body.to_owned()),
        }
        continued = part.ends_with('\\');
    }
    commands
}

/// The names of tests in a text: sentences in backticks, their words joined by underscores, at least five of them. Shorter ones are
/// functions and metrics.
pub fn test_names(text: &str) -> Vec<&str> {
    let is_sentence = |name: &&str| {
        let plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_';
        name.chars().all(plain) && name.matches('_').count() >= 4
    };
    text.lines()
        .flat_map(|line| line.split('`').skip(1).step_by(2))
        .filter(is_sentence)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_lead_nowhere_are_found() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
        let text = "[a](src/lib.rs#x) [b](https://example.com/x) [c](#x) [d](src/gone.rs)";
        assert_eq!(broken_links(&here, text), ["src/gone.rs"]);
    }

    #[test]
    fn tests_are_named_by_sentences() {
        let text = "`a_test_is_a_sentence` no_backticks_so_no_test `upstream_tests.rs`\n`node_controller_x_total`, `Test_A_B_C_D`";
        assert_eq!(test_names(text), ["a_test_is_a_sentence"]);
    }

    #[test]
    fn commands_come_with_the_lines_that_continue_them() {
        let text = "```console\n$ cargo run \\\n    --flag x\noutput\n$ ls\n```\n```sh\n$ no\n```\n$ no";
        assert_eq!(commands(text), ["cargo run --flag x", "ls"]);
    }
}
