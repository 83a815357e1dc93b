//! What an operator writes to have Cloudwit work on a cluster in [`moto`](crate::clouds::moto): the cloud config with upstream's keys, the grants and
//! the two secrets.

use anyhow::{Context, Result};

use crate::clouds::moto::{AwsCluster, Credentials, REGION};
use crate::scenes::deployment::{CloudFiles, Deployment};

/// The services that are called, by the names of upstream's `ServiceOverride`.
const SERVICES: [&str; 3] = ["EC2", "Elastic Load Balancing", "Elastic Load Balancing v2"];

/// The files for this cluster, with moto, or a gate in front of it, at `url`. The secrets are written beside the other files of the deployment.
///
/// # Errors
///
/// When the URL has no port or a secret cannot be written.
pub fn aws_files(cluster: &AwsCluster, url: &str, key: &Credentials, deployment: &Deployment) -> Result<CloudFiles> {
    let (_, port) = url.rsplit_once(':').with_context(|| format!("{url} has no port"))?;
    let access_key = deployment.write("access-key-id", &key.access_key)?;
    let secret_key = deployment.write("secret-access-key", &key.secret_key)?;
    // The key itself goes nowhere: the host signs with it.
    let secrets = format!(
        "    - {{name: access-key-id, file: {}, hosts: [\"127.0.0.1:{port}\"], uses: [placeholder]}}\n    \
         - {{name: secret-access-key, file: {}, uses: [hmac]}}\n",
        access_key.display(),
        secret_key.display()
    );
    let settings = format!(
        "grants:\n  cluster: {{nodes: true}}\n  http:\n    - {{scheme: http, host: 127.0.0.1, port: {port}, methods: [POST], allowLoopback: true}}\n  secrets:\n{secrets}"
    );
    Ok(CloudFiles {
        config: cloud_config(cluster, url),
        settings,
    })
}

/// The cloud config alone, which upstream's controller reads as well.
pub fn cloud_config(cluster: &AwsCluster, url: &str) -> String {
    let mut config = format!(
        "[Global]\nZone = {REGION}a\nVPC = {}\nSubnetID = {}\nRouteTableID = {}\nKubernetesClusterID = {}\n",
        cluster.vpc, cluster.subnets[0].id, cluster.route_table, cluster.name
    );
    for (number, service) in SERVICES.into_iter().enumerate() {
        config += &format!(
            "\n[ServiceOverride \"{number}\"]\nService = {service}\nRegion = {REGION}\nURL = {url}\nSigningRegion = {REGION}\n"
        );
    }
    config
}
