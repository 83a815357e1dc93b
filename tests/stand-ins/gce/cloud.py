"""The cloud: takes a request apart, has it checked, and gives it to whom it concerns."""

import re
import time

from frame import Answer, Cloud, Operations
from gce import fields
from gce.access import Access, EMAIL, KEY_ID
from gce.errors import OperationFailed, refused
from gce.lists import aggregated, listed
from gce.schema import Schema
from gce.store import Store
from gce.verbs import ASKING, VERBS, Verbs
from gce.world import World

BASE = "/compute/v1/"

# Kubernetes Engine, which has a host of its own.
CONTAINER = "/v1/"


def shown(value):
    """Without what the stand-in keeps for itself."""
    if isinstance(value, list):
        return [shown(item) for item in value]
    if isinstance(value, dict):
        return {name: shown(item) for name, item in value.items() if not name.startswith("_")}
    return value


class Gce(World, Cloud):
    def __init__(self):
        self.schema, self.container_schema = Schema(), Schema("container.v1")
        self.access = Access()
        self.operations = Operations()
        self.host = "127.0.0.1"
        self.store = Store(lambda: f"http://{self.host}{BASE}")
        self.verbs = Verbs(self)
        self.page = 500
        self.snapshots_begin, self.disks_most = "READY", None
        self.make_world()

    def answer(self, request):
        self.host = request.headers.get("host", self.host)
        self.operations.settle()
        if request.path == "/token":
            return self.access.token(request)
        if request.path.startswith("/computeMetadata/"):
            return self.access.metadata(request, self.project, self.zone, self.network, self.machine)
        if request.path.startswith(CONTAINER):
            return self.container(request)
        if not request.path.startswith(BASE):
            raise refused(404, "notFound", f"there is nothing at {request.path}")
        method, values = self.schema.method(request)
        self.access.check(request, method)
        answer = shown(self.obey(method, values, request))
        self.schema.check_answer(method, answer)
        if "fields" in request.query:
            answer = fields.pick(answer, fields.parse(request.query["fields"]))
        return Answer(value=answer)

    def container(self, request):
        method, values = self.container_schema.method(request)
        self.access.check(request, method)
        if method["id"] != "container.projects.locations.clusters.list":
            raise refused(501, "notImplemented", f"the stand-in does not know {method['id']}")
        project, location = re.fullmatch(r"projects/([^/]+)/locations/([^/]+)", values["parent"]).groups()
        self.insist_on_place(request.path, {"project": project})
        found = [one for one in self.clusters if project == "demo" and location in ("-", one["location"])]
        answer = {"clusters": found} if found else {}
        self.container_schema.check_answer(method, answer)
        if "fields" in request.query:
            answer = fields.pick(answer, fields.parse(request.query["fields"]))
        return Answer(value=answer)

    def obey(self, method, values, request):
        path = request.path.removeprefix(BASE)
        verb = method["id"].rsplit(".", 1)[1]
        self.insist_on_place(path, values)
        if "Operations." in method["id"]:
            return self.operation(values["operation"], path, verb == "wait")
        match verb:
            case "get":
                return self.store.get(path)
            case "list":
                return listed(self, method, path, request.query)
            case "aggregatedList":
                return aggregated(self, method, values, request.query)
            case "listInstances":
                return self.verbs.list_instances(path, request)
        if verb in VERBS:
            more = {"query": request.query} if verb in ASKING else {}
            return getattr(self.verbs, VERBS[verb])(method, path, request.json(), **more)
        raise refused(501, "notImplemented", f"the stand-in does not know {method['id']}")

    def begin(self, kind, path, finish):
        """An operation on this path, as an answer."""
        scope = re.match(r"projects/[^/]+/(zones/[^/]+|regions/[^/]+|global)", path)
        scope = scope[0] if scope else f"{path}/global"
        begun = self.operations.begin(finish, kind=kind, path=path, scope=scope)
        return self.show(begun)

    def operation(self, name, path, wait):
        found = self.operations.get(name)
        if found is not None and wait:
            time.sleep(max(0, found.due - time.monotonic()))
            self.operations.settle()
        scope = path.split("/operations/")[0]
        if found is None or found.details["scope"] != scope:
            raise refused(404, "notFound", f"The resource '{path}' was not found")
        return self.show(found)

    def show(self, operation):
        details = operation.details
        shown = {
            "kind": "compute#operation",
            "name": operation.name,
            "operationType": details["kind"],
            "targetLink": self.store.link(details["path"]),
            "selfLink": self.store.link(f"{details['scope']}/operations/{operation.name}"),
            "status": "DONE" if operation.done else "RUNNING",
            "progress": 100 if operation.done else 0,
        }
        error = operation.error
        if error is not None:
            if not isinstance(error, OperationFailed):
                raise error
            shown["error"] = {"errors": [{"code": error.code, "message": error.message}]}
            shown["httpErrorStatusCode"], shown["httpErrorMessage"] = error.status, error.code
        return shown

    def call_name(self, request):
        if request.path.startswith(CONTAINER):
            return "container"
        if not request.path.startswith(BASE):
            return request.path
        for pattern, _, method in self.schema.methods.get(request.method, []):
            if pattern.fullmatch(request.path.removeprefix("/")):
                return method["id"].removeprefix("compute.")
        return "unknown"

    def do_key(self):
        """What is in a service account's key file."""
        return {"client_email": EMAIL, "private_key_id": KEY_ID, "private_key": self.access.private}
