"""What mimic's Cloud Load Balancers lack, on mimic's own load balancers: they keep its ids, states, nodes and its refusals while a change is under way.

| added | from |
| ----- | ---- |
| virtual IPs of their own, shared by id, one port of a protocol on each | Rackspace's API reference, "Virtual IPs" and "Create load balancer" |
| access lists, session persistence, changes of algorithm and timeout | the same; mimic has none of these requests |
| the health monitor and nodes within the limit in the request that creates, the monitor in the details | the same; details as in the recorded ones of libcloud |
"""

import itertools
import json

from mimic.model import clb_errors
from mimic.model.clb_objects import CLB, RegionalCLBCollection
from mimic.rest.loadbalancer_api import LoadBalancerRegion

ids = itertools.count(2000)
UDP = ("UDP", "UDP_STREAM", "DNS_UDP")
MOST_ITEMS = 100
MOST_DELETED = 10
TYPES = ("PUBLIC", "SERVICENET")
VERSIONS = {"PUBLIC": ("IPV4", "IPV6"), "SERVICENET": ("IPV4",)}


def install():
    """Adds all of it to the classes of mimic, before it starts."""
    made, shown = RegionalCLBCollection.add_load_balancer, CLB.full_json

    def add_load_balancer(self, info, lb_id):
        wrong = list(wrongs(info)) or list(occupied(self, info))
        if wrong:
            return clb_errors.validation_errors(wrong)
        if len(info.get("nodes", [])) > self.node_limit:
            return {"message": f"Nodes must not exceed {self.node_limit} per load balancer.", "code": 413}, 413
        vips = virtual_ips(self, info["virtualIps"])
        made(self, info, lb_id)
        clb = self.lbs[lb_id]
        clb["virtualIps"] = vips
        clb["accessList"] = [dict(item, id=next(ids)) for item in info.get("accessList", [])]
        clb["sessionPersistence"] = info.get("sessionPersistence", {})
        clb.health_monitor = info.get("healthMonitor", {})
        return {"loadBalancer": clb.full_json()}, 202

    def full_json(self):
        value = shown(self)
        value["healthMonitor"] = self.health_monitor
        for optional in ("healthMonitor", "accessList", "sessionPersistence"):
            if not value.get(optional):
                value.pop(optional, None)
        return value

    RegionalCLBCollection.add_load_balancer = add_load_balancer
    CLB.full_json = full_json
    for path, methods, change in [
        ("", ["PUT"], change_properties),
        ("/accesslist", ["POST"], add_to_access_list),
        ("/accesslist", ["DELETE"], delete_from_access_list),
        ("/sessionpersistence", ["PUT"], set_persistence),
        ("/sessionpersistence", ["DELETE"], delete_persistence),
    ]:
        route(path, methods, change)


def wrongs(info):
    """What is wrong with a request that creates, by itself."""
    known = {"name", "port", "protocol", "algorithm", "timeout", "virtualIps", "nodes", "accessList", "sessionPersistence", "healthMonitor", "metadata"}
    yield from (f"{key} is not known" for key in info.keys() - known)
    if not 0 < len(info["name"]) <= 128:
        yield "Name is invalid"
    if not 1 <= info["timeout"] <= 120:
        yield "Timeout is invalid"
    if not info["virtualIps"]:
        yield "At least one virtual ip is needed"
    if info.get("healthMonitor") and info["protocol"] in UDP:
        yield "Health monitors are not supported with UDP"
    yield from items_wrong([], info.get("accessList", []))


def items_wrong(before, new):
    addresses = [item["address"] for item in [*before, *new]]
    if len(addresses) > MOST_ITEMS:
        yield f"An access list has at most {MOST_ITEMS} items"
    if len(set(addresses)) < len(addresses):
        yield "A network item is there twice"
    if any(item["type"] not in ("ALLOW", "DENY") for item in new):
        yield "Type of a network item is invalid"


def occupied(region, info):
    """What other load balancers have of what a new one asks for."""
    for asked in info["virtualIps"]:
        if "id" not in asked:
            if asked["type"] not in TYPES or asked.get("ipVersion", "IPV4") not in VERSIONS[asked["type"]]:
                yield "Virtual ip is invalid"
            continue
        sharing = [clb for clb in region.lbs.values() if any(vip["id"] == asked["id"] for vip in clb["virtualIps"])]
        if not sharing:
            yield f"Virtual ip {asked['id']} is not known"
        for clb in sharing:
            if clb["port"] == info["port"] and (clb["protocol"] in UDP) == (info["protocol"] in UDP):
                yield f"Port {info['port']} of virtual ip {asked['id']} is in use"


def virtual_ips(region, asked):
    known = {vip["id"]: vip for clb in region.lbs.values() for vip in clb["virtualIps"]}
    vips = []
    for one in asked:
        if "id" in one:
            vips.append(known[one["id"]])
            continue
        for version in [one["ipVersion"]] if "ipVersion" in one else VERSIONS[one["type"]]:
            number = next(ids)
            high, low = divmod(number, 250)
            address = {
                ("PUBLIC", "IPV4"): f"198.18.{high}.{low}",
                ("PUBLIC", "IPV6"): f"2001:4801:7901:0000:0000:0000:0000:{number:04x}",
                ("SERVICENET", "IPV4"): f"10.183.{high}.{low}",
            }[one["type"], version]
            vips.append({"id": number, "address": address, "type": one["type"], "ipVersion": version})
    return vips


def route(path, methods, change):
    """Adds requests of one load balancer, which are refused as mimic refuses those that it has."""

    def handle(self, request, tenant_id, lb_id):
        region = self.session(tenant_id)
        if not region.lb_in_region(lb_id):
            value, status = clb_errors.loadbalancer_not_found()
        elif region.lbs[lb_id]["status"] != "ACTIVE":
            value, status = clb_errors.considered_immutable_error(region.lbs[lb_id]["status"], lb_id)
        else:
            content = request.content.read()
            named = [int(text) for text in request.args.get(b"id", [])]
            wrong = list(change(region.lbs[lb_id], json.loads(content) if content else None, named) or [])
            value, status = clb_errors.validation_errors(wrong) if wrong else (None, 202)
        request.setResponseCode(status)
        return b"" if value is None else json.dumps(value).encode()

    handle.__name__ = change.__name__
    LoadBalancerRegion.app.route(f"/v2/<string:tenant_id>/loadbalancers/<int:lb_id>{path}", methods=methods)(handle)


def change_properties(clb, body, _):
    asked = body["loadBalancer"]
    if asked.keys() - {"algorithm", "timeout"} or not 1 <= asked.get("timeout", 1) <= 120:
        return [f"Attributes are invalid: {sorted(asked)}"]
    clb.update(asked)
    return []


def add_to_access_list(clb, body, _):
    wrong = list(items_wrong(clb["accessList"], body["accessList"]))
    if not wrong:
        clb["accessList"] = clb["accessList"] + [dict(item, id=next(ids)) for item in body["accessList"]]
    return wrong


def delete_from_access_list(clb, _, named):
    if len(named) > MOST_DELETED:
        return [f"At most {MOST_DELETED} network items are deleted at once"]
    clb["accessList"] = [item for item in clb["accessList"] if named and item["id"] not in named]
    return []


def set_persistence(clb, body, _):
    if body["sessionPersistence"]["persistenceType"] != "SOURCE_IP":
        return ["HTTP_COOKIE is for HTTP"]
    clb["sessionPersistence"] = body["sessionPersistence"]
    return []


def delete_persistence(clb, _, __):
    clb["sessionPersistence"] = {}
    return []
