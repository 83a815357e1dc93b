"""Three masters on one port, and the admin router of DC/OS: which is asked is the beginning of the path.

| path | who answers |
| ---- | ----------- |
| `/mesos/...` | the leading master, behind DC/OS: a token is needed |
| `/basic/...` | the leading master, which wants a principal |
| `/follower/...` | another master: it redirects to the leading one |
| anything else | the leading master |
"""

import itertools
import re
import uuid

from frame import Answer, Cloud, Refused
from mesos.access import Access

LOGIN = "/acs/api/v1/auth/login"


class Masters(Cloud):
    def __init__(self):
        self.access, self.agents, self.registry = Access(), {}, {"admitted": [], "unreachable": [], "gone": []}
        self.id, self.numbers, self.leads = str(uuid.uuid4()), itertools.count(), True

    def call_name(self, request):
        return f"{request.method} {re.sub(r'^/(mesos|basic|follower)(?=/)', '', request.path)}"

    def answer(self, request):
        if (request.method, request.path) == ("POST", LOGIN):
            return self.access.login(request.json())
        if request.method != "GET":
            raise Refused(405, "")
        found = re.fullmatch(r"(?:/(mesos|basic|follower))?(/.*)", request.path)
        entry, path = found.groups()
        header = request.headers.get("authorization", "")
        if entry == "mesos":
            self.access.check_token(header)
        if entry == "basic":
            self.access.check_basic(header)
        if not self.leads:
            raise Refused(503, "No leader elected")
        if entry == "follower" and path.startswith("/master/"):
            # As Mesos has it: without the scheme.
            return Answer(307, None, {"Location": f"//{request.headers['host']}{path}"})
        match path:
            case "/master/slaves":
                agents = [one for one in self.agents.values() if request.query.get("slave_id", one["id"]) == one["id"]]
                shown = lambda one, names: {name: one[name] for name in names if name in one}
                registered = [shown(one, one.keys() - {"recovered"}) for one in agents if not one["recovered"]]
                recovered = [shown(one, ["id", "hostname", "port", "attributes", "domain"]) for one in agents if one["recovered"]]
                return Answer(value={"slaves": registered, "recovered_slaves": recovered})
            case "/master/state-summary":
                # Documented: "cluster" is left out where --cluster is not given.
                return Answer(value={"hostname": "127.0.0.1", "cluster": "stand-in", "slaves": [], "frameworks": []})
            case "/registrar(1)/registry" if entry == "follower":
                # It has not recovered it, and does not redirect.
                return Answer(value={})
            case "/registrar(1)/registry":
                of = lambda kind: {"slaves": [{"id": {"value": id}, "timestamp": {"nanoseconds": 1}} for id in self.registry[kind]]}
                admitted = [{"info": {"id": {"value": id}, "hostname": self.agents[id]["hostname"]}} for id in self.registry["admitted"]]
                registry = {"master": {"info": {"id": self.id}}, "slaves": {"slaves": admitted}}
                return Answer(value=registry | {kind: of(kind) for kind in ("unreachable", "gone") if self.registry[kind]})
        raise Refused(404, "")

    # What only an administrator does.

    def do_account(self):
        return {"user": self.access.user, "password": self.access.password, "key": self.access.private_key()}

    def do_add_machine(self, name, attributes=None, zone=None, region=None):
        number = next(self.numbers)
        ip = f"10.8.{number >> 8}.{number & 255}"
        made = {
            "id": f"{self.id}-S{number}", "hostname": name, "port": 5051, "pid": f"slave(1)@{ip}:5051", "active": True, "version": "1.11.0", "recovered": False,
            "registered_time": 1600000000.0, "attributes": attributes or {}, "resources": {"cpus": 4.0, "mem": 14863.0, "ports": "[31000-32000]"},
        }
        if zone:
            made["domain"] = {"fault_domain": {"region": {"name": region}, "zone": {"name": zone}}}
        self.agents[made["id"]] = made
        self.registry["admitted"].append(made["id"])
        return {"id": made["id"], "ip": ip}

    def do_power(self, id, on):
        """Its connection breaks, and the master has not given it up yet."""
        self.agents[id]["active"] = on

    def do_delete(self, id, kind="gone"):
        """`gone`: the operator said so. `unreachable`: it was not heard of for long. `forgotten`: it was shut down."""
        self.registry["admitted"].remove(id)
        del self.agents[id]
        if kind != "forgotten":
            self.registry[kind].append(id)

    def do_recover(self, id, recovered):
        """The leading master is a new one, with which the agent has not registered yet."""
        self.agents[id]["recovered"] = recovered

    def do_lead(self, leads):
        self.leads = leads

    def do_expire(self):
        self.access.tokens.revoke_all()
