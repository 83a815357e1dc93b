"""The controller: who asks, tenants and projects, machines, disks, tasks. Below `/open` nobody is asked who he is."""

import re
import uuid

from frame import Answer, Cloud, Operations, Refused, Tokens, page

from photon.disks import Disks, of_task
from photon.errors import refused

PAGE = 50
TOKEN = "/openidconnect/token"
CHANGES = {"attach_disk": "ATTACH_DISK", "detach_disk": "DETACH_DISK"}


class Controller(Cloud):
    def __init__(self):
        self.user, self.password = "cloudwit@photon.local", "a secret&of 100%"
        self.tokens, self.tasks, self.machines = Tokens(), Operations(0), {}
        self.disks = Disks(["standard"], 20_000)
        self.tenant, self.project = {"id": "t-1", "kind": "tenant", "name": "demo"}, {"id": "p-1", "kind": "project", "name": "nodes"}

    def call_name(self, request):
        path = re.sub(r"^(/open)?/v1(?=/)", "", request.path)
        return f"{request.method} {re.sub(r'[0-9a-f]{8}-[0-9a-f-]{27}|operation-[0-9]+', '{id}', path)}"

    def answer(self, request):
        if (request.method, request.path) == ("POST", TOKEN):
            return self.token(request.form())
        found = re.fullmatch(r"(/open)?/v1(/.*)", request.path)
        if not found:
            raise Refused(404, "<html>not found</html>", {"Content-Type": "text/html"})
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if not found[1] and (kind != "Bearer" or not self.tokens.valid(token)):
            raise refused(401, "ExpiredAuthToken", "Auth token has expired")
        self.tasks.settle()
        if request.method != "GET":
            return Answer(201, self.task(self.changed(request.method, found[2], request.json())))
        return Answer(value=self.shown(found[2], request.query))

    def token(self, form):
        if form.get("grant_type") != "password" or "rs_photon_platform" not in form.get("scope", "").split():
            raise Refused(400, {"error": "invalid_request", "error_description": "grant_type or scope"})
        if (form.get("username"), form.get("password")) != (self.user, self.password):
            raise Refused(400, {"error": "invalid_grant", "error_description": "Invalid credentials"})
        return Answer(value={"access_token": self.tokens.issue(), "refresh_token": "r", "id_token": "i", "token_type": "Bearer", "expires_in": 7200})

    def shown(self, path, query):
        named = lambda one: {"items": [one] if query.get("name", one["name"]) == one["name"] else []}
        match path.strip("/").split("/"):
            case ["tenants"]:
                return named(self.tenant)
            case ["tenants", "t-1", "projects"]:
                return named(self.project)
            case ["projects", "p-1"]:
                return self.project | {"resourceTicket": self.disks.ticket()}
            case ["projects", "p-1", "vms"]:
                return self.paged("/projects/p-1/vms", [self.machine(one) for one in self.machines.values()], query)
            case ["projects", "p-1", "disks"]:
                named = [disk for disk in self.disks.all.values() if query.get("name", disk["name"]) == disk["name"]]
                return self.paged("/projects/p-1/disks", named, query)
            case ["flavors"]:
                flavors = [self.disks.flavor(name) for name in self.disks.flavors]
                return {"items": [one for one in flavors if query.get("kind", one["kind"]) == one["kind"]]}
            case ["disks", id]:
                return self.disks.known(id)
            case ["vms", id]:
                return self.machine(self.known(id))
            case ["vms", id, "subnets"]:
                self.known(id)
                return self.task(self.begin("GET_NETWORKS", ("vm", id), lambda: None))
            case ["tasks", id]:
                found = self.tasks.get(id)
                if found is None:
                    raise refused(404, "TaskNotFound", f"Task {id} not found")
                return self.task(found)
        raise refused(404, "NotFound", f"nothing at {path}")

    def paged(self, path, items, query):
        some, following = page(items, query.get("pageLink"), PAGE)
        return {"items": some} | ({"nextPageLink": f"/v1{path}?pageLink={following}"} if following else {})

    def changed(self, method, path, body):
        """The task of a change."""
        match (method, *path.strip("/").split("/")):
            case ("POST", "projects", "p-1", "disks"):
                disk = self.disks.made(body)
                return self.begin("CREATE_DISK", (disk["kind"], disk["id"]), lambda: self.disks.created(disk), [disk["id"]])
            case ("DELETE", "disks", id):
                disk = self.disks.known(id)
                self.disks.check(disk, "DELETE_DISK")
                return self.begin("DELETE_DISK", (disk["kind"], id), lambda: self.disks.deleted(disk), [id])
            case ("POST", "vms", id, ("attach_disk" | "detach_disk") as what):
                self.known(id)
                disk = self.disks.known((body or {}).get("diskId"))
                self.disks.check(disk, CHANGES[what])
                finish = (lambda: self.disks.attached(disk, id)) if what == "attach_disk" else (lambda: self.disks.detached(disk))
                return self.begin(CHANGES[what], ("vm", id), finish, [id, disk["id"]])
        raise refused(404, "NotFound", f"nothing to {method} at {path}")

    def begin(self, operation, entity, finish, locks=()):
        """A task. What it locks is for no other one meanwhile."""
        for running in self.tasks.running():
            if set(locks) & set(running.details["locks"]):
                raise refused(400, "ConcurrentTask", f"Entity is locked by the task {running.name}")
        return self.tasks.begin(finish, operation=operation, entity=entity, locks=list(locks))

    def known(self, id):
        if id not in self.machines:
            raise refused(404, "VmNotFound", f"VM {id} not found")
        return self.machines[id]

    def machine(self, one):
        return {"id": one["id"], "kind": "vm", "name": one["name"], "state": one["state"], "flavor": one["flavor"], "host": "10.1.1.1", "attachedDisks": self.disks.of_machine(one["id"]), "tags": []}

    def task(self, task):
        operation, (kind, id) = task.details["operation"], task.details["entity"]
        state = ("ERROR" if task.error else "COMPLETED") if task.done else "STARTED"
        step = {"sequence": 0, "operation": operation, "state": state} | ({"errors": [of_task(task.error)]} if task.error else {})
        shown = {"id": task.name, "state": state, "operation": operation, "entity": {"id": id, "kind": kind}, "steps": [step]}
        if task.done and operation == "GET_NETWORKS":
            one = self.machines.get(id, {"ips": []})
            connection = lambda ip: {"network": "VM Network", "macAddress": "00:0c:29:00:00:01", "ipAddress": ip, "netmask": "255.255.0.0", "isConnected": "True"}
            shown["resourceProperties"] = {"networkConnections": [connection(ip) for ip in one["ips"]]}
        return shown

    # What only an administrator does.

    def do_account(self):
        return {"user": self.user, "password": self.password}

    def do_add_machine(self, name, flavor="small 1", ips=None):
        number = len(self.machines) + 1
        ip = f"10.9.{number >> 8}.{number & 255}"
        made = {"id": str(uuid.uuid4()), "name": name, "state": "STARTED", "flavor": flavor, "ips": ["-", ip] if ips is None else ips}
        self.machines[made["id"]] = made
        return {"id": made["id"], "ip": ip}

    def do_add_machines(self, prefix, count):
        return [self.do_add_machine(f"{prefix}-{number}")["id"] for number in range(count)]

    def do_power(self, id, on):
        self.machines[id]["state"] = "STARTED" if on else "STOPPED"

    def do_delete(self, id):
        del self.machines[id]
        for disk in self.disks.all.values():
            if id in disk["vms"]:
                disk["state"], disk["vms"] = "DETACHED", []

    def do_disks(self):
        self.tasks.settle()
        return list(self.disks.all.values())

    def do_delete_disk(self, id):
        del self.disks.all[id]

    def do_limit_disks(self, gigabytes):
        self.disks.limit_gb = gigabytes

    def do_flavors(self, names):
        self.disks.flavors = names

    def do_fail(self, operation, code, message):
        """The next task of this operation fails."""
        self.disks.failures.append({"operation": operation, "code": code, "message": message})

    def do_tasks_take(self, seconds):
        self.tasks.seconds = seconds

    def do_expire(self):
        self.tokens.revoke_all()
