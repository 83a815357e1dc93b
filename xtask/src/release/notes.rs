//! Notes of a release: the section of its version in the changelog.

use anyhow::{Result, bail};

/// The section of what is not released yet.
pub const UNRELEASED: &str = "Unreleased";

/// The section with this heading, `## 1.2.0 - 2026-01-31` or `## [1.2.0]` for `1.2.0`, without the heading.
///
/// # Errors
///
/// When there is none, or nothing in it; says what to write.
pub fn section(changelog: &str, heading: &str) -> Result<String> {
    let is_wanted = |line: &&str| title(line).is_some_and(|title| title == heading);
    let behind = changelog.lines().skip_while(|line| !is_wanted(line)).skip(1);
    let lines: Vec<&str> = behind.take_while(|line| title(line).is_none()).collect();
    let text = lines.join("\n");
    match text.trim() {
        "" => bail!(
            "CHANGELOG.md says nothing of {heading}: put `## {heading} - YYYY-MM-DD` below `## {UNRELEASED}`, before what is new in it; --draft takes \
             what stands under `## {UNRELEASED}`"
        ),
        text => Ok(format!("{text}\n")),
    }
}

/// The version that a heading of the second level names.
fn title(line: &str) -> Option<&str> {
    let word = line.strip_prefix("## ")?.split_whitespace().next()?;
    Some(word.trim_start_matches('[').trim_end_matches(']'))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::workspace;

    const CHANGELOG: &str = "# Changelog\n\nWords.\n\n## Unreleased\n\n### Added\n- New.\n\n## [1.1.0] - 2026-02-01\n\n### Fixed\n- Old.\n\n\
                             ## 1.0.0 - 2026-01-01\n\n- First.\n\n## 0.9.0\n";

    #[test]
    fn a_section_ends_where_the_next_version_begins() {
        assert_eq!(section(CHANGELOG, UNRELEASED).unwrap(), "### Added\n- New.\n");
        assert_eq!(section(CHANGELOG, "1.1.0").unwrap(), "### Fixed\n- Old.\n");
        assert_eq!(section(CHANGELOG, "1.0.0").unwrap(), "- First.\n");
    }

    #[test]
    fn a_version_without_notes_is_refused_with_the_heading_to_write() {
        for version in ["1.1", "2.0.0", "0.9.0"] {
            let refused = section(CHANGELOG, version).unwrap_err().to_string();
            assert!(refused.contains(&format!("put `## {version} - ")), "{refused}");
        }
    }

    #[test]
    fn our_changelog_has_a_section_for_what_is_new() {
        let changelog = fs::read_to_string(workspace::root().join("CHANGELOG.md")).unwrap();
        assert!(title(changelog.lines().find(|line| line.starts_with("## ")).unwrap()) == Some(UNRELEASED));
    }
}
