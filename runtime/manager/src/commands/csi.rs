//! `cloudwit csi`: a provider's volumes as a CSI driver, without Kubernetes.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::bail;
use cloudwit_csi::{Driver, Metrics, server};
use cloudwit_host::Host;
use cloudwit_model::Cloud as _;
use prometheus_client::registry::Registry;

use crate::commands::cluster::Cluster;
use crate::commands::provider::source::{self, SourceArgs};
use crate::providers::{csi, host};

/// Arguments of `csi`.
#[derive(Debug, clap::Args)]
pub struct CsiArgs {
    #[command(flatten)]
    source: SourceArgs,

    /// The unix socket to listen on.
    #[arg(long, value_name = "FILE", value_parser = endpoint)]
    endpoint: PathBuf,

    /// Name of the driver, in place of the one that the provider gives.
    #[arg(long, value_name = "NAME", value_parser = driver_name)]
    driver_name: Option<String>,

    /// Where compiled components are kept between starts; must belong to this process alone. Without it each start compiles.
    #[arg(id = "csi_cache_dir", long = "cache-dir", value_name = "DIR")]
    cache_dir: Option<PathBuf>,
}

/// A path, or upstream's `unix:///path`.
pub fn endpoint(text: &str) -> Result<PathBuf, String> {
    let path = text.strip_prefix("unix://").unwrap_or(text);
    if path.is_empty() || path.contains("://") {
        return Err("write the path of a unix socket, such as /csi/csi.sock or unix:///csi/csi.sock".to_owned());
    }
    Ok(PathBuf::from(path))
}

/// The name of a driver.
pub fn driver_name(text: &str) -> Result<String, String> {
    csi::wrong_name(text).map_or_else(|| Ok(text.to_owned()), Err)
}

/// Serves until it is stopped.
pub async fn run(args: CsiArgs) -> anyhow::Result<ExitCode> {
    let from = args.source.read()?;
    let no_cluster = Arc::new(Cluster::default()).outside();
    let mut registry = Registry::default();
    let file = from.component.file(args.cache_dir.as_deref()).await?;
    let host = Host::new(host::on_this_system(args.cache_dir), &mut registry)?;
    let provider = host.load(&file, from.settings.clone(), no_cluster).await?;
    source::insist_on_soundness(&provider, &from).await?;
    if !provider.abilities().volumes.basic {
        bail!(
            "provider {:?} does not export volumes; `cloudwit inspect {}` shows what it does",
            from.settings.name,
            from.component
        );
    }
    let name = args.driver_name.or(from.csi_driver_name);
    let metrics = Metrics::register(&mut registry);
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let driver = Driver::new(Arc::new(provider), name, version, metrics).await?;
    eprintln!("serving {} on {}", driver.name, args.endpoint.display());
    // The signal ends the process; a socket that is left behind is taken over by the next one.
    server::serve(driver, &args.endpoint, std::future::pending()).await?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoint_is_a_path_in_either_form() {
        for text in ["/csi/csi.sock", "unix:///csi/csi.sock"] {
            assert_eq!(endpoint(text), Ok(PathBuf::from("/csi/csi.sock")));
        }
        assert_eq!(endpoint("csi.sock"), Ok(PathBuf::from("csi.sock")));
        for wrong in ["", "unix://", "tcp://127.0.0.1:1"] {
            assert!(endpoint(wrong).is_err(), "{wrong:?}");
        }
    }
}
