//! What an operator writes to have Cloudwit work in a project of an [OpenStack](crate::clouds::openstack): the cloud config with
//! upstream's keys, the grants and the password.

use anyhow::{Context, Result};

use crate::clouds::openstack::project::{OpenStackNetwork, OpenStackProject};
use crate::clouds::openstack::{REGION, Service};
use crate::scenes::deployment::{CloudFiles, Deployment};

/// The files for servers in this network behind this router. Load balancers get floating addresses of the public network. The password is written
/// beside the other files of the deployment.
///
/// # Errors
///
/// When the cloud does not answer or the password cannot be written.
pub async fn openstack_files(
    project: &OpenStackProject<'_>,
    network: &OpenStackNetwork,
    router: &str,
    deployment: &Deployment,
) -> Result<CloudFiles> {
    let public = project.cloud.public_network().await?;
    let config = format!(
        "[Global]\nauth-url = {}\nusername = {name}\ntenant-name = {name}\ndomain-name = Default\nregion = {REGION}\n\n\
         [LoadBalancer]\nsubnet-id = {}\nfloating-network-id = {}\n\n[Route]\nrouter-id = {router}\n",
        project.cloud.auth_url(),
        network.subnet,
        public.id,
        name = project.name
    );
    let mut grants = String::new();
    for service in Service::ALL {
        let port = port(project.cloud.url(service))?;
        grants += &format!("    - {{scheme: http, host: 127.0.0.1, port: {port}, allowLoopback: true}}\n");
    }
    let password = deployment.write("password", &project.password)?;
    let keystone = port(project.cloud.url(Service::Identity))?;
    let settings = format!(
        "grants:\n  cluster: {{nodes: true, services: true}}\n  http:\n{grants}  secrets:\n    \
         - {{name: password, file: {}, hosts: [\"127.0.0.1:{keystone}\"], uses: [placeholder]}}\n",
        password.display()
    );
    Ok(CloudFiles { config, settings })
}

fn port(url: &str) -> Result<&str> {
    Ok(url.rsplit_once(':').with_context(|| format!("{url} has no port"))?.1)
}
