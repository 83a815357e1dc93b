//! An OpenStack to try things on, until Ctrl-C: `cargo run -p cloudwit-test-support --example openstack-cloud`.
//!
//! Makes a project with a network, a router and three servers, and prints what a cloud.conf and the client `openstack` need.

use anyhow::Result;
use cloudwit_test_support::clouds::openstack::{OpenStackCloud, REGION};

#[tokio::main]
async fn main() -> Result<()> {
    let cloud = OpenStackCloud::start().await?;
    let project = cloud.project().await?;
    let credential = project.application_credential("cloudwit").await?;
    let network = project.network("nodes", "10.0.0.0/16").await?;
    let router = project.router(&[&network]).await?;
    println!("[Global]");
    println!("auth-url = {}", cloud.auth_url());
    println!("region = {REGION}");
    println!("application-credential-id = {}", credential.id);
    println!("application-credential-secret = {}", credential.secret);
    println!("[Route]");
    println!("router-id = {router}");
    println!();
    for name in ["node-1", "node-2", "node-3"] {
        let server = project.server(&network, name).await?;
        println!("# {name}: {} {}", server.provider_id(), server.address);
    }
    println!("# network nodes: {}, subnet {}", network.id, network.subnet);
    println!("# public network: {}", cloud.public_network().await?.id);
    println!("export OS_AUTH_URL={} OS_REGION_NAME={REGION}", cloud.auth_url());
    println!("export OS_USERNAME={} OS_PASSWORD={}", project.name, project.password);
    println!(
        "export OS_PROJECT_NAME={} OS_USER_DOMAIN_NAME=Default OS_PROJECT_DOMAIN_NAME=Default",
        project.name
    );
    tokio::signal::ctrl_c().await?;
    Ok(())
}
