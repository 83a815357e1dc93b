//! `--version`, and the version in metrics.

/// The version of this binary.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The upstream whose flags, names and behaviour hold here.
pub const UPSTREAM: &str = "v1.37.2";

/// Which version this is.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Version")]
pub struct VersionArgs {
    /// Print the version and exit; `raw` prints all details.
    #[arg(long, value_name = "true|false|raw", default_value = "false", action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub version: String,
}

impl VersionArgs {
    /// What to print instead of running, if that is requested.
    pub fn text(&self) -> Result<Option<String>, String> {
        match self.version.as_str() {
            "raw" => Ok(Some(format!(
                "cloudwit {VERSION}\nflags and behaviour: kubernetes/cloud-provider {UPSTREAM}\ncontract: cloudwit:provider@0.1\n\
                 platform: {}/{}\n",
                std::env::consts::OS,
                std::env::consts::ARCH
            ))),
            text => match crate::flags::values::go::boolean(text) {
                Ok(true) => Ok(Some(format!("cloudwit {VERSION}\n"))),
                Ok(false) => Ok(None),
                Err(_) => Err(format!(
                    "--version={text}: this binary has version {VERSION}; --version takes true, false or raw: write --version or --version=raw"
                )),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_reported_and_not_overridden() {
        let of = |version: &str| {
            VersionArgs {
                version: version.into(),
            }
            .text()
        };
        assert_eq!(of("false"), Ok(None));
        assert_eq!(of("true"), Ok(Some(format!("cloudwit {VERSION}\n"))));
        assert!(of("raw").unwrap().unwrap().contains(UPSTREAM));
        assert!(of("v9.9.9").unwrap_err().contains("takes true, false or raw"));
    }
}
