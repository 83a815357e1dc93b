"""The engine: who asks, which machines there are, and what only an administrator does."""

import base64
import re
import uuid

from frame import Answer, Cloud, Refused, Tokens
from ovirt import search
from ovirt.forms import written

API = "/ovirt-engine/api"
TOKEN = "/ovirt-engine/sso/oauth/token"
LINKS = {"nics", "nics.reporteddevices", "affinitylabels"}
"""What can be followed from a machine."""


class Engine(Cloud):
    def __init__(self):
        self.user, self.password = "admin@internal", "a pass&word+of 100%"
        self.tokens, self.signs_on = Tokens(), True
        self.machines, self.clusters, self.labels = {}, {}, {}
        self.center = {"id": str(uuid.uuid4()), "href": f"{API}/datacenters/1", "name": "North"}

    def call_name(self, request):
        path = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "{id}", request.path.removeprefix(API))
        return f"{request.method} {path}"

    def answer(self, request):
        if request.path == TOKEN and request.method == "POST":
            return self.token(request.form())
        if not request.path.startswith(f"{API}"):
            return Answer(404, "<html><body>404 - Not Found</body></html>", {"Content-Type": "text/html"})
        self.check(request.headers.get("authorization", ""))
        if request.method != "GET":
            raise Refused(405, "")
        accept = request.headers.get("accept", "application/xml")
        try:
            name, value = self.shown(request.path.removeprefix(API), request.query)
        except Refused as refused:
            if refused.answer.value is None:
                raise
            body, kind = written(accept, "fault", refused.answer.value)
            return Answer(refused.answer.status, body, {"Content-Type": kind})
        body, kind = written(accept, name, value)
        return Answer(200, body, {"Content-Type": kind})

    def token(self, form):
        wrong = lambda code, text: Answer(400, {"error_code": code, "error": text})
        if not self.signs_on:
            return wrong("server_error", "null")
        if form.get("grant_type") != "password" or form.get("scope") != "ovirt-app-api":
            return wrong("invalid_request", f"The request asks for a token by {form.get('grant_type')} for {form.get('scope')}")
        if (form.get("username"), form.get("password")) != (self.user, self.password):
            return wrong("access_denied", f"Cannot authenticate user '{form.get('username')}' - invalid credentials")
        never = str(2**63 - 1)
        return Answer(value={"access_token": self.tokens.issue(), "scope": "ovirt-app-api", "exp": never, "token_type": "bearer"})

    def check(self, header):
        kind, _, rest = header.partition(" ")
        basic = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
        if not (kind == "Bearer" and self.tokens.valid(rest)) and not (kind == "Basic" and rest == basic):
            page = "<html><head><title>Error</title></head><body>Unauthorized</body></html>"
            raise Refused(401, page, {"WWW-Authenticate": 'Basic realm="RESTAPI"', "Content-Type": "text/html"})

    def shown(self, path, query):
        follow = {name.strip() for name in query.get("follow", "").split(",") if name.strip()}
        if path.endswith("/nics"):
            follow = {f"nics.{name}" for name in follow}
        if follow - LINKS:
            raise Refused(400, {"reason": "Operation Failed", "detail": f"[Cannot follow {sorted(follow - LINKS)}]"})
        fields = lambda one: {"name": [one["name"]], "fqdn": [one.get("fqdn") or ""], "tag": one["tags"], "status": [one["status"]]}
        match path.strip("/").split("/"):
            case ["vms"]:
                found = search.found(list(self.machines.values()), fields, query)
                return "vms", {"vm": [self.machine(one, follow) for one in found]}
            case ["vms", id] if id in self.machines:
                return "vm", self.machine(self.machines[id], follow)
            case ["vms", id, "nics"] if id in self.machines:
                return "nics", self.nics(self.machines[id], follow)
            case ["clusters"]:
                return "clusters", {"cluster": list(self.clusters.values())}
            case ["datacenters"]:
                return "data_centers", {"data_center": [self.center]}
        # An engine answers without a body.
        raise Refused(404)

    def machine(self, one, follow):
        href = f"{API}/vms/{one['id']}"
        shown = {"id": one["id"], "href": href, "name": one["name"], "status": one["status"], "memory": str(one["memory"])}
        shown["cpu"] = {"topology": {"cores": str(one["cores"]), "sockets": "1", "threads": "1"}}
        shown["cluster"] = {"id": one["cluster"], "href": f"{API}/clusters/{one['cluster']}"}
        if one.get("fqdn") and one["status"] == "up":
            shown["fqdn"] = one["fqdn"]
        if any(name.startswith("nics") for name in follow):
            shown["nics"] = self.nics(one, follow)
        if "affinitylabels" in follow:
            shown["affinity_labels"] = {"affinity_label": [self.labels[name] for name in one["labels"]]}
        shown["link"] = [{"rel": "nics", "href": f"{href}/nics"}, {"rel": "reporteddevices", "href": f"{href}/reporteddevices"}]
        return shown

    def nics(self, one, follow):
        nic = {"id": one["nic"], "href": f"{API}/vms/{one['id']}/nics/{one['nic']}", "name": "nic1", "mac": {"address": one["mac"]}}
        if "nics.reporteddevices" in follow:
            # What a guest that is off reported is not kept.
            ips = [{"address": ip, "version": "v6" if ":" in ip else "v4"} for ip in one["ips"]] if one["status"] == "up" else []
            device = {"id": one["nic"], "name": "eth0", "mac": {"address": one["mac"]}, "type": "network", "ips": {"ip": ips}}
            nic["reported_devices"] = {"reported_device": [device] if ips else []}
        return {"nic": [nic]}

    # What only an administrator does.

    def do_account(self):
        return {"user": self.user, "password": self.password}

    def do_sign_on(self, works):
        """Whether the single sign-on works; it says by 400 that it does not."""
        self.signs_on = works

    def do_add_machine(self, name, fqdn=None, cluster="Default", cores=2, memory=4 << 30, ips=None, labels=(), tags=()):
        number = len(self.machines) + 1
        ip = f"10.7.{number >> 8}.{number & 255}"
        known = next((one for one in self.clusters.values() if one["name"] == cluster), None)
        if known is None:
            id = str(uuid.uuid4())
            link = {"id": self.center["id"], "href": self.center["href"]}
            known = self.clusters[id] = {"id": id, "href": f"{API}/clusters/{id}", "name": cluster, "data_center": link}
        for label in labels:
            self.labels.setdefault(label, {"id": str(uuid.uuid4()), "name": label})
        made = {
            "id": str(uuid.uuid4()), "name": f"vm of {name}", "fqdn": fqdn or name, "status": "up", "cluster": known["id"], "cores": cores, "memory": memory,
            "nic": str(uuid.uuid4()), "mac": f"56:6f:00:00:{number >> 8:02x}:{number & 255:02x}", "ips": ["fe80::1", ip] if ips is None else ips,
            "labels": list(labels), "tags": list(tags),
        }
        self.machines[made["id"]] = made
        return {"id": made["id"], "ip": ip}

    def do_add_machines(self, prefix, count):
        return [self.do_add_machine(f"{prefix}-{number}")["id"] for number in range(count)]

    def do_power(self, id, on):
        self.machines[id]["status"] = "up" if on else "down"

    def do_delete(self, id):
        del self.machines[id]

    def do_expire(self):
        self.tokens.revoke_all()
