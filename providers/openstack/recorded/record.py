"""Records the answers in this folder from the OpenStack of tests/openstack-cloud, which has to run and print where it is into a file:

    python tests/openstack-cloud/cloud.py > /tmp/cloud &        # with the packages of tests/python/openstack.txt
    python providers/openstack/recorded/record.py /tmp/cloud

Hosts and the token become names (nova.test, token-1); all else is as the services sent it. Ids differ each time: tests read them from here.
"""

import json
import re
import sys
import urllib.error
import urllib.request
import uuid
from pathlib import Path

HERE = Path(__file__).parent
CLOUD = dict(line.strip().split("=", 1) for line in open(sys.argv[1]) if re.match(r"[A-Z_]+=", line))
HOSTS = {CLOUD[name].removeprefix("http://"): f"{name.lower()}.test" for name in ("KEYSTONE", "NEUTRON", "NOVA", "OCTAVIA")}
KEYSTONE, NEUTRON, NOVA = CLOUD["KEYSTONE"], CLOUD["NEUTRON"], CLOUD["NOVA"]
TOKENS = {}


def send(method, url, body=None, token=None, headers=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json", **(headers or {})}, method=method)
    if token:
        request.add_header("x-auth-token", token)
    try:
        answer = urllib.request.urlopen(request)
    except urllib.error.HTTPError as error:
        answer = error
    return answer.status, dict(answer.headers), answer.read().decode()


def asked(method, url, body=None, token=None, headers=None):
    status, _, text = send(method, url, body, token, headers)
    if status >= 300:
        raise SystemExit(f"{method} {url}: {status} {text}")
    return json.loads(text) if text else None


def named(text):
    for host, name in HOSTS.items():
        text = text.replace(host, name)
    for token, name in TOKENS.items():
        text = text.replace(token, name)
    return text


def record(name, method, url, body=None, token=None, headers=None):
    status, _, text = send(method, url, body, token, headers)
    suffix = "json" if text.startswith("{") else "txt"
    about = f"# {status} to {method} {named(url)}" + (f" with {named(json.dumps(body))}" if body else "")
    (HERE / f"{name}.{suffix}").write_text(f"{about}\n{named(text)}\n")
    print(name, status)
    return json.loads(text) if suffix == "json" else text


def login(name, password, project, token_name):
    default = {"name": "Default"}
    identity = {"methods": ["password"], "password": {"user": {"name": name, "domain": default, "password": password}}}
    body = {"auth": {"identity": identity, "scope": {"project": {"name": project, "domain": default}}}}
    _, headers, _ = send("POST", f"{KEYSTONE}/v3/auth/tokens", body)
    token = next(value for key, value in headers.items() if key.lower() == "x-subject-token")
    TOKENS[token] = token_name
    return token, body


def main():
    admin, _ = login(CLOUD["ADMIN"], CLOUD["ADMIN_PASSWORD"], "admin", "token-admin")
    stage = lambda where, verb, what: asked("POST", f"{where}/_stage/{verb}", what)
    project = stage(KEYSTONE, "project", {"name": f"recorded-{admin[-8:]}"})
    TOKENS[project["password"]], TOKENS[project["name"]] = "password", "recorded"
    token, body = login(project["name"], project["password"], project["name"], "token-1")
    record("token", "POST", f"{KEYSTONE}/v3/auth/tokens", body)
    body["auth"]["identity"]["password"]["user"]["password"] = "wrong"
    record("credentials_refused", "POST", f"{KEYSTONE}/v3/auth/tokens", body)
    gone = {"methods": ["application_credential"], "application_credential": {"id": uuid.uuid4().hex, "secret": "wrong"}}
    record("credential_deleted", "POST", f"{KEYSTONE}/v3/auth/tokens", {"auth": {"identity": gone}})
    record("token_refused_by_nova", "GET", f"{NOVA}/v2.1/servers", token="expired")
    record("token_refused_by_neutron", "GET", f"{NEUTRON}/v2.0/ports", token="expired")

    public = next((n for n in asked("GET", f"{NEUTRON}/v2.0/networks?router:external=true", token=admin)["networks"]), None)
    if public is None:
        flat = {"provider:network_type": "flat", "provider:physical_network": "public", "router:external": True}
        public = asked("POST", f"{NEUTRON}/v2.0/networks", {"network": {"name": "public", **flat}}, admin)["network"]
        subnet = {"network_id": public["id"], "cidr": "172.24.0.0/16", "ip_version": 4, "enable_dhcp": False}
        asked("POST", f"{NEUTRON}/v2.0/subnets", {"subnet": subnet}, admin)
    owned = {"project_id": project["project"]}
    network = asked("POST", f"{NEUTRON}/v2.0/networks", {"network": {"name": "nodes", **owned}}, admin)["network"]
    subnet = {"network_id": network["id"], "cidr": "10.1.0.0/16", "ip_version": 4, **owned}
    subnet = asked("POST", f"{NEUTRON}/v2.0/subnets", {"subnet": subnet}, admin)["subnet"]
    router = asked("POST", f"{NEUTRON}/v2.0/routers", {"router": {"name": "router", **owned}}, admin)["router"]
    asked("PUT", f"{NEUTRON}/v2.0/routers/{router['id']}/add_router_interface", {"subnet_id": subnet["id"]}, admin)
    router = f"{NEUTRON}/v2.0/routers/{router['id']}"

    servers, ports = [], []
    more = [
        {},
        {"zone": "zone 1 (north)", "metadata": {"hostname": "two.example.com"}, "access_ipv4": "192.0.2.7"},
        {},
    ]
    for number, extra in enumerate(more, 1):
        port = asked("POST", f"{NEUTRON}/v2.0/ports", {"port": {"network_id": network["id"], **owned}}, admin)["port"]
        address = port["fixed_ips"][0]["ip_address"]
        nic = {"port": port["id"], "mac": port["mac_address"], "network": network["id"], "name": "nodes", "addresses": [address]}
        if number == 1:
            nic["floating"] = {address: "172.24.0.9"}
        server = {"name": f"node-{number}", "zone": "nova", "nics": [nic], **extra}
        stage(NOVA, "flavor", {"name": "m1.small"})
        made = {"project": project["project"], "user": project["user"], "flavor": "m1.small", "servers": [server]}
        servers.append(stage(NOVA, "servers", made)["servers"][0])
        owner = {"port": {"device_id": servers[-1], "device_owner": f"compute:{server['zone']}"}}
        asked("PUT", f"{NEUTRON}/v2.0/ports/{port['id']}", owner, admin)
        ports.append(port)
    stage(NOVA, "change", {"server": servers[1], "status": "SHUTOFF"})
    stage(NEUTRON, "port-status", {"ports": [port["id"] for port in ports], "status": "ACTIVE"})

    nova = {"X-OpenStack-Nova-API-Version": "2.47"}
    detail = f"{NOVA}/v2.1/servers/detail"
    page = record("servers_page_1", "GET", f"{detail}?limit=2", token=token, headers=nova)
    record("servers_page_2", "GET", f"{detail}?limit=2&marker={page['servers'][-1]['id']}", token=token, headers=nova)
    record("servers_by_name", "GET", f"{detail}?limit=500&name=%5Enode-3%24", token=token, headers=nova)
    record("server", "GET", f"{NOVA}/v2.1/servers/{servers[1]}", token=token, headers=nova)
    record("server_not_found", "GET", f"{NOVA}/v2.1/servers/00000000-0000-4000-8000-000000000000", token=token, headers=nova)
    record("flavors", "GET", f"{NOVA}/v2.1/flavors?is_public=None", token=token, headers=nova)
    record("servers_empty", "GET", f"{NOVA}/v2.1/servers?limit=1&name=none", token=token, headers=nova)

    fields = "&".join(f"fields={f}" for f in ("id", "device_id", "status", "network_id", "fixed_ips", "trunk_details"))
    devices = "&".join(f"device_id={server}" for server in servers)
    record("ports", "GET", f"{NEUTRON}/v2.0/ports?{devices}&{fields}&limit=1000", token=token)
    page = record("ports_page_1", "GET", f"{NEUTRON}/v2.0/ports?{fields}&limit=2", token=token)
    marker = page["ports"][-1]["id"]
    record("ports_page_2", "GET", f"{NEUTRON}/v2.0/ports?{fields}&limit=2&marker={marker}", token=token)
    record("networks", "GET", f"{NEUTRON}/v2.0/networks?id={network['id']}&fields=id&fields=name", token=token)

    record("extensions", "GET", f"{NEUTRON}/v2.0/extensions?fields=alias", token=token)
    hop = lambda number, port: {"destination": f"10.244.{number}.0/24", "nexthop": ports[port]["fixed_ips"][0]["ip_address"]}
    routes = lambda *hops: {"router": {"routes": list(hops)}}
    record("router_add", "PUT", f"{router}/add_extraroutes", routes(hop(1, 0), hop(2, 1)), token)
    record("router", "GET", router, token=token)
    record("router_remove", "PUT", f"{router}/remove_extraroutes", routes(hop(2, 1)), token)
    record("router_remove_again", "PUT", f"{router}/remove_extraroutes", routes(hop(2, 1)), token)
    far = {"destination": "10.244.9.0/24", "nexthop": "10.99.0.1"}
    record("router_add_far", "PUT", f"{router}/add_extraroutes", routes(far), token)
    record("router_replace", "PUT", router, routes(hop(1, 0)), token)
    record("router_replace_late", "PUT", router, routes(hop(3, 2)), token, {"if-match": "revision_number=1"})
    gone = f"{NEUTRON}/v2.0/routers/00000000-0000-4000-8000-000000000000"
    record("router_not_found", "GET", gone, token=token)
    record("router_ports", "GET", f"{NEUTRON}/v2.0/ports?device_id={router.rsplit('/')[-1]}&fields=id&fields=network_id", token=token)
    pair = {"port": {"allowed_address_pairs": [{"ip_address": "10.244.1.0/24"}]}}
    record("port_pairs", "PUT", f"{NEUTRON}/v2.0/ports/{ports[0]['id']}", pair, token)
    late = {"if-match": "revision_number=1"}
    record("port_pairs_late", "PUT", f"{NEUTRON}/v2.0/ports/{ports[0]['id']}", pair, token, late)
    record("port", "GET", f"{NEUTRON}/v2.0/ports/{ports[1]['id']}", token=token)
    guarded = "&".join(f"fields={f}" for f in ("id", "fixed_ips", "port_security_enabled", "allowed_address_pairs", "revision_number"))
    record("ports_guarded", "GET", f"{NEUTRON}/v2.0/ports?network_id={network['id']}&{guarded}&limit=1000", token=token)
    asked("PUT", f"{NEUTRON}/v2.0/quotas/{project['project']}", {"quota": {"network": 1}}, admin)
    record("quota", "POST", f"{NEUTRON}/v2.0/networks", {"network": {"name": "more"}}, token)


if __name__ == "__main__":
    main()
