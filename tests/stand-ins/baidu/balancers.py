"""Load balancers: every change is begun at once and made later, and meanwhile no other one is taken."""

from baidu.compute import SUBNET, VPC
from baidu.errors import fields, missing, quota, refused, unfinished, unfit, wrong

SCHEDULERS = ("RoundRobin", "LeastConnection", "Hash")
KINDS = ("TCP", "UDP")
# Bounds and defaults of BLB's API reference.
CHECKS = {"healthCheckTimeoutInSecond": (1, 60), "healthCheckInterval": (1, 10), "unhealthyThreshold": (2, 5), "healthyThreshold": (2, 5)}
OTHERS = {"TCP": "healthCheckType tcpSessionTimeout", "UDP": "healthCheckType healthCheckPort healthCheckString udpSessionTimeout"}
MOST_BACKENDS = 50


class Balancers:
    def __init__(self, ids, operations, machines):
        self.ids, self.operations, self.machines = ids, operations, machines
        self.all, self.limit = {}, None
        self.silent_failures = 0
        """So many of the next changes come to nothing, and nobody says so."""

    def get(self, id):
        self.operations.settle()
        if id not in self.all:
            raise missing("blb", id)
        return self.all[id]

    def shown(self, blb):
        return {name: value for name, value in blb.items() if name not in ("listeners", "backends")}

    def list(self, query):
        self.operations.settle()
        exactly = query.get("exactlyMatch") == "true"
        found = list(self.all.values())
        for field in ("name", "blbId", "address"):
            if (value := query.get(field)) is not None:
                found = [one for one in found if (one[field] == value if exactly else value in one[field])]
        return [self.shown(one) for one in found]

    def detail(self, id):
        blb = self.get(id)
        return self.shown(blb) | {"listener": [{"port": str(port), "type": kind} for kind, port in blb["listeners"]]}

    def create(self, body):
        body = fields(body, "vpcId subnetId", "name desc tags")
        if body["vpcId"] != VPC or body["subnetId"] not in (SUBNET, "sbn-other"):
            raise missing("subnet", body["subnetId"])
        if len(body.get("name", "").encode()) > 65:
            raise wrong("the name is longer than 65 bytes")
        if self.limit is not None and len(self.all) >= self.limit:
            raise quota("Blb")
        id = self.ids.new("lb")
        blb = self.all[id] = {
            "blbId": id, "name": body.get("name", id), "desc": body.get("desc", ""), "status": "creating", "address": f"192.168.1.{len(self.all) + 1}",
            "publicIp": "", "vpcId": VPC, "subnetId": body["subnetId"], "tags": body.get("tags"), "allowDelete": True, "listeners": {}, "backends": {},
        }
        self.operations.begin(lambda: blb.update(status="available"))
        return {"blbId": id, "name": blb["name"], "desc": blb["desc"], "address": blb["address"]}

    def change(self, id, make):
        """`make(blb)` is called when the cloud gets to it."""
        blb = self.get(id)
        if blb["status"] != "available":
            raise unfinished()
        blb["status"] = "updating"
        fails, self.silent_failures = self.silent_failures > 0, max(0, self.silent_failures - 1)

        def finish():
            blb["status"] = "available"
            if not fails:
                make(blb)

        self.operations.begin(finish)

    def update(self, id, body):
        body = fields(body, "", "name desc")
        self.change(id, lambda blb: blb.update(body))

    def delete(self, id):
        blb = self.get(id)
        if blb["publicIp"]:
            raise unfit(f"{id} has an EIP.")
        self.change(id, lambda blb: self.all.pop(blb["blbId"]))

    # Listeners.

    def listeners(self, id, kind):
        return [{"listenerPort": port, **one} for (of, port), one in self.get(id)["listeners"].items() if of == kind]

    def checked(self, kind, body):
        for name in ("listenerPort", "backendPort"):
            if name in body and not 1 <= body[name] <= 65535:
                raise wrong(f"{name} is out of range")
        for name, (least, most) in CHECKS.items():
            if name in body and not least <= body[name] <= most:
                raise wrong(f"{name} is out of range")
        if body.get("scheduler", "Hash") not in SCHEDULERS:
            raise wrong("there is no such scheduler")
        return body

    def create_listener(self, id, kind, body):
        needed = "listenerPort backendPort scheduler" + (" healthCheckString" if kind == "UDP" else "")
        body = dict(self.checked(kind, fields(body, needed, " ".join(CHECKS) + " " + OTHERS[kind])))
        port = body.pop("listenerPort")
        if (kind, port) in self.get(id)["listeners"]:
            raise refused(400, "ListenerAlreadyExist", "Listener already exists.")
        whole = {name: 3 for name in CHECKS} | {"healthCheckType": kind} | body
        self.change(id, lambda blb: blb["listeners"].update({(kind, port): whole}))

    def update_listener(self, id, kind, port, body):
        body = self.checked(kind, fields(body, "", "backendPort scheduler " + " ".join(CHECKS) + " " + OTHERS[kind]))
        listener = self.get(id)["listeners"].get((kind, int(port)))
        if listener is None:
            raise refused(404, "ListenerNotFound", "The specified listener does not exist.")
        self.change(id, lambda _: listener.update(body))

    def delete_listeners(self, id, body):
        body = fields(body, "", "portList portTypeList")
        ports = [(kind, port) for port in body.get("portList", []) for kind in KINDS]
        ports += [(one["type"], one["port"]) for one in body.get("portTypeList", [])]
        there = self.get(id)["listeners"]
        if not ports or not set(ports) & set(there):
            raise refused(404, "ListenerNotFound", "The specified listener does not exist.")
        self.change(id, lambda blb: [blb["listeners"].pop(port, None) for port in ports])

    # Machines behind them.

    def backends(self, id):
        return [{"instanceId": one, "weight": weight, "privateIp": self.machines.get(one, {}).get("internalIp", "")} for one, weight in self.get(id)["backends"].items()]

    def add_backends(self, id, body):
        servers = fields(body, "backendServerList")["backendServerList"]
        there = self.get(id)["backends"]
        for one in servers:
            fields(one, "instanceId weight")
            if self.machines.get(one["instanceId"], {}).get("vpcId") != VPC:
                raise refused(404, "BackendServerNotFound", "The specified backend server does not exist.")
            if one["instanceId"] in there:
                raise refused(400, "BackendServerAlreadyExist", "Backend server already exists.")
        if len(there) + len(servers) > MOST_BACKENDS:
            raise quota("BackendServer")
        self.change(id, lambda blb: blb["backends"].update({one["instanceId"]: one["weight"] for one in servers}))

    def remove_backends(self, id, body):
        servers = fields(body, "backendServerList")["backendServerList"]
        if lacking := [one for one in servers if one not in self.get(id)["backends"]]:
            raise refused(404, "BackendServerNotFound", f"The specified backend server does not exist: {lacking}")
        self.change(id, lambda blb: [blb["backends"].pop(one) for one in servers])
