//! `cloudwit cloud clusters`: the clusters that the cloud itself manages.

use std::fmt::Write as _;
use std::process::ExitCode;

use cloudwit_model::{KnownCluster, KnownClusters as _};
use serde_json::json;

use crate::commands::cloud::out::OutArgs;
use crate::commands::cloud::session::{self, SessionArgs};
use crate::commands::explain::Output;

/// Arguments of `cloud clusters`.
#[derive(Debug, clap::Args)]
pub struct ClustersArgs {
    #[command(flatten)]
    session: SessionArgs,

    /// A table, or JSON for programs.
    #[arg(id = "clusters_output", long = "output", short = 'o', value_enum, value_name = "FORMAT", default_value_t = Output::Text)]
    output: Output,

    #[command(flatten)]
    out: OutArgs,
}

/// Calls, and writes the answer.
pub async fn run(args: ClustersArgs) -> anyhow::Result<ExitCode> {
    let session = match session::begin(&args.session, ("clusters", |has| has.clusters)).await? {
        Ok(session) => session,
        Err(ended) => return Ok(ended.exit()),
    };
    let asked = session.ask("listing clusters", |_| session.provider.known_clusters());
    let clusters = match asked.await {
        Ok(clusters) => clusters,
        Err(ended) => return Ok(ended.exit()),
    };
    if clusters.is_empty() && args.output == Output::Text {
        eprintln!("the cloud has no clusters");
    }
    args.out.put(&written(&clusters, args.output))?;
    Ok(ExitCode::SUCCESS)
}

fn written(clusters: &[KnownCluster], output: Output) -> String {
    match output {
        Output::Json => {
            let one = |cluster: &KnownCluster| json!({"name": cluster.name, "controlPlane": cluster.address()});
            let all: Vec<_> = clusters.iter().map(one).collect();
            format!("{:#}\n", json!(all))
        }
        Output::Text if clusters.is_empty() => String::new(),
        Output::Text => {
            let names = clusters.iter().map(|cluster| cluster.name.chars().count());
            let width = names.max().unwrap_or_default().max("NAME".len());
            let mut text = format!("{:<width$}  CONTROL PLANE\n", "NAME");
            for cluster in clusters {
                let at = cluster.address().unwrap_or_else(|| "-".to_owned());
                let _ = writeln!(text, "{:<width$}  {at}", cluster.name);
            }
            text
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_and_json_have_all() {
        let cluster = |name: &str, host: Option<&str>| KnownCluster {
            name: name.into(),
            host: host.map(str::to_owned),
            port: 443,
        };
        let clusters = [cluster("production", Some("203.0.113.7")), cluster("new", None)];
        assert_eq!(
            written(&clusters, Output::Text),
            "NAME        CONTROL PLANE\nproduction  203.0.113.7:443\nnew         -\n"
        );
        let read: serde_json::Value = serde_json::from_str(&written(&clusters, Output::Json)).unwrap();
        assert_eq!(read[0]["controlPlane"], "203.0.113.7:443");
        assert!(read[1]["controlPlane"].is_null());
        assert_eq!(written(&[], Output::Text), "");
        assert_eq!(written(&[], Output::Json), "[]\n");
    }
}
