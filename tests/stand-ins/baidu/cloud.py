"""The cloud: who asks for what, pages by marker, and what only an administrator does."""

import re

from baidu.access import Access
from baidu.addresses import Addresses
from baidu.balancers import Balancers
from baidu.compute import SUBNET, VPC, Compute, Ids
from baidu.errors import refused, wrong
from frame import Answer, Cloud, Operations, page

PAGE = 1000
# Method, path, the parameter that says which change it is, and what it is called.
CALLS = [
    ("GET", "/v2/instance", "", "ListInstances"),
    ("GET", "/v2/instance/{id}", "", "GetInstanceDetail"),
    ("GET", "/v1/route", "", "GetRouteTableDetail"),
    ("POST", "/v1/route/rule", "", "CreateRouteRule"),
    ("DELETE", "/v1/route/rule/{id}", "", "DeleteRouteRule"),
    ("GET", "/v1/blb", "", "DescribeLoadBalancers"),
    ("POST", "/v1/blb", "", "CreateLoadBalancer"),
    ("GET", "/v1/blb/{id}", "", "DescribeLoadBalancerDetail"),
    ("PUT", "/v1/blb/{id}", "", "UpdateLoadBalancer"),
    ("DELETE", "/v1/blb/{id}", "", "DeleteLoadBalancer"),
    ("GET", "/v1/blb/{id}/(TCP|UDP)listener", "", "DescribeListeners"),
    ("POST", "/v1/blb/{id}/(TCP|UDP)listener", "", "CreateListener"),
    ("PUT", "/v1/blb/{id}/(TCP|UDP)listener", "listenerPort", "UpdateListener"),
    ("PUT", "/v1/blb/{id}/listener", "batchdelete", "DeleteListeners"),
    ("GET", "/v1/blb/{id}/backendserver", "", "DescribeBackendServers"),
    ("POST", "/v1/blb/{id}/backendserver", "", "AddBackendServers"),
    ("PUT", "/v1/blb/{id}/backendserver", "", "RemoveBackendServers"),
    ("GET", "/v1/eip", "", "ListEip"),
    ("POST", "/v1/eip", "", "CreateEip"),
    ("PUT", "/v1/eip/{id}", "bind", "BindEip"),
    ("PUT", "/v1/eip/{id}", "unbind", "UnBindEip"),
    ("PUT", "/v1/eip/{id}", "resize", "ResizeEip"),
    ("DELETE", "/v1/eip/{id}", "", "DeleteEip"),
]
CALLS = [(method, re.compile(path.replace("{id}", "([A-Za-z0-9.-]+)")), flag, name) for method, path, flag, name in CALLS]


def found(request):
    """The call's name and the parts of its path."""
    for method, path, flag, name in CALLS:
        match = path.fullmatch(request.path)
        if match and method == request.method and (not flag or flag in request.query):
            return name, match.groups()
    return "", ()


class Baidu(Cloud):
    def __init__(self):
        ids = Ids()
        self.operations = Operations(0)
        self.access, self.compute = Access(), Compute(ids)
        self.blbs = Balancers(ids, self.operations, self.compute.machines)
        self.eips = Addresses(self.operations, self.blbs)

    def call_name(self, request):
        return found(request)[0] or f"{request.method} {request.path}"

    def answer(self, request):
        name, parts = found(request)
        self.access.check(request, name)
        if not name:
            raise refused(400, "InvalidURI", "Could not parse the specified URI.")
        value = self.run(name, parts, request)
        return Answer(value=value if value is not None else {}, headers={"Content-Type": "application/json; charset=utf-8"})

    def run(self, name, parts, request):
        body = request.json() if request.body else None
        blbs, eips, compute, query = self.blbs, self.eips, self.compute, request.query
        match name:
            case "ListInstances":
                return self.page("instances", list(compute.machines.values()), query)
            case "DescribeLoadBalancers":
                return self.page("blbList", blbs.list(query), query)
            case "DescribeListeners":
                return self.page("listenerList", blbs.listeners(*parts), query)
            case "DescribeBackendServers":
                return self.page("backendServerList", blbs.backends(*parts), query)
            case "ListEip":
                return self.page("eipList", eips.list(query), query)
            case "GetRouteTableDetail":
                return compute.route_table(query)
            case "UpdateListener":
                return blbs.update_listener(*parts, query["listenerPort"], body)
        plain = {
            "GetInstanceDetail": compute.machine, "DeleteRouteRule": compute.delete_rule, "DescribeLoadBalancerDetail": blbs.detail,
            "DeleteLoadBalancer": blbs.delete, "UnBindEip": eips.unbind, "DeleteEip": eips.release,
        }
        with_body = {
            "CreateRouteRule": compute.create_rule, "CreateLoadBalancer": blbs.create, "UpdateLoadBalancer": blbs.update, "CreateListener": blbs.create_listener,
            "DeleteListeners": blbs.delete_listeners, "AddBackendServers": blbs.add_backends, "RemoveBackendServers": blbs.remove_backends,
            "CreateEip": eips.create, "BindEip": eips.bind, "ResizeEip": eips.resize,
        }
        return plain[name](*parts) if name in plain else with_body[name](*parts, body)

    def page(self, name, items, query):
        size = int(query.get("maxKeys", PAGE))
        if not 1 <= size <= PAGE:
            raise wrong(f"maxKeys is {size}")
        try:
            some, following = page(items, query.get("marker"), size)
        except ValueError as error:
            raise wrong(str(error)) from error
        return {name: some, "marker": query.get("marker", ""), "maxKeys": size, "isTruncated": following is not None, "nextMarker": following or ""}

    # What only an administrator does.

    def do_account(self):
        return {"key": self.access.key, "secret": self.access.secret, "vpc": VPC, "subnet": SUBNET}

    def do_add_machine(self, **machine):
        return self.compute.add(**machine)

    def do_add_machines(self, prefix, count):
        return [self.compute.add(f"{prefix}-{number}")["id"] for number in range(count)]

    def do_power(self, id, status):
        self.compute.machines[id]["status"] = status

    def do_delete(self, kind, id):
        """As if somebody else had; a machine is behind no load balancer any more."""
        self.kinds()[kind].pop(id)
        for blb in self.blbs.all.values():
            blb["backends"].pop(id, None)
        for eip in self.eips.all.values():
            if eip["instanceId"] == id:
                eip |= {"status": "available", "instanceType": None, "instanceId": None}

    def kinds(self):
        self.operations.settle()
        return {"machines": self.compute.machines, "rules": self.compute.rules, "blbs": self.blbs.all, "eips": self.eips.all}

    def do_resources(self, kind):
        """All of a kind, by id; of rules those to machines."""
        shown = lambda blb: blb | {"listeners": [{"kind": kind, "port": port, **one} for (kind, port), one in blb["listeners"].items()]}
        found = self.kinds()[kind]
        if kind == "rules":
            return {id: one for id, one in found.items() if one["nexthopType"] == "custom"}
        return {id: shown(one) if kind == "blbs" else one for id, one in found.items()}

    def do_change(self, kind, id, fields):
        self.kinds()[kind][id] |= fields

    def do_make(self, blb=None, listeners=(), machines=(), eip=None, rule=None):
        """As another client of the account, at once."""
        seconds, self.operations.seconds = self.operations.seconds, 0
        made = {}
        if blb is not None:
            made["blb"] = id = self.blbs.create({"vpcId": VPC, "subnetId": SUBNET, **blb})["blbId"]
            for kind, listener in listeners:
                self.blbs.create_listener(id, kind, listener)
            if machines:
                self.blbs.add_backends(id, {"backendServerList": [{"instanceId": one, "weight": 100} for one in machines]})
        if eip is not None:
            billing = {"paymentTiming": "Postpaid", "billingMethod": "ByTraffic"}
            made["eip"] = ip = self.eips.create({"bandwidthInMbps": 1000, "billing": billing, **eip})["eip"]
            if blb is not None:
                self.eips.bind(ip, {"instanceType": "BLB", "instanceId": made["blb"]})
        if rule is not None:
            made["rule"] = self.compute.add_rule({"sourceAddress": "0.0.0.0/0", "nexthopType": "custom", "description": "", **rule})
        self.operations.seconds = seconds
        return made

    def do_quota(self, blb=None, eip=None, rule=None):
        self.blbs.limit, self.eips.limit, self.compute.limit = blb, eip, rule

    def do_operations_take(self, seconds):
        self.operations.seconds = seconds

    def do_finish(self):
        """All that is under way is done now."""
        self.operations.finish()

    def do_fail_silently(self, changes):
        self.blbs.silent_failures = changes

    def do_deny(self, calls):
        self.access.denied = set(calls)
