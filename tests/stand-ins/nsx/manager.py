"""The manager: who asks for which path, pages, addresses of pools, and what only an administrator does."""

import ipaddress
import re
import time
from urllib.parse import unquote

from frame import Answer, Cloud, Refused, page
from nsx.access import Access
from nsx.errors import bad, refused
from nsx.store import KINDS, Store, kind_of

ROOT = "/policy/api/v1"
AUTHORIZE = "/csp/gateway/am/api/auth/api-tokens/authorize"
REALIZED = "/infra/realized-state/realized-entities"
MOST_ITEMS = 1000
GATEWAY = "/infra/tier-1s/t1"
ITEM = re.compile(r"(/infra(?:/[a-z0-9-]+/[^/]+)*)/([a-z0-9-]+)(?:/([^/]+))?")
"""Parent, collection, and the id of an item."""
SERVICE = re.compile(r"resource_type:(\w+) AND tags\.scope:(\S+) AND tags\.tag:(\S+)")
"""The one query of upstream's controller."""


class Manager(Cloud):
    def __init__(self):
        self.access, self.store = Access(), Store()
        self.pools = {"public": ("192.0.2.10", "192.0.2.13"), "private": ("10.99.0.10", "10.99.0.200"), "six": ("fd00:99::10", "fd00:99::20")}
        for name in self.pools:
            self.store.put(f"/infra/ip-pools/{name}-pool", {"display_name": name})
        for gateway in ("t1", "t2"):
            self.store.put(f"/infra/tier-1s/{gateway}", {"display_name": gateway})
        for name, kind in (("default-tcp-lb-app-profile", "LBFastTcpProfile"), ("default-udp-lb-app-profile", "LBFastUdpProfile"), ("idle", "LBFastTcpProfile")):
            self.store.put(f"/infra/lb-app-profiles/{name}-id", {"display_name": name, "resource_type": kind})

    def call_name(self, request):
        if not request.path.startswith(ROOT):
            return f"{request.method} {request.path}"
        found = ITEM.fullmatch(request.path.removeprefix(ROOT))
        if not found or request.path.endswith("/realized-entities"):
            return f"{request.method} {request.path.rsplit('/', 1)[1]}"
        return f"{request.method} {found[2]}{'/{id}' if found[3] else ''}"

    def answer(self, request):
        if request.method == "POST" and request.path == "/api/session/create":
            return self.access.login(request.form())
        if request.method == "POST" and request.path == AUTHORIZE:
            return self.access.authorize(request.form())
        self.access.check(request)
        if not request.path.startswith(f"{ROOT}/"):
            raise refused(404, 404, "No such path.")
        path = unquote(request.path.removeprefix(ROOT))
        self.settle()
        if request.method == "GET" and path == REALIZED:
            found = self.store.realized(request.query.get("intent_path", ""))
            return Answer(value={"results": found, "result_count": len(found)})
        if request.method == "GET" and path == "/search/query":
            return self.search(request.query)
        found = ITEM.fullmatch(path)
        if not found or found[2] not in KINDS:
            raise refused(404, 404, f"The path {path} is none of the stand-in's.")
        parent, kind, id = found.groups()
        if parent != "/infra":
            self.store.get(parent)
        match request.method:
            case "GET" if id is None:
                return self.listed(self.store.of(kind, parent), request.query)
            case "GET":
                return Answer(value=self.store.get(path).body)
            case "PUT" if id:
                return Answer(value=self.change(path, request.json()))
            case "PATCH" if id:
                self.change(path, request.json(), merge=True)
                return Answer()
            case "DELETE" if id:
                self.store.delete(path)
                return Answer()
        raise Refused(405, {"httpStatus": "METHOD_NOT_ALLOWED", "error_code": 405, "module_name": "policy", "error_message": "method"})

    def listed(self, items, query):
        size = int(query.get("page_size", MOST_ITEMS))
        if not 0 < size <= MOST_ITEMS:
            raise bad(f"page_size must be at most {MOST_ITEMS}", 255)
        try:
            some, cursor = page(items, query.get("cursor"), size)
        except ValueError as error:
            raise bad(f"Invalid cursor: {error}", 255) from error
        value = {"results": some, "result_count": len(items), "sort_by": "display_name", "sort_ascending": True}
        return Answer(value=value | ({"cursor": cursor} if cursor else {}))

    def search(self, query):
        found = SERVICE.fullmatch(query.get("query", ""))
        if not found:
            raise bad(f"Invalid query {query.get('query')}", 700)
        of, scope, tag = (text.replace("\\/", "/") for text in found.groups())
        has = lambda one: {"scope": scope, "tag": tag} in one.get("tags", [])
        return self.listed([thing.body for thing in self.store.things.values() if thing.body["resource_type"] == of and has(thing.body)], query)

    def change(self, path, body, merge=False):
        if kind_of(path) == "lb-virtual-servers":
            self.check_server(path, body)
        if kind_of(path) == "lb-services" and path not in self.store.things:
            self.check_service(body)
        if kind_of(path) == "static-routes":
            self.check_route(body)
        return self.store.put(path, body, merge)

    def check_server(self, path, body):
        """One address and port of a load balancer service belongs to one virtual server."""
        place = lambda one: (one.get("lb_service_path"), one.get("ip_address"), tuple(one.get("ports") or []), self.protocol(one))
        for other, thing in self.store.things.items():
            if thing.kind == "lb-virtual-servers" and other != path and place(thing.body) == place(body):
                raise bad(f"The virtual server {other} has the same IP address and port.", 500301)

    def protocol(self, server):
        profile = self.store.things.get(server.get("application_profile_path"))
        return "UDP" if profile and profile.body["resource_type"] == "LBFastUdpProfile" else "TCP"

    def check_service(self, body):
        """A gateway has one load balancer service."""
        for other, thing in self.store.things.items():
            if thing.kind == "lb-services" and body.get("connectivity_path") and thing.body.get("connectivity_path") == body["connectivity_path"]:
                raise bad(f"The gateway {body['connectivity_path']} has the load balancer service {other} already.", 500302)

    def check_route(self, body):
        try:
            network = ipaddress.ip_network(body.get("network", ""))
            hops = [ipaddress.ip_address(hop["ip_address"]) for hop in body.get("next_hops", [])]
        except (KeyError, ValueError) as error:
            raise bad(f"Field level validation errors: {error}", 220) from error
        if any(hop.version != network.version for hop in hops):
            raise bad("The next hop is of another IP family than the network.", 503000)

    def settle(self):
        """Gives the allocations that are due their addresses."""
        for path, thing in self.store.things.items():
            if thing.kind != "ip-allocations" or thing.error or thing.attributes or time.monotonic() < thing.due:
                continue
            pool = path.split("/")[3]
            address = self.free(pool, thing.body.get("allocation_ip"))
            if address:
                thing.attributes["allocation_ip"] = address
            else:
                thing.error = f"IP pool {pool} has no free address" + (f" {thing.body['allocation_ip']}" if thing.body.get("allocation_ip") else "")

    def free(self, pool, wanted):
        first, last = (ipaddress.ip_address(one) for one in self.pools[pool.removesuffix("-pool")])
        base = f"/infra/ip-pools/{pool}/ip-allocations/"
        taken = {thing.attributes.get("allocation_ip") for path, thing in self.store.things.items() if path.startswith(base)}
        range_ = (type(first)(number) for number in range(int(first), int(last) + 1))
        return next((str(one) for one in range_ if str(one) not in taken and wanted in (None, str(one))), None)

    # What only an administrator does.

    def do_account(self):
        return self.access.account() | {"gateway": GATEWAY}

    def do_operations_take(self, seconds):
        self.store.seconds = seconds

    def do_put(self, path, body):
        """As another client, at once; a change needs no revision."""
        seconds, self.store.seconds = self.store.seconds, 0
        thing = self.store.things.get(path)
        try:
            return self.change(path, ({"_revision": thing.body["_revision"]} if thing else {}) | body, merge=thing is not None)
        finally:
            self.store.seconds = seconds
            self.settle()

    def do_delete(self, path):
        """As if somebody else had, whoever needs it."""
        self.store.delete(path, force=True)

    def do_resources(self, kind):
        """All of a kind, by path, with what was realized."""
        self.settle()
        return {path: thing.body | {"state": thing.state()} | thing.attributes for path, thing in self.store.things.items() if thing.kind == kind}

    def do_fail_realization(self, kind, text, times=1):
        self.store.failures.append({"kind": kind, "text": text, "times": times})

    def do_end_sessions(self):
        """As when a manager restarts."""
        count = len(self.access.sessions.until)
        self.access.sessions.revoke_all()
        self.access.bearer.revoke_all()
        return count

    def do_principals(self, certificates):
        self.access.register(certificates)

    def do_deny(self, rules):
        self.access.denied = [tuple(rule) for rule in rules]

    def do_quota(self, kind, most=None):
        self.store.most = {} if most is None else {kind: most}

    def do_failures(self):
        return self.access.failures
