//! The stand itself: what the cloud's services answer, and what a test can do to them.

use super::*;
use crate::clouds::openstack::servers::OpenStackServer;
use crate::clouds::openstack::volumes::HOST;
use crate::wait::eventually;

/// One request may wait for all that other tests ask of the same services.
const SOON: Duration = Duration::from_secs(300);

#[tokio::test]
async fn servers_are_seen_in_their_project_with_port_addresses() {
    let cloud = OpenStackCloud::shared().await;
    let (project, other) = (cloud.project().await.unwrap(), cloud.project().await.unwrap());
    let network = project.network("nodes", "10.1.0.0/16").await.unwrap();
    project.router(&[&network]).await.unwrap();
    let server = project.server(&network, "node-1").await.unwrap();
    let floating = project.floating_address(&server).await.unwrap();
    project
        .change_server(&server, json!({ "status": "SHUTOFF" }))
        .await
        .unwrap();

    let path = format!("/v2.1/servers/{}", server.id);
    let (_, seen) = project
        .ask(Service::Compute, Method::GET, &path, Value::Null)
        .await
        .unwrap();
    assert_eq!(text(&seen, "/server/status").unwrap(), "SHUTOFF");
    let addresses: Vec<_> = seen["server"]["addresses"]["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|at| at["addr"].clone())
        .collect();
    assert_eq!(addresses, [json!(server.address), json!(floating)]);
    let port = cloud
        .get(Service::Network, &format!("/v2.0/ports/{}", server.port))
        .await
        .unwrap();
    assert_eq!(
        (&port["port"]["status"], &port["port"]["device_id"]),
        (&json!("ACTIVE"), &json!(server.id))
    );
    let (status, _) = other
        .ask(Service::Compute, Method::GET, &path, Value::Null)
        .await
        .unwrap();
    assert_eq!(status, 404, "another project does not see it");

    project.delete_server(&server).await.unwrap();
    let (status, _) = project
        .ask(Service::Compute, Method::GET, &path, Value::Null)
        .await
        .unwrap();
    assert_eq!(status, 404);
    let calls = project.calls(Service::Compute).await.unwrap();
    assert_eq!(calls.iter().map(|call| call.status).collect::<Vec<_>>(), [200, 404]);
}

#[tokio::test]
async fn two_thousand_servers_come_in_pages_of_a_thousand() {
    let cloud = OpenStackCloud::shared().await;
    let project = cloud.project().await.unwrap();
    let network = project.network("nodes", "10.2.0.0/16").await.unwrap();
    let servers = project.servers(&network, "node", 2000).await.unwrap();
    let mut path = "/v2.1/servers/detail".to_owned();
    let mut pages = Vec::new();
    loop {
        let (_, page) = project
            .ask(Service::Compute, Method::GET, &path, Value::Null)
            .await
            .unwrap();
        pages.push(page["servers"].as_array().unwrap().clone());
        let Some(next) = page["servers_links"][0]["href"].as_str() else {
            break;
        };
        path = next.strip_prefix(cloud.url(Service::Compute)).unwrap().to_owned();
    }
    // A full page has a next one, and that may be empty.
    assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [1000, 1000, 0]);
    let last: &OpenStackServer = servers.last().unwrap();
    let seen = pages
        .iter()
        .flatten()
        .find(|server| server["id"] == json!(last.id))
        .unwrap();
    assert_eq!(
        (&seen["name"], &seen["addresses"]["nodes"][0]["addr"]),
        (&json!("node-1999"), &json!(last.address))
    );
    let ports = project.list(Service::Network, "/v2.0/ports", "ports").await.unwrap();
    let port = ports.iter().find(|port| port["device_id"] == json!(last.id)).unwrap();
    assert_eq!(port["fixed_ips"][0]["ip_address"], json!(last.address));
}

#[tokio::test]
async fn balancers_activate_fail_on_demand_and_free_their_port() {
    let cloud = OpenStackCloud::shared().await;
    let project = cloud.project().await.unwrap();
    let network = project.network("nodes", "10.3.0.0/16").await.unwrap();
    project.router(&[&network]).await.unwrap();
    let make = |name: &'static str| {
        let body = json!({ "loadbalancer": { "name": name, "vip_subnet_id": network.subnet } });
        project.ask(Service::LoadBalancer, Method::POST, "/v2.0/lbaas/loadbalancers", body)
    };
    project.pace(None).await.unwrap();
    let (status, made) = make("first").await.unwrap();
    assert_eq!(
        (status.as_u16(), &made["loadbalancer"]["provisioning_status"]),
        (201, &json!("PENDING_CREATE"))
    );
    let id = text(&made, "/loadbalancer/id").unwrap();
    let vip = text(&made, "/loadbalancer/vip_port_id").unwrap();
    let path = format!("/v2.0/lbaas/loadbalancers/{id}");
    let (status, _) = project
        .ask(Service::LoadBalancer, Method::DELETE, &path, Value::Null)
        .await
        .unwrap();
    assert_eq!(status, 409, "it is being made");
    project.pace(Some(0.1)).await.unwrap();
    let is = |status: &'static str| {
        let path = path.clone();
        eventually(SOON, "the load balancer gets there", move || {
            let path = path.clone();
            async move {
                cloud.get(Service::LoadBalancer, &path).await.unwrap()["loadbalancer"]["provisioning_status"] == status
            }
        })
    };
    is("ACTIVE").await;
    let public = &cloud.public_network().await.unwrap().id;
    let floating = json!({ "floatingip": { "floating_network_id": public, "port_id": vip } });
    let (status, floating) = project
        .ask(Service::Network, Method::POST, "/v2.0/floatingips", floating)
        .await
        .unwrap();
    assert_eq!(
        (status.as_u16(), &floating["floatingip"]["fixed_ip_address"]),
        (201, &made["loadbalancer"]["vip_address"])
    );

    project.fail_balancers(1).await.unwrap();
    let (_, second) = make("second").await.unwrap();
    let failed = text(&second, "/loadbalancer/id").unwrap();
    eventually(SOON, "the second fails", || async {
        let balancers = project.balancers().await.unwrap();
        balancers
            .iter()
            .any(|balancer| balancer["id"] == json!(failed) && balancer["provisioning_status"] == "ERROR")
    })
    .await;

    let (status, _) = project
        .ask(
            Service::LoadBalancer,
            Method::DELETE,
            &format!("{path}?cascade=true"),
            Value::Null,
        )
        .await
        .unwrap();
    assert_eq!(status, 204);
    eventually(SOON, "the load balancer goes", || async {
        project.balancers().await.unwrap().len() == 1
    })
    .await;
    project.vanish_balancer(&failed).await.unwrap();
    assert!(project.balancers().await.unwrap().is_empty());
    let (status, _) = cloud
        .ask(
            Service::Network,
            Method::GET,
            &format!("/v2.0/ports/{vip}"),
            Value::Null,
        )
        .await
        .unwrap();
    assert_eq!(status, 404);
}

#[tokio::test]
async fn revoked_tokens_are_refused_at_once_and_new_ones_are_good() {
    let cloud = OpenStackCloud::shared().await;
    let project = cloud.project().await.unwrap();
    let account = Account {
        name: project.name.clone(),
        password: project.password.clone(),
        project: project.name.clone(),
    };
    let old = cloud.token(&account).await.unwrap();
    let look = |token: String| async move {
        let (status, _) = cloud
            .ask_as(&token, Service::Network, Method::GET, "/v2.0/networks", Value::Null)
            .await
            .unwrap();
        status.as_u16()
    };
    assert_eq!(look(old.clone()).await, 200);
    project.revoke_tokens().await.unwrap();
    assert_eq!(look(old).await, 401);
    assert_eq!(look(cloud.token(&account).await.unwrap()).await, 200);
    project.token_lifetime(2).await.unwrap();
    let short = cloud.token(&account).await.unwrap();
    eventually(SOON, "the token is over", || async { look(short.clone()).await == 401 }).await;
}

#[tokio::test]
async fn another_region_leads_elsewhere_and_quotas_hold() {
    let cloud = OpenStackCloud::shared().await;
    let project = cloud.project().await.unwrap();
    cloud
        .region("elsewhere", &[(Service::Compute, "http://127.0.0.1:1")])
        .await
        .unwrap();
    let endpoints = cloud
        .get(Service::Identity, "/v3/endpoints?region_id=elsewhere")
        .await
        .unwrap()
        .to_string();
    assert!(endpoints.contains("http://127.0.0.1:1/v2.1"), "{endpoints}");
    assert!(endpoints.contains(cloud.url(Service::LoadBalancer)), "{endpoints}");

    project.quota(Service::Network, "floatingip", 0).await.unwrap();
    project.quota(Service::LoadBalancer, "load_balancer", 0).await.unwrap();
    let public = &cloud.public_network().await.unwrap().id;
    let floating = json!({ "floatingip": { "floating_network_id": public } });
    let (status, said) = project
        .ask(Service::Network, Method::POST, "/v2.0/floatingips", floating)
        .await
        .unwrap();
    assert_eq!(
        (status.as_u16(), &said["NeutronError"]["type"]),
        (409, &json!("OverQuota"))
    );
    let balancer = json!({ "loadbalancer": { "name": "one", "vip_network_id": public } });
    let (status, said) = project
        .ask(
            Service::LoadBalancer,
            Method::POST,
            "/v2.0/lbaas/loadbalancers",
            balancer,
        )
        .await
        .unwrap();
    assert_eq!(status, 403, "{said}");
}

#[tokio::test]
async fn the_sdk_of_openstack_finds_nothing_strange() {
    let cloud = OpenStackCloud::shared().await;
    let project = cloud.project().await.unwrap();
    let network = project.network("nodes", "10.4.0.0/16").await.unwrap();
    let router = project.router(&[&network]).await.unwrap();
    let on = json!({ "host": HOST });
    let server = project.server_with(&network, "node-1", on).await.unwrap();
    let public = &cloud.public_network().await.unwrap().id;
    let python = tokio::task::spawn_blocking(|| xtask::servers::openstack().unwrap().python())
        .await
        .unwrap();
    let walk = tokio::process::Command::new(python)
        .arg(xtask::workspace::root().join("tests/openstack-cloud/sdk_walk.py"))
        .args([
            &cloud.auth_url(),
            REGION,
            &project.name,
            &project.password,
            public,
            &server.id,
            &router,
        ])
        .output();
    let walk = walk.await.unwrap();
    let said = String::from_utf8_lossy(&walk.stdout);
    assert!(
        said.contains("WALKED"),
        "{said}{}",
        String::from_utf8_lossy(&walk.stderr)
    );
}

#[tokio::test]
async fn a_cloud_that_is_dropped_leaves_no_service_and_no_files() {
    let cloud = OpenStackCloud::start().await.unwrap();
    let folder = cloud.folder.clone();
    let ports = Service::ALL.map(|service| cloud.url(service).strip_prefix("http://").unwrap().to_owned());
    assert!(folder.join("neutron.db").is_file());
    assert!(ports.iter().all(|port| std::net::TcpStream::connect(port).is_ok()));
    drop(cloud);
    let left = || {
        let open = ports.iter().any(|port| std::net::TcpStream::connect(port).is_ok());
        std::future::ready(!open && !folder.exists())
    };
    eventually(SOON, "all of it is gone", left).await;
}
