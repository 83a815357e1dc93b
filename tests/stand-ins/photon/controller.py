"""The controller: who asks, tenants and projects, machines, tasks. Below `/open` nobody is asked who he is."""

import re
import uuid

from frame import Answer, Cloud, Operations, Refused, Tokens, page

PAGE = 50
TOKEN = "/openidconnect/token"


def refused(status, code, message):
    return Refused(status, {"code": code, "message": message, "data": {}})


class Controller(Cloud):
    def __init__(self):
        self.user, self.password = "cloudwit@photon.local", "a secret&of 100%"
        self.tokens, self.tasks, self.machines = Tokens(), Operations(0), {}
        self.tenant, self.project = {"id": "t-1", "kind": "tenant", "name": "demo"}, {"id": "p-1", "kind": "project", "name": "nodes"}

    def call_name(self, request):
        path = re.sub(r"^(/open)?/v1(?=/)", "", request.path)
        return f"{request.method} {re.sub(r'[0-9a-f]{8}-[0-9a-f-]{27}|operation-[0-9]+', '{id}', path)}"

    def answer(self, request):
        if (request.method, request.path) == ("POST", TOKEN):
            return self.token(request.form())
        if request.method != "GET":
            raise Refused(405, "")
        found = re.fullmatch(r"(/open)?/v1(/.*)", request.path)
        if not found:
            raise Refused(404, "<html>not found</html>", {"Content-Type": "text/html"})
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if not found[1] and (kind != "Bearer" or not self.tokens.valid(token)):
            raise refused(401, "ExpiredAuthToken", "Auth token has expired")
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
                return self.project
            case ["projects", "p-1", "vms"]:
                some, following = page(list(self.machines.values()), query.get("pageLink"), PAGE)
                found = {"items": [self.machine(one) for one in some]}
                return found | ({"nextPageLink": f"/v1/projects/p-1/vms?pageLink={following}"} if following else {})
            case ["vms", id]:
                return self.machine(self.known(id))
            case ["vms", id, "subnets"]:
                self.known(id)
                return self.task(self.tasks.begin(lambda: None, machine=id))
            case ["tasks", id]:
                found = self.tasks.get(id)
                if found is None:
                    raise refused(404, "TaskNotFound", f"Task {id} not found")
                return self.task(found)
        raise refused(404, "NotFound", f"nothing at {path}")

    def known(self, id):
        if id not in self.machines:
            raise refused(404, "VmNotFound", f"VM {id} not found")
        return self.machines[id]

    def machine(self, one):
        return {"id": one["id"], "kind": "vm", "name": one["name"], "state": one["state"], "flavor": one["flavor"], "host": "10.1.1.1", "attachedDisks": [], "tags": []}

    def task(self, task):
        id = task.details["machine"]
        shown = {"id": task.name, "state": "COMPLETED" if task.done else "STARTED", "operation": "GET_NETWORKS", "entity": {"id": id, "kind": "vm"}, "steps": []}
        if task.done:
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

    def do_tasks_take(self, seconds):
        self.tasks.seconds = seconds

    def do_expire(self):
        self.tokens.revoke_all()
