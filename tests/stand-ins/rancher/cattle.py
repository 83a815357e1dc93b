"""The API: who asks, collections with filters and pages, resources with links and actions. `/v2-beta/projects/1a5` is the Nodes' environment and `1a7` an empty
one; below `/other` the API keys are others."""

import base64
import re

from frame import Answer, Cloud, Refused
from rancher.errors import invalid, refused
from rancher.schema import Schemas
from rancher.services import Services
from rancher.states import actions, step
from rancher.store import Store

ACCESS, SECRET = "5E2A7C19D0B84F63A1C7", "mQ7tZ2wL9xK4vB8nH3sD6fJ1pR5yU0cG&%"
PROJECTS = {"1a5": "nodes", "1a7": "empty"}
PAGE, MOST = 100, 3000
LINKS = {
    "host": ["account", "ipAddresses", "instances"],
    "stack": ["account", "services"],
    "externalService": ["account", "stack", "consumedservices", "consumedbyservices"],
    "loadBalancerService": ["account", "stack", "consumedservices", "consumedbyservices"],
    "ipAddress": ["account"],
}
OWN = {"failing", "run", "hostId"}
SERVICES = ("loadBalancerService", "externalService")
UNSET = {
    "host": {"description": None, "info": {}, "publicEndpoints": [], "instanceIds": [], "transitioningProgress": None, "physicalHostId": "1ph1"},
    "stack": {"description": None, "system": False, "healthState": "healthy", "serviceIds": [], "group": None},
    "ipAddress": {"name": None, "networkId": None, "description": None},
    "loadBalancerService": {"description": None, "currentScale": 1, "healthState": "healthy", "publicEndpoints": None, "vip": None, "system": False, "fqdn": None},
    "externalService": {"description": None, "healthState": "healthy", "system": False, "fqdn": None, "launchConfig": None},
}


class Cattle(Cloud):
    def __init__(self):
        self.schemas, self.store = Schemas(), Store()
        self.services = Services(self.store)
        self.store.add("setting", {"name": "lb.instance.image", "value": "rancher/lb-service-haproxy:v0.9.14"}, "active")
        self.store.add("setting", {"name": "api.host", "value": ""}, "active")

    def call_name(self, request):
        path = re.sub(r"^(/other)?/v2-beta/projects/[^/]+", "", request.path) or "/"
        action = f"?action={request.query['action']}" if "action" in request.query else ""
        return f"{request.method} {re.sub(r'/1[a-z]+[0-9]+', '/{id}', path)}{action}"

    def answer(self, request):
        found = re.fullmatch(r"(/other)?/v2-beta/projects/([^/]+)(/.*)?", request.path)
        if not found:
            raise Refused(404, "<html>not found</html>", {"Content-Type": "text/html"})
        kind, _, both = request.headers.get("authorization", "").partition(" ")
        own = base64.b64encode(f"{ACCESS}:{SECRET}".encode()).decode()
        if found[1] or kind != "Basic" or both != own:
            raise refused(401)
        if found[2] not in PROJECTS:
            raise refused(404)
        base = f"http://{request.headers['host']}/v2-beta/projects/{found[2]}"
        status, value = self.shown(request, found[2], base, (found[3] or "").strip("/"))
        headers = {"X-API-Schemas": f"{base}/schemas", "Content-Type": "application/json; charset=utf-8"}
        return Answer(status, value, headers)

    def shown(self, request, project, base, path):
        method, query = request.method, request.query
        match path.split("/"):
            case [""]:
                fields = {"id": project, "type": "project", "name": PROJECTS[project], "state": "active", "links": {"self": base}, "actions": {}}
                return 200, self.schemas.is_shown("project", fields)
            case ["schemas"]:
                return 200, {"type": "collection", "resourceType": "schema", "links": {"self": f"{base}/schemas"}, "data": list(self.schemas.documents(base))}
            case [plural]:
                type = self.schemas.type_of(plural)
                self.schemas.allowed(type, method, "collection")
                if method == "POST":
                    return 201, self.resource(self.create(type, request.json()), base)
                return 200, self.collection(type, project, base, f"{base}/{plural}", query)
            case [plural, id]:
                type = self.schemas.type_of(plural)
                one = self.store.get(type, id)
                if "action" in query:
                    return 202, self.resource(self.act(one, query["action"], request.json() if request.body else {}), base)
                self.schemas.allowed(type, method, "resource")
                if method != "GET":
                    one = self.change(one, request.json()) if method == "PUT" else self.remove(one)
                return 200, self.resource(one, base)
            case [plural, id, link]:
                one = self.store.get(self.schemas.type_of(plural), id)
                found = {"ipaddresses": self.addresses, "consumedservices": self.consumed, "consumedbyservices": self.consumers}.get(link.lower())
                if found is None or method != "GET":
                    raise refused(404)
                type, data = ("ipAddress" if link.lower() == "ipaddresses" else "service"), [self.resource(of, base) for of in found(one)]
                return 200, {"type": "collection", "resourceType": type, "links": {"self": f"{base}/{path}"}, "data": data, "pagination": None}
        raise refused(404)

    def addresses(self, host):
        return [one for one in self.store.of("ipAddress") if one["hostId"] == host["id"]]

    def consumed(self, one):
        return self.services.consumed(one["id"])

    def consumers(self, one):
        return self.services.consumers(one["id"])

    def collection(self, type, project, base, url, query):
        conditions = self.schemas.conditions(type, query)
        found = [] if project == "1a7" else self.store.of(*(SERVICES if type == "service" else (type,)))
        fits = lambda one: all(self.fits(one, *condition) for condition in conditions)
        found = [self.resource(one, base) for one in found if fits(one)]
        limit, start = min(int(query.get("limit", PAGE)), MOST), int(query.get("marker", "m0").removeprefix("m"))
        # With what is included a page is cut by rows of the join: the same resource may be at the end of one and the beginning of the next.
        rows = [(one, None) for one in found]
        if query.get("include"):
            rows = [(one, ip) for one in found for ip in self.addresses(self.store.all[one["id"]]) or [None]]
        data = {}
        for one, ip in rows[start : start + limit]:
            shown = data.setdefault(one["id"], dict(one))
            if query.get("include"):
                shown.setdefault("ipAddresses", []).extend([self.resource(ip, base)] if ip else [])
        partial = len(rows) > start + limit
        more = "&".join(f"{name}={value}" for name, value in (query | {"marker": f"m{start + limit}", "limit": limit}).items())
        pages = {"first": None, "previous": None, "next": f"{url}?{more}" if partial else None, "limit": limit, "total": None, "partial": partial}
        return {
            "type": "collection", "resourceType": type, "links": {"self": url}, "createTypes": {}, "actions": {}, "data": list(data.values()), "sortLinks": {},
            "pagination": pages, "sort": None, "filters": {field: [{"value": value, "modifier": modifier}] for field, modifier, value in conditions}, "createDefaults": {},
        }

    def fits(self, one, field, modifier, value):
        match modifier:
            case "eq":
                return str(one.get(field)).lower() == value.lower()
            case "null":
                return one.get(field) is None
        raise invalid("InvalidOption", field, f"the stand-in has no filter {modifier}")

    def resource(self, one, base):
        type, id = one["type"], one["id"]
        fields = UNSET.get(type, {}) | {name: value for name, value in one.items() if name not in OWN}
        if type == "setting":
            fields = {name: fields[name] for name in ("id", "type", "name", "value")} | {"activeValue": fields["value"]}
        else:
            fields["transitioning"] = self.store.transitioning(one)
        own = f"{base}/{self.schemas.types[type]['pluralName'].lower()}/{id}"
        shown = fields | {
            "links": {"self": own} | {name: f"{own}/{name.lower()}" for name in LINKS.get(type, [])},
            "actions": {name: f"{own}/?action={name}" for name in actions(type, one["state"], self.schemas.types[type]["resourceActions"])},
        }
        return self.schemas.is_shown(type, shown, ("ipAddresses",))

    def create(self, type, body):
        body = self.schemas.checked(type, body, "create")
        if type not in (*SERVICES, "stack"):
            raise refused(405)
        self.services.check(type, body)
        made = self.store.add(type, body)
        self.services.created(made)
        return made

    def change(self, one, body):
        body = self.schemas.checked(one["type"], body, "update")
        self.services.check(one["type"], body, one["id"])
        follows = one["type"] in SERVICES and {"lbConfig", "externalIpAddresses"} & set(body)
        if follows and step(one["type"], "update", one["state"]) is None:
            raise refused(409)
        # The fields are set at once; what follows from them is a process.
        one |= body
        if follows:
            self.services.updated(one)
        return one

    def remove(self, one):
        if one["type"] in SERVICES:
            self.services.removed(one)
        else:
            self.store.process(one, "remove")
        return one

    def act(self, one, action, body):
        if action not in self.resource(one, "")["actions"]:
            raise refused(409, "ActionNotAvailable")
        if one["type"] == "host":
            return self.store.process(one, action)
        wanted = self.schemas.types[one["type"]]["resourceActions"][action]["input"]
        self.services.act(one, action, self.schemas.checked(wanted, body, "embedded") if wanted else {})
        return one

    # What only an administrator does.

    def do_account(self):
        return {"user": ACCESS, "password": SECRET}

    def do_add_machine(self, name, ips=None, labels=None):
        number = len(self.store.of("host")) + 1
        ip = f"10.6.{number >> 8}.{number & 255}"
        host = self.store.add("host", {"hostname": name, "name": None, "agentState": None, "agentIpAddress": ip, "labels": labels or {}}, "active")
        for address in [ip] if ips is None else ips:
            self.store.add("ipAddress", {"address": address, "hostId": host["id"]}, "active")
        self.services.retry()
        return {"id": host["uuid"], "ip": ip}

    def do_add_machines(self, prefix, count):
        return [self.do_add_machine(f"{prefix}-{number}")["id"] for number in range(count)]

    def host(self, id):
        return next(one for one in self.store.of("host") if one["uuid"] == id)

    def do_power(self, id, on):
        self.host(id)["agentState"] = None if on else "disconnected"

    def do_delete(self, id):
        """A host: off, removed, and in no list."""
        host = self.host(id)
        host |= {"state": "removed", "removed": host["created"]}

    def do_change(self, id, fields):
        (self.store.all.get(id) or self.host(id)).update(fields)

    def do_resources(self, kind):
        """All of a type that are not removed, by id."""
        return {one["id"]: {name: value for name, value in one.items() if name not in OWN} for one in self.store.of(kind)}

    def do_request(self, method, path, body=None):
        """As another client of the environment, at once."""
        seconds, self.store.operations.seconds = self.store.operations.seconds, 0
        try:
            made = self.command(method, path.strip("/").split("/"), body or {})
            self.store.operations.settle()
            return {name: value for name, value in made.items() if name not in OWN}
        finally:
            self.store.operations.seconds = seconds

    def command(self, method, parts, body):
        type = self.schemas.type_of(parts[0])
        if len(parts) == 1:
            return self.create(type, body)
        one = self.store.get(type, parts[1])
        if len(parts) == 3:
            return self.act(one, parts[2], body)
        return self.change(one, body) if method == "PUT" else self.remove(one)

    def do_operations_take(self, seconds):
        self.store.operations.seconds = seconds
