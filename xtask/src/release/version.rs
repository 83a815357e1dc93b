//! The version of a release: that of the workspace, and what has to say the same.

use anyhow::{Context, Result, bail};

/// The version of all that is released, from the workspace's `Cargo.toml`.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Where the chart has its own version, and that of the image it installs.
pub const CHART: &str = "deploy/chart/Chart.yaml";

/// Checks that the chart, whose `Chart.yaml` this is, has this version and installs it.
///
/// # Errors
///
/// When it has another one; names the lines to write.
pub fn check_chart(chart: &str, version: &str) -> Result<()> {
    for key in ["version", "appVersion"] {
        let found = field(chart, key).with_context(|| format!("{CHART} has no {key}; add `{key}: {version}`"))?;
        if found != version {
            bail!(
                "{CHART} has `{key}: {found}`, and Cargo.toml the version {version}; write `{key}: {version}`, then run `cargo xtask manifests`"
            );
        }
    }
    Ok(())
}

/// The value of a key at the beginning of a line.
fn field<'a>(yaml: &'a str, key: &str) -> Option<&'a str> {
    let value = yaml
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    Some(value.trim().trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::workspace;

    #[test]
    fn chart_has_the_version_of_the_workspace() {
        let chart = fs::read_to_string(workspace::root().join(CHART)).unwrap();
        check_chart(&chart, VERSION).unwrap();
    }

    #[test]
    fn chart_of_another_version_is_refused_with_the_line_to_write() {
        let chart = |version: &str, app: &str| format!("name: cloudwit\nversion: {version}\nappVersion: {app}\n");
        assert!(check_chart(&chart("1.2.0", "\"1.2.0\""), "1.2.0").is_ok());
        let refused = |chart: &str| check_chart(chart, "1.2.0").unwrap_err().to_string();
        assert!(refused(&chart("1.1.0", "1.2.0")).contains("write `version: 1.2.0`"));
        assert!(refused(&chart("1.2.0", "1.1.0")).contains("write `appVersion: 1.2.0`"));
        assert!(refused("name: cloudwit\nversion: 1.2.0\n").contains("add `appVersion: 1.2.0`"));
    }
}
