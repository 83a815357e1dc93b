"""The cloud: what each path answers."""

import copy
import re

from azure.access import CLIENT, FEDERATED, IDENTITY, SECRET, TENANT, Access
from azure.disks import VERSIONS, Disks
from azure.errors import missing, refused
from azure.machines import LOCATION, SUBSCRIPTION, Machines
from azure.network import KINDS, Network
from azure.schema import MODELS, assure, check
from azure.store import Store
from frame import Answer, Cloud, Refused, page

OLDEST = "2023-09-01"
"""Of versions for machines and networks."""
NEWEST = "2026-12-31"
SCALE_SET_NETWORK = re.compile(r"/virtualmachinescalesets/[^/]+/(networkinterfaces|publicipaddresses)$")
NAMES = ["Microsoft.Compute", "Microsoft.Network", "networkInterfaces", "virtualMachines", "virtualMachineScaleSets", "routeTables", "publicIPAddresses",
         "loadBalancers", "networkSecurityGroups", "privateLinkServices", "privateEndpointConnections", "virtualNetworks", "subnets",
         "disks", "snapshots", "locations", "vmSizes"]
"""As they are documented: the cloud takes them in any case."""
ROUTES = 400
"""Most routes of a table."""


class AzureCloud(Cloud):
    def __init__(self):
        self.access, self.store = Access(), Store()
        self.machines = Machines(self.store)
        self.network = Network(self.store)
        self.disks = Disks(self.store)
        self.groups = {"demo", "network"}
        self.page_size = 200

    def call_name(self, request):
        path = re.sub(r"(?i)/(subscriptions|resourcegroups)/[^/]+", "", request.path)
        parts = path.removeprefix("/providers/").strip("/").split("/")
        known = {name.lower(): name for name in NAMES}
        kinds = "/".join(known.get(part.lower(), part) for part in [parts[0], *parts[1::2]])
        extra = ".list" if len(parts) % 2 == 0 else ""
        return f"{request.method} {kinds}{extra}" if "." in parts[0] else f"{request.method} {parts[-1]}"

    def answer(self, request):
        parts = request.path.strip("/").split("/")
        if parts[1:] == ["oauth2", "v2.0", "token"] and request.method == "POST":
            return self.access.token(request, parts[0])
        if request.path == "/metadata/identity/oauth2/token" and request.method == "GET":
            return self.access.metadata(request)
        self.access.check(request)
        self.place(request, parts)
        version = request.query.get("api-version")
        if version is None:
            raise refused(400, "MissingApiVersionParameter", "The api-version query parameter (?api-version=) is required for all requests.")
        path = request.path.rstrip("/")
        low = path.lower()
        of_set = "/virtualmachinescalesets/" in low and ("/networkinterfaces" in low or "/publicipaddresses" in low)
        if self.disks.versions(path) and version not in VERSIONS:
            raise refused(400, "NoRegisteredProviderFound", f"The api-version '{version}' is not supported for {path}.")
        if not re.fullmatch(r"\d{4}-\d\d-\d\d", version) or (not of_set and not OLDEST <= version <= NEWEST):
            raise refused(400, "NoRegisteredProviderFound", f"The api-version '{version}' is not supported for {path}.")
        if of_set and version not in ("2018-10-01", "2017-03-30") and not OLDEST <= version <= NEWEST:
            raise refused(400, "InvalidResourceType", f"The api-version '{version}' is not supported for {path}.")
        if found := re.search(r"/(?:disk)?operations/(operation-\d+)$", low):
            return self.operation(found[1])
        if len(parts) % 2:
            if request.method != "GET":
                raise refused(405, "MethodNotAllowed", f"{request.method} is not allowed on {path}")
            if low.endswith(f"/microsoft.compute/locations/{LOCATION}/vmsizes"):
                return Answer(value={"value": [assure("vmsizes", size) for size in self.disks.sizes()]})
            return self.listed(request, path)
        match request.method:
            case "GET":
                found = self.store.get(path)
                headers = {"ETag": found["etag"]} if "etag" in found else {}
                return Answer(value=self.shown(found, request.query.get("$expand") == "instanceView"), headers=headers)
            case "PUT":
                return self.put(request, path)
            case "PATCH" if self.kind(path) == "disks":
                there, operation = self.disks.patch(path, request.json())
                return self.disks.answer(request, operation, self.shown(there, False))
            case "DELETE":
                return self.delete(request, path)
        raise refused(405, "MethodNotAllowed", f"{request.method} is not allowed on {path}")

    def place(self, request, parts):
        if len(parts) < 2 or parts[0].lower() != "subscriptions":
            raise refused(404, "InvalidPath", f"There is nothing at {request.path}.")
        if parts[1].lower() != SUBSCRIPTION:
            raise refused(404, "SubscriptionNotFound", f"The subscription '{parts[1]}' could not be found.")
        if len(parts) > 3 and parts[2].lower() == "resourcegroups" and parts[3].lower() not in self.groups:
            raise refused(404, "ResourceGroupNotFound", f"Resource group '{parts[3]}' could not be found.")

    def kind(self, path):
        parts = path.lower().split("/providers/")[-1].split("/")
        return "/".join(parts[1::2])

    def shown(self, resource, view):
        kind = self.kind(resource["id"])
        if kind == "privatelinkservices":
            resource = copy.deepcopy(resource)
            resource["properties"]["privateEndpointConnections"] = self.network.links.connections(resource["id"])
        if not kind.endswith("virtualmachines"):
            return assure(kind, resource) if kind in MODELS else resource
        resource = copy.deepcopy(assure(kind, resource))
        if not view:
            del resource["properties"]["instanceView"]
        return resource

    def listed(self, request, path):
        low = path.lower()
        if found := SCALE_SET_NETWORK.search(low):
            start = low[: found.start(1)]
            self.store.get(start.rstrip("/"))
            last = "networkinterfaces" if found[1] == "networkinterfaces" else "publicipaddresses"
            keys = [key for key in sorted(self.store.all) if key.startswith(start + "virtualmachines/")]
            items = [self.store.all[key] for key in keys if key.split("/")[-2] == last]
        elif "/resourcegroups/" not in low:
            kind = path.rsplit("/", 1)[1].lower()
            items = [one for key, one in sorted(self.store.all.items()) if self.kind(key) == kind]
        else:
            parent = path.split("/providers/")[1].split("/")
            if len(parent) > 2:
                self.store.get(path.rsplit("/", 1)[0])
            items = self.store.list(path)
        if request.query.get("$expand") == "instanceView" and "/virtualmachinescalesets/" not in low and "$filter" not in request.query:
            raise refused(400, "InvalidParameter", "The expand expression needs a filter in this list.")
        view = request.query.get("$expand") == "instanceView" or request.query.get("statusOnly") == "true"
        try:
            some, following = page(items, request.query.get("$skiptoken"), self.page_size)
        except ValueError as error:
            raise refused(400, "InvalidSkipToken", str(error)) from error
        value = {"value": [self.shown(one, view) for one in some]}
        if following:
            target = re.sub(r"[?&]\$skiptoken=[^&]*|[?&]%24skiptoken=[^&]*", "", request.target)
            value["nextLink"] = f"http://{request.headers['host']}{target}&$skiptoken={following}"
        return Answer(value=value)

    def put(self, request, path):
        kind = self.kind(path)
        if kind in ("disks", "snapshots") or kind.endswith("virtualmachines"):
            return self.put_compute(request, path, kind)
        if kind not in KINDS:
            raise refused(405, "MethodNotAllowed", f"PUT of {kind} is not for Cloudwit")
        body = request.json()
        check(kind, body)
        self.store.conditions(path, request.headers)
        if "/" not in kind and body.get("location", "").lower() != LOCATION:
            raise refused(400, "LocationRequired", "The location property is required for this definition.")
        if kind == "routetables":
            self.routes(path, body)
        else:
            self.network.check(kind, path, body)
        body = {key: value for key, value in body.items() if key not in ("id", "name", "type", "etag")}
        there, operation, created = self.store.change(path, body, f"Microsoft.Network/{KINDS[kind]}")
        if kind == "privatelinkservices":
            self.network.links.renew_balancer(there)
        return Answer(201 if created else 200, self.shown(there, False), self.following(request, operation))

    def put_compute(self, request, path, kind):
        body = request.json()
        check(kind, body)
        if kind.endswith("virtualmachines"):
            self.store.get(path)
        self.store.conditions(path, request.headers)
        if body.get("location", "").lower() != LOCATION:
            raise refused(400, "LocationRequired", "The location property is required for this definition.")
        if kind.endswith("virtualmachines"):
            there, operation = self.disks.put_machine(path, kind, body)
            return self.disks.answer(request, operation, self.shown(there, False), 200)
        there, operation = self.disks.put(path, kind, body)
        return self.disks.answer(request, operation, self.shown(there, False))

    def delete(self, request, path):
        if path.lower() not in self.store.all:
            return Answer(204)
        if self.kind(path) in ("disks", "snapshots"):
            self.store.conditions(path, request.headers)
            return self.disks.answer(request, self.disks.delete(path))
        self.store.conditions(path, request.headers)
        self.network.check_deletion(path)
        if self.kind(path) == "privatelinkservices":
            self.network.links.renew_balancer(self.store.get(path))
        operation = self.store.remove(path)
        return Answer(202, headers=self.following(request, operation))

    def following(self, request, operation):
        """Where to ask how an operation goes on."""
        link = f"http://{request.headers['host']}/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Network/locations/{LOCATION}"
        return {"Azure-AsyncOperation": f"{link}/operations/{operation.name}?api-version={request.query['api-version']}", "Retry-After": "1"}

    def routes(self, path, body):
        """What Azure insists on beyond the model."""
        seen, names = set(), set()
        routes = body.setdefault("properties", {}).setdefault("routes", [])
        if len(routes) > ROUTES:
            raise refused(400, "RouteTableRouteLimitExceeded", f"Cannot create more than {ROUTES} routes in a route table.")
        for route in routes:
            name, properties = route.get("name"), route.get("properties", {})
            if not name or name.lower() in names:
                raise refused(400, "InvalidResourceName", f"The name {name} is missing or there twice.")
            if properties.get("addressPrefix") in seen:
                raise refused(400, "RouteConflict", f"Route {name} conflicts with another one of {properties['addressPrefix']}.")
            if properties.get("nextHopType") == "VirtualAppliance" and not properties.get("nextHopIpAddress"):
                raise refused(400, "RouteNextHopIpAddressRequired", f"Route {name} needs a next hop.")
            names.add(name.lower())
            seen.add(properties.get("addressPrefix"))
            route["id"] = f"{path}/routes/{name}"

    def operation(self, name):
        operation = self.store.operations.get(name)
        if operation is None:
            raise missing(f"/s/x/r/x/p/operations/{name}")
        if isinstance(operation.error, Refused):
            return Answer(value={"status": "Failed", "error": operation.error.answer.value["error"]})
        if operation.error is not None:
            return Answer(value={"status": "Failed", "error": {"code": "InternalServerError", "message": str(operation.error)}})
        if operation.done:
            return Answer(value={"status": "Succeeded"})
        return Answer(value={"status": "InProgress"}, headers={"Retry-After": "1"})

    # What only an administrator does.

    def do_account(self):
        return {
            "tenant": TENANT, "client": CLIENT, "secret": SECRET, "federated": FEDERATED, "identity": IDENTITY,
            "subscription": SUBSCRIPTION, "location": LOCATION, "private_key": self.access.private, "thumbprint": self.access.thumbprint,
        }

    def do_add_machine(self, name, **more):
        return self.machines.standalone(name, **more)

    def do_add_machines(self, prefix, count, **more):
        return [self.machines.standalone(f"{prefix}-{number}", **more)["id"] for number in range(count)]

    def do_add_scale_set(self, name, **more):
        return self.machines.scale_set(name, **more)["id"]

    def do_add_uniform(self, scale_set, number, computer, **more):
        return self.machines.uniform(scale_set, number, computer, **more)

    def do_power(self, id, state):
        self.store.get(id)["properties"]["instanceView"] = self.machines.view(state, 0)

    def do_put(self, path, resource):
        there = self.store.put(path, resource)
        if not self.disks.versions(path):
            self.store.renew(there)
        return there

    def do_get(self, path):
        self.store.operations.settle()
        return self.store.all.get(path.lower())

    def do_delete(self, path):
        self.store.all.pop(path.lower(), None)
        self.disks.let_go(path)

    def do_disks(self, **settings):
        """Sets `most` (data disks of each machine), `full` (zones, found so `at_once` or later), `limit` (of disks), `percent` (of new snapshots), `failing` (codes by verb) or `offline_only`."""
        for name, value in settings.items():
            assert hasattr(self.disks, name), name
            setattr(self.disks, name, value)

    def do_resources(self, kind):
        """All of a kind, by path."""
        self.store.operations.settle()
        return {path: one for path, one in self.store.all.items() if path.split("/")[-2] == kind.lower()}

    def do_connect(self, path, name):
        self.network.links.connect(path, name)

    def do_quota(self, kind, limit=None):
        self.network.limits[kind.lower()] = limit

    def do_operations_take(self, seconds):
        self.store.operations.seconds = seconds

    def do_finish(self):
        """All that is under way is done now."""
        self.store.operations.finish()

    def do_deny(self, paths):
        self.access.denied = [path.lower() for path in paths]

    def do_revoke_tokens(self):
        self.access.tokens.revoke_all()

    def do_tokens_issued(self):
        return self.access.tokens.issued
