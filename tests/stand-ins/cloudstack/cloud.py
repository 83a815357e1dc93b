"""The cloud: who asks for which command with which parameters, pages, and what only an administrator does."""

import re
import uuid

from cloudstack.access import Access
from cloudstack.commands import COMMANDS, OF_ALL, known
from cloudstack.errors import ApiError, wrong
from cloudstack.lists import Lists
from cloudstack.network import Network
from cloudstack.store import Store
from frame import Answer, Cloud, Refused

PAGE = 500
"""`default.page.size`."""
ZONE = "zone-1"
TAG = re.compile(r"tags\[(\d+)\]\.(key|value)")


class CloudStack(Cloud):
    def __init__(self):
        self.access, self.store = Access(), Store()
        self.network = Network(self.store)
        self.lists = Lists(self.store, self.network)
        self.project = self.store.add("projects", {"name": "demo"})["id"]
        self.empty = self.store.add("projects", {"name": "empty"})["id"]
        for name in ("default_allow", "default_deny"):
            self.store.add("acls", {"name": name})
        self.numbers = {}
        self.nodes = self.do_add_network("nodes")["id"]
        for number in range(10, 250):
            self.store.add("addresses", self.free(f"203.0.113.{number}"))
        self.store.add("addresses", self.free("203.0.113.1") | {
            "state": "Allocated", "allocated": "2026-01-01T00:00:00+0000", "issourcenat": True, "projectid": self.project, "associatednetworkid": self.nodes,
        })
        listed, network = self.lists, self.network
        self.handlers = {
            "listVirtualMachines": listed.machines, "listNetworks": listed.networks, "listPublicIpAddresses": listed.addresses,
            "listLoadBalancerRules": listed.rules, "listLoadBalancerRuleInstances": listed.members, "listFirewallRules": listed.firewall,
            "listNetworkACLLists": listed.acls, "listNetworkACLs": listed.openings,
            "listPortForwardingRules": lambda _: ("portforwardingrule", []), "listIpForwardingRules": lambda _: ("ipforwardingrule", []),
        }
        self.changes = {
            "associateIpAddress": lambda projectid=None, **more: network.associate(projectid, **more), "disassociateIpAddress": network.disassociate,
            "createTags": network.tag, "createLoadBalancerRule": network.create_rule, "updateLoadBalancerRule": network.update_rule,
            "deleteLoadBalancerRule": network.delete_rule, "assignToLoadBalancerRule": network.assign, "removeFromLoadBalancerRule": network.withdraw,
            "createFirewallRule": network.open, "deleteFirewallRule": network.close, "createNetworkACL": network.allow, "deleteNetworkACL": network.forbid,
        }

    def free(self, ip):
        return {
            "ipaddress": ip, "state": "Free", "allocated": "", "issourcenat": False, "isstaticnat": False, "zonename": ZONE, "tags": [], "projectid": None,
            "vpcid": None, "associatednetworkid": None,
        }

    def parameters(self, request):
        return request.query | (request.form() if request.method == "POST" else {})

    def call_name(self, request):
        return self.parameters(request).get("command", "")

    def answer(self, request):
        if request.path.rstrip("/") != "/client/api":
            return Answer(404, "<html><body>Error 404 Not Found</body></html>", {"Content-Type": "text/html"})
        if request.method not in ("GET", "POST"):
            raise Refused(405, "")
        parameters = self.parameters(request)
        command = parameters.get("command", "")
        key = f"{command.lower()}response"
        try:
            if parameters.get("response") != "json":
                raise wrong("the stand-in answers in JSON alone: response=json")
            self.access.check(parameters)
            if command not in COMMANDS or command in self.access.denied:
                key = "errorresponse"
                raise ApiError(432, f"The given command:{command} does not exist or it is not available for user")
            value = self.run(command, self.checked(command, parameters))
        except ApiError as error:
            raise error.refused(key) from error
        return Answer(value={key: value}, headers={"Content-Type": "application/json; charset=utf-8"})

    def checked(self, command, parameters):
        """The command's own parameters, with tags as a list. CloudStack reads past what it does not know; here that is refused."""
        needed, all = known(command)
        own, tags = {"command": command}, {}
        for name, value in parameters.items():
            if name.lower() in OF_ALL:
                continue
            if found := TAG.fullmatch(name):
                tags.setdefault(found[1], {})[found[2]] = value
                name = "tags"
            if name.lower() not in all:
                raise wrong(f"{command} has no parameter {name}")
            own[name.lower()] = value
        if tags:
            own["tags"] = [tags[number] for number in sorted(tags)]
            if any(set(tag) != {"key", "value"} for tag in own["tags"]):
                raise wrong("a tag has a key and a value")
        for name in sorted(needed):
            if not own.get(name):
                raise wrong(f"Unable to execute API command {command.lower()} due to missing parameter {name}")
        return own

    def run(self, command, parameters):
        if command == "listCapabilities":
            return {"capability": {"cloudstackversion": self.network.version, "securitygroupsenabled": False, "apilimitmax": 25}}
        if command == "queryAsyncJobResult":
            return self.store.looked_at(parameters["jobid"])
        if command in self.changes:
            return self.changes[command](**{name: value for name, value in parameters.items() if name != "command"})
        return self.page(*self.handlers[command](parameters), parameters)

    def page(self, name, items, parameters):
        size = int(parameters.get("pagesize", PAGE))
        if size > PAGE:
            raise wrong(f"Page size can't exceed max allowed page size value: {PAGE}")
        start = (int(parameters.get("page", 1)) - 1) * size
        some = items[start : start + size]
        # An empty list is no list at all.
        return {"count": len(items), name: some} if some else {}

    # What only an administrator does.

    def do_account(self):
        access = self.access
        return {"key": access.key, "secret": access.secret, "project": self.project, "empty": self.empty, "network": self.nodes, "zone": ZONE}

    def do_add_network(self, name, services=("Lb", "Firewall", "Dhcp"), vpc=False, acl=None):
        made = {"name": name, "zonename": ZONE, "services": list(services), "projectid": self.project, "vpcid": None, "aclid": None, "state": "Implemented"}
        if vpc:
            made["vpcid"] = str(uuid.uuid4())
            of_name = [one for one in self.store.kinds["acls"].values() if one["name"] == acl]
            made["aclid"] = (of_name or [self.store.add("acls", {"name": acl, "projectid": self.project})])[0]["id"]
        made = self.store.add("networks", made)
        self.numbers[made["id"]] = 0
        return made

    def do_add_machine(self, name, network=None, state="Running", zone=ZONE, offering="Small Instance", publicip=None, project="demo"):
        network = network or self.nodes
        self.numbers[network] += 1
        number = self.numbers[network]
        ip = f"10.{list(self.numbers).index(network) + 1}.{number >> 8}.{number & 255}"
        nic = {"id": str(uuid.uuid4()), "networkid": network, "ipaddress": ip, "isdefault": True, "traffictype": "Guest", "type": "Isolated"}
        machine = self.store.add("machines", {
            "name": name, "displayname": name, "state": state, "zonename": zone, "zoneid": "z-1", "serviceofferingname": offering,
            "serviceofferingid": "o-1", "templateid": "t-1", "templatename": "Debian", "templatedisplaytext": "Debian", "hypervisor": "KVM",
            "created": "2026-01-01T00:00:00+0000", "account": "demo", "domain": "ROOT", "securitygroup": [], "affinitygroup": [], "tags": [],
            "passwordenabled": False, "memory": 1024, "cpunumber": 1, "publicip": publicip, "nic": [nic],
            "projectid": self.project if project == "demo" else None,
        })
        return {"id": machine["id"], "ip": ip}

    def do_add_machines(self, prefix, count):
        return [self.do_add_machine(f"{prefix}-{number}")["id"] for number in range(count)]

    def do_power(self, id, state):
        self.store.kinds["machines"][id]["state"] = state

    def do_delete(self, kind, id):
        """As if somebody else had; a machine is expunged, and is behind no load balancer any more."""
        self.store.remove(kind, id)
        for rule in self.store.kinds["rules"].values():
            rule["machines"] = [one for one in rule["machines"] if one != id]

    def do_resources(self, kind):
        """All of a kind, by id; of addresses those that were associated."""
        self.store.operations.settle()
        found = self.store.kinds[kind]
        return {id: one for id, one in found.items() if kind != "addresses" or (one["allocated"] and not one["issourcenat"])}

    def do_change(self, kind, id, fields):
        self.store.kinds[kind][id] |= fields

    def do_command(self, command, **parameters):
        """As another client of the account, at once."""
        seconds, self.store.operations.seconds = self.store.operations.seconds, 0
        try:
            value = self.run(command, self.checked(command, parameters))
            self.store.operations.settle()
            return self.store.looked_at(value["jobid"])["jobresult"] if "jobid" in value else value
        finally:
            self.store.operations.seconds = seconds

    def do_quota(self, limit=None):
        self.network.limit = limit

    def do_version(self, version):
        self.network.version = version

    def do_operations_take(self, seconds):
        self.store.operations.seconds = seconds

    def do_finish(self):
        """All that is under way is done now."""
        self.store.operations.finish()

    def do_fail_jobs(self, command, code, text, times=1):
        self.store.failures.append({"command": command, "code": code, "text": text, "times": times})

    def do_deny(self, commands):
        self.access.denied = set(commands)
