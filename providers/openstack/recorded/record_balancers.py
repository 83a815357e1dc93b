"""Records what Octavia and Neutron answer about load balancers; run like record.py:

    python providers/openstack/recorded/record_balancers.py /tmp/cloud

The load balancer is made with the names, tags and fields that upstream's provider gives it, so it is also what a migration finds.
"""

import time

from record import CLOUD, KEYSTONE, NEUTRON, NOVA, TOKENS, asked, login, record

OCTAVIA = CLOUD["OCTAVIA"]
LBAAS = f"{OCTAVIA}/v2.0/lbaas"
NAME = "kube_service_kubernetes_default_web"


def upstream(subnet, address):
    """What cloud-provider-openstack v1.34 posts for a Service with one TCP port, health monitors and externalTrafficPolicy Local."""
    monitor = {"name": f"monitor_0_{NAME}", "type": "HTTP", "delay": 5, "timeout": 3, "max_retries": 1, "max_retries_down": 3}
    monitor |= {"url_path": "/healthz", "http_method": "GET", "expected_codes": "200"}
    member = {"name": "node-1", "address": address, "protocol_port": 30080, "monitor_port": 31000, "subnet_id": subnet}
    pool = {"name": f"pool_0_{NAME}", "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN", "members": [member], "healthmonitor": monitor}
    listener = {"name": f"listener_0_{NAME}", "protocol": "TCP", "protocol_port": 80, "connection_limit": -1, "tags": [NAME]}
    listener |= {"timeout_client_data": 50000, "timeout_member_connect": 5000, "timeout_member_data": 50000, "timeout_tcp_inspect": 0}
    listener |= {"allowed_cidrs": ["0.0.0.0/0"], "default_pool": pool}
    about = "Kubernetes external service default/web from cluster kubernetes"
    return {"name": NAME, "description": about, "provider": "amphora", "vip_subnet_id": subnet, "tags": [NAME], "listeners": [listener]}


def settled(url, token):
    for _ in range(100):
        balancer = asked("GET", url, token=token)["loadbalancer"]
        if balancer["provisioning_status"] == "ACTIVE":
            return balancer
        time.sleep(0.2)
    raise SystemExit(f"{url} does not become ACTIVE")


def main():
    admin, _ = login(CLOUD["ADMIN"], CLOUD["ADMIN_PASSWORD"], "admin", "token-admin")
    stage = lambda where, verb, what: asked("POST", f"{where}/_stage/{verb}", what)
    project = stage(KEYSTONE, "project", {"name": f"recorded-lb-{admin[-8:]}"})
    TOKENS[project["password"]], TOKENS[project["name"]] = "password", "recorded"
    token, _ = login(project["name"], project["password"], project["name"], "token-1")
    owned = {"project_id": project["project"]}
    found = asked("GET", f"{NEUTRON}/v2.0/networks?router:external=true", token=admin)["networks"]
    if not found:
        flat = {"provider:network_type": "flat", "provider:physical_network": "public", "router:external": True}
        found = [asked("POST", f"{NEUTRON}/v2.0/networks", {"network": {"name": "public", **flat}}, admin)["network"]]
        subnet = {"network_id": found[0]["id"], "name": "public-subnet", "cidr": "172.24.0.0/16", "ip_version": 4, "enable_dhcp": False}
        asked("POST", f"{NEUTRON}/v2.0/subnets", {"subnet": subnet}, admin)
    public = found[0]["id"]
    network = asked("POST", f"{NEUTRON}/v2.0/networks", {"network": {"name": "nodes", **owned}}, admin)["network"]
    subnet = {"network_id": network["id"], "cidr": "10.1.0.0/16", "ip_version": 4, **owned}
    subnet = asked("POST", f"{NEUTRON}/v2.0/subnets", {"subnet": subnet}, admin)["subnet"]["id"]
    gateway = {"network_id": public}
    router = asked("POST", f"{NEUTRON}/v2.0/routers", {"router": {"name": "r", "external_gateway_info": gateway, **owned}}, admin)["router"]
    asked("PUT", f"{NEUTRON}/v2.0/routers/{router['id']}/add_router_interface", {"subnet_id": subnet}, admin)
    port = asked("POST", f"{NEUTRON}/v2.0/ports", {"port": {"network_id": network["id"], **owned}}, admin)["port"]
    address = port["fixed_ips"][0]["ip_address"]
    stage(NOVA, "flavor", {"name": "m1.small"})
    nic = {"port": port["id"], "mac": port["mac_address"], "network": network["id"], "name": "nodes", "addresses": [address]}
    made = {"project": project["project"], "user": project["user"], "flavor": "m1.small", "servers": [{"name": "node-1", "zone": "nova", "nics": [nic]}]}
    server = stage(NOVA, "servers", made)["servers"][0]
    asked("PUT", f"{NEUTRON}/v2.0/ports/{port['id']}", {"port": {"device_id": server, "device_owner": "compute:nova"}}, admin)

    record("octavia_versions", "GET", f"{OCTAVIA}/", token=token)
    balancer = record("balancer_created", "POST", f"{LBAAS}/loadbalancers", {"loadbalancer": upstream(subnet, address)}, token)["loadbalancer"]
    url = f"{LBAAS}/loadbalancers/{balancer['id']}"
    record("balancer_pending", "GET", url, token=token)
    record("balancer_busy", "PUT", url, {"loadbalancer": {"tags": []}}, token)
    listener = {"name": "l", "protocol": "TCP", "protocol_port": 81, "loadbalancer_id": balancer["id"]}
    record("listener_busy", "POST", f"{LBAAS}/listeners", {"listener": listener}, token)
    balancer = settled(url, token)
    record("balancer", "GET", url, token=token)
    record("balancers_named", "GET", f"{LBAAS}/loadbalancers?name={NAME}", token=token)
    record("listeners", "GET", f"{LBAAS}/listeners?loadbalancer_id={balancer['id']}", token=token)
    pool = record("pools", "GET", f"{LBAAS}/pools?loadbalancer_id={balancer['id']}", token=token)["pools"][0]
    record("members", "GET", f"{LBAAS}/pools/{pool['id']}/members", token=token)
    record("monitor", "GET", f"{LBAAS}/healthmonitors/{pool['healthmonitor_id']}", token=token)
    listener |= {"protocol_port": 80, "protocol": "HTTP"}
    record("listener_port_taken", "POST", f"{LBAAS}/listeners", {"listener": listener}, token)
    record("balancer_not_found", "GET", f"{LBAAS}/loadbalancers/{network['id']}", token=token)
    asked("PUT", f"{LBAAS}/quotas/{project['project']}", {"quota": {"load_balancer": 1}}, admin)
    record("balancer_quota", "POST", f"{LBAAS}/loadbalancers", {"loadbalancer": {"vip_subnet_id": subnet}}, token)

    record("networks_external", "GET", f"{NEUTRON}/v2.0/networks?router%3Aexternal=true", token=token)
    record("subnets_external", "GET", f"{NEUTRON}/v2.0/subnets?network_id={public}&ip_version=4", token=token)
    record("floating_ips_none", "GET", f"{NEUTRON}/v2.0/floatingips?port_id={balancer['vip_port_id']}", token=token)
    about = "Floating IP for Kubernetes external service default/web from cluster kubernetes"
    floating = {"floating_network_id": public, "port_id": balancer["vip_port_id"], "description": about}
    record("floating_ip_created", "POST", f"{NEUTRON}/v2.0/floatingips", {"floatingip": floating}, token)
    record("floating_ips", "GET", f"{NEUTRON}/v2.0/floatingips?port_id={balancer['vip_port_id']}", token=token)
    asked("PUT", f"{NEUTRON}/v2.0/quotas/{project['project']}", {"quota": {"floatingip": 1}}, admin)
    del floating["port_id"]
    record("floating_ip_quota", "POST", f"{NEUTRON}/v2.0/floatingips", {"floatingip": floating}, token)
    group = asked("POST", f"{NEUTRON}/v2.0/security-groups", {"security_group": {"name": "lb-sg-u-1-default-web"}}, token)["security_group"]
    rule = {"security_group_id": group["id"], "direction": "ingress", "ethertype": "IPv4", "protocol": "tcp"}
    rule |= {"port_range_min": 30080, "port_range_max": 30080, "remote_ip_prefix": "10.1.0.0/16"}
    asked("POST", f"{NEUTRON}/v2.0/security-group-rules", {"security_group_rule": rule}, token)
    record("security_group_rule_exists", "POST", f"{NEUTRON}/v2.0/security-group-rules", {"security_group_rule": rule}, token)
    record("security_groups", "GET", f"{NEUTRON}/v2.0/security-groups?name=lb-sg-u-1-default-web", token=token)
    record("security_groups_none", "GET", f"{NEUTRON}/v2.0/security-groups?name=none", token=token)
    asked("PUT", f"{NEUTRON}/v2.0/ports/{port['id']}", {"port": {"security_groups": [group["id"]]}}, token)
    record("ports_of_group", "GET", f"{NEUTRON}/v2.0/ports?security_groups={group['id']}", token=token)


if __name__ == "__main__":
    main()
