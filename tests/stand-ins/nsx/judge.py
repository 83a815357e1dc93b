"""VMware's own client works against the stand-in: `python -m nsx.judge URL` says as JSON what it saw, `python -m nsx.judge URL shown` what there is, `search QUERY` what
a search finds, and `python -m nsx.judge URL leave JSON` makes what upstream's controller makes for a Service or a Node, under ids of its own."""

import json
import sys
import time
import urllib.request
import uuid

import requests
import vcf.nsx.model_client as model
from vcf.nsx.policy.api.v1 import infra_client, search_client
from vcf.nsx.policy.api.v1.infra import ip_pools_client, realized_state_client, tier_1s_client
from vmware.vapi.lib.connect import get_requests_connector
from vmware.vapi.security.oauth import create_oauth_security_context
from vmware.vapi.security.user_password import create_user_password_security_context
from vmware.vapi.stdlib.client.factories import StubConfigurationFactory

OWNER = "vsphere-cloud-controller-manager"


def control(url, what, **arguments):
    request = urllib.request.Request(f"{url}/test/do/{what}", json.dumps(arguments).encode(), method="POST")
    with urllib.request.urlopen(request) as answer:
        return json.load(answer).get("result")


class Client:
    last = None
    """The last answer of any."""

    def __init__(self, url, account, how="session"):
        session = requests.Session()
        session.headers["user-agent"] = "vcf-nsx"
        session.hooks["response"].append(lambda answer, *_, **__: setattr(Client, "last", answer))
        connector = get_requests_connector(session=session, msg_protocol="rest", url=url)
        match how:
            case "session":
                self.logged_in = session.post(f"{url}/api/session/create", data={"j_username": account["user"], "j_password": account["password"]})
                session.headers["X-XSRF-TOKEN"] = self.logged_in.headers["X-XSRF-TOKEN"]
                # The cookie is for TLS alone, and this is none.
                session.headers["Cookie"] = self.logged_in.headers["Set-Cookie"].split(";")[0]
            case "token":
                form = {"refresh_token": account["refresh"]}
                token = session.post(f"{url}/csp/gateway/am/api/auth/api-tokens/authorize", data=form).json()["access_token"]
                connector.set_security_context(create_oauth_security_context(token))
            case _:
                connector.set_security_context(create_user_password_security_context(account["user"], how))
        config = StubConfigurationFactory.new_std_configuration(connector)
        self.servers = infra_client.LbVirtualServers(config)
        self.balancers = infra_client.LbServices(config)
        self.pools = infra_client.LbPools(config)
        self.monitors = infra_client.LbMonitorProfiles(config)
        self.profiles = infra_client.LbAppProfiles(config)
        self.allocations = ip_pools_client.IpAllocations(config)
        self.realized = realized_state_client.RealizedEntities(config)
        self.routes = tier_1s_client.StaticRoutes(config)
        self.query = search_client.Query(config)

    def pages(self, list, *arguments, **more):
        found, cursor = [], None
        while True:
            page = list(*arguments, cursor=cursor, **more)
            found += page.results
            cursor = page.cursor
            if not cursor:
                return found, page.result_count

    def until_realized(self, path):
        """As upstream's controller: it asks again and again."""
        for _ in range(100):
            for entity in self.realized.policy_lm_list_realized_entities(path).results:
                if entity.state != "UNREALIZED":
                    return entity
            time.sleep(0.05)
        raise TimeoutError(path)


def tags(**scopes):
    return [model.Tag(scope=scope, tag=tag) for scope, tag in sorted(scopes.items())]


def refused(call):
    """What the client makes of it, and what the answer was: it keeps no more of it than its type."""
    try:
        call()
    except Exception as error:  # whatever it is, it is what is looked at
        said = Client.last.json()
        return [type(error).__name__, Client.last.status_code, said.get("error_code")]
    return None


def balancer(api, cluster, service, port, node_port, members, pool="public-pool", lb_class="default", gateway="/infra/tier-1s/t1"):
    """All of a Service with one TCP port, as upstream's controller makes it."""
    name, own = f"cluster:{cluster}:{service}", dict(owner=OWNER, cluster=cluster, service=service)
    of_port = own | {"port": f"TCP/{port}"}
    profiles = (one.convert_to(model.LBAppProfile) for one in api.pages(api.profiles.policy_lm_list_lb_app_profiles)[0])
    profile = next(one for one in profiles if one.display_name == "default-tcp-lb-app-profile")
    monitor = model.LBTcpMonitorProfile(display_name=f"{name}:{node_port}", monitor_port=node_port, tags=tags(**of_port), resource_type="LBTcpMonitorProfile")
    monitor = api.monitors.policy_lm_update_lb_monitor_profile(str(uuid.uuid4()), monitor).convert_to(model.LBTcpMonitorProfile)
    body = model.LBPool(
        display_name=name, tags=tags(**of_port), active_monitor_paths=[monitor.path], snat_translation=model.LBSnatTranslation(type="LBSnatAutoMap"),
        members=[model.LBPoolMember(admin_state="ENABLED", display_name=f"{cluster}:{node}", ip_address=ip) for node, ip in members.items()],
    )
    members = api.pools.policy_lm_update_lb_pool(str(uuid.uuid4()), body)
    id = str(uuid.uuid4())
    api.allocations.policy_lm_create_or_patch_ip_address_pool_allocation(pool, id, model.IpAddressAllocation(tags=tags(**own)))
    path = api.allocations.policy_lm_read_ip_address_pool_allocation(pool, id).path
    ip = next(one.values[0] for one in api.until_realized(path).extended_attributes if one.key == "allocation_ip")
    services = [one for one in api.pages(api.balancers.policy_lm_list_lb_services)[0] if one.connectivity_path == gateway]
    if not services:
        body = model.LBService(display_name=f"cluster:{cluster}", tags=tags(owner=OWNER, cluster=cluster), size="SMALL", enabled=True, connectivity_path=gateway)
        services = [api.balancers.policy_lm_update_lb_service(str(uuid.uuid4()), body)]
    body = model.LBVirtualServer(
        display_name=name, tags=tags(**of_port, ippoolid=pool, lbclass=lb_class), default_pool_member_ports=[str(node_port)], enabled=True, ip_address=ip,
        application_profile_path=profile.path, pool_path=members.path, ports=[str(port)], lb_service_path=services[0].path,
    )
    server = api.servers.policy_lm_update_lb_virtual_server(str(uuid.uuid4()), body)
    return {"ip": ip, "server": server, "pool": members, "monitor": monitor.id, "allocation": id, "service": services[0]}


def route(api, cluster, node, hint, network, hop, gateway="t1"):
    """As upstream's controller makes it."""
    scopes = {"vsphere.k8s.io/cluster-name": cluster, "vsphere.k8s.io/node-name": node}
    body = model.StaticRoutes(display_name=f"{cluster}_{node}_{network}", network=network, next_hops=[model.RouterNexthop(ip_address=hop)], tags=tags(**scopes))
    id = f"{hint}_{network}".replace("/", "_")
    api.routes.policy_lm_patch_tier1_static_routes(gateway, id, body)
    return id, api.until_realized(f"/infra/tier-1s/{gateway}/static-routes/{id}").state


def main_judge(url, account):
    api = Client(url, account)
    made = balancer(api, "judged", "default/web", 80, 30080, {"one": "10.0.0.1", "two": "10.0.0.2"})
    listed, count = api.pages(api.servers.policy_lm_list_lb_virtual_servers)
    pool = api.pools.policy_lm_read_lb_pool(made["pool"].id)
    pool.members = pool.members[:1]
    changed = api.pools.policy_lm_update_lb_pool(pool.id, pool)
    for number in range(5):
        monitor = model.LBTcpMonitorProfile(monitor_port=number, resource_type="LBTcpMonitorProfile")
        api.monitors.policy_lm_update_lb_monitor_profile(f"m-{number}", monitor)
    pages, _ = api.pages(api.monitors.policy_lm_list_lb_monitor_profiles, page_size=2)
    id, state = route(api, "judged", "one", "uid-1", "10.244.1.0/24", "10.0.0.1")
    query = "resource_type:StaticRoutes AND tags.scope:vsphere.k8s.io\\/cluster-name AND tags.tag:judged"
    found = api.query.lm_policy_query_search(query=query)
    refusals = {
        "stale": refused(lambda: api.pools.policy_lm_update_lb_pool(pool.id, pool)), "used": refused(lambda: api.pools.policy_lm_delete_lb_pool(pool.id)),
        "missing": refused(lambda: api.pools.policy_lm_read_lb_pool("nothing")),
        "size": refused(lambda: api.balancers.policy_lm_update_lb_service("x", model.LBService(size="HUGE"))),
        "discriminator": refused(lambda: api.monitors.policy_lm_update_lb_monitor_profile("x", model.LBTcpMonitorProfile(monitor_port=1))),
        "reference": refused(lambda: api.pools.policy_lm_update_lb_pool("x", model.LBPool(active_monitor_paths=["/infra/lb-monitor-profiles/nothing"]))),
        "second": refused(lambda: api.balancers.policy_lm_update_lb_service("x", model.LBService(connectivity_path="/infra/tier-1s/t1"))),
        "family": refused(lambda: route(api, "judged", "one", "uid-2", "fd00::/64", "10.0.0.1")),
        "password": refused(lambda: Client(url, account, "wrong").pools.policy_lm_list_lb_pools()),
    }
    others = [len(Client(url, account, how).pools.policy_lm_list_lb_pools().results) for how in (account["password"], "token")]
    api.servers.policy_lm_delete_lb_virtual_server(made["server"].id)
    again = refused(lambda: api.servers.policy_lm_update_lb_virtual_server(made["server"].id, made["server"]))
    api.pools.policy_lm_delete_lb_pool(pool.id)
    api.monitors.policy_lm_delete_lb_monitor_profile(made["monitor"])
    api.allocations.policy_lm_delete_ip_address_pool_allocation("public-pool", made["allocation"])
    api.balancers.policy_lm_delete_lb_service(made["service"].id)
    api.routes.policy_lm_delete_tier1_static_routes("t1", id)
    allocations = api.allocations.policy_lm_list_ip_address_pool_allocations("public-pool")
    return {
        "ip": made["ip"], "listed": [len(listed), count], "server": [listed[0].ports, listed[0].default_pool_member_ports, listed[0].revision],
        "changed": [len(changed.members), changed.revision], "pages": len(pages), "route": [id, state], "found": [one.convert_to(model.StaticRoutes).id for one in found.results],
        "refusals": refusals, "others": others, "deleting": again, "left": [len(allocations.results), len(api.servers.policy_lm_list_lb_virtual_servers().results)],
    }


def shown(url, account):
    """Virtual servers and routes, as the client reads them."""
    api = Client(url, account)
    pools = {one.path: one for one in api.pages(api.pools.policy_lm_list_lb_pools)[0]}
    scopes = lambda one: {tag.scope: tag.tag for tag in one.tags or []}
    servers = [
        {
            "tags": scopes(one), "name": one.display_name, "at": [one.ip_address, one.ports, one.default_pool_member_ports], "profile": one.application_profile_path,
            "members": {member.ip_address: member.display_name for member in pools[one.pool_path].members}, "monitors": len(pools[one.pool_path].active_monitor_paths or []),
        }
        for one in api.pages(api.servers.policy_lm_list_lb_virtual_servers)[0]
    ]
    routes = [
        {"id": one.id, "name": one.display_name, "network": one.network, "hops": [hop.ip_address for hop in one.next_hops], "tags": scopes(one)}
        for one in api.pages(api.routes.policy_lm_list_tier1_static_routes, "t1")[0]
    ]
    return {"servers": servers, "routes": routes}


def leave(url, account, what):
    api = Client(url, account)
    if "network" in what:
        return route(api, **what)[0]
    made = balancer(api, **what)
    return {"ip": made["ip"], "server": made["server"].path, "pool": made["pool"].path, "allocation": made["allocation"], "service": made["service"].path}


FOUND = {
    "LBVirtualServer": model.LBVirtualServer, "LBPool": model.LBPool, "LBTcpMonitorProfile": model.LBTcpMonitorProfile, "IpAddressAllocation": model.IpAddressAllocation,
}


def search(url, account, query):
    """Paths of what a query finds, each with its tags."""
    api = Client(url, account)
    kind = FOUND[query.partition(":")[2].split()[0]]
    found = [one.convert_to(kind) for one in api.query.lm_policy_query_search(query=query).results]
    return {one.path: {tag.scope: tag.tag for tag in one.tags} for one in found}


def main(url, what="judge", text="{}"):
    account = control(url, "account")
    match what:
        case "judge":
            print(json.dumps(main_judge(url, account)))
        case "shown":
            print(json.dumps(shown(url, account)))
        case "search":
            print(json.dumps(search(url, account, text)))
        case "leave":
            print(json.dumps(leave(url, account, json.loads(text))))


if __name__ == "__main__":
    main(*sys.argv[1:])
