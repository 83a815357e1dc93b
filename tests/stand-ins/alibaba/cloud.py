"""The cloud: who asks for which action of which API, and what only an administrator does."""

import inspect
import uuid

from alibaba.access import Access, KEY, ROLE, SECRET
from alibaba.ecs import Ecs
from alibaba.errors import missing, refused
from alibaba.nlb import Nlb
from alibaba.schema import Schema
from alibaba.slb import Slb
from alibaba.vpc import Vpc
from frame import Answer, Cloud, Operations, Refused

REGION, ZONE, VPC = "cn-hangzhou", "cn-hangzhou-g", "vpc-nodes"
ECS, NET, CLB, NLB = "2014-05-26", "2016-04-28", "2014-05-15", "2022-04-30"
SETS = ["SetLoadBalancerName", "SetLoadBalancerDeleteProtection", "SetLoadBalancerModificationProtection", "ModifyLoadBalancerInstanceSpec",
        "ModifyLoadBalancerInstanceChargeType", "ModifyLoadBalancerInternetSpec"]


class Alibaba(Cloud):
    def __init__(self):
        self.access, self.schema, self.operations = Access(), Schema(), Operations(0)
        self.ecs = Ecs()
        self.vpc = Vpc(self.operations, self.ecs)
        self.slb, self.nlb = Slb(self.operations, self.ecs, REGION), Nlb(self.operations, self.ecs)
        self.table = self.vpc.add_table(VPC)
        slb, nlb, vpc = self.slb, self.nlb, self.vpc
        join = lambda one, given: one["SecurityGroupIds"].extend(given["SecurityGroupIds"])
        leave = lambda one, given: one.update(SecurityGroupIds=[id for id in one["SecurityGroupIds"] if id not in given["SecurityGroupIds"]])
        detach = lambda one, _: one.update(BandwidthPackageId="")
        self.actions = {
            (ECS, "DescribeInstances"): self.ecs.describe,
            (NET, "DescribeRouteTableList"): vpc.describe_tables, (NET, "DescribeRouteEntryList"): vpc.describe_entries,
            (NET, "CreateRouteEntries"): vpc.create, (NET, "DeleteRouteEntries"): vpc.delete,
            (CLB, "DescribeLoadBalancers"): slb.describe, (CLB, "CreateLoadBalancer"): slb.create, (CLB, "DeleteLoadBalancer"): slb.delete,
            (CLB, "TagResources"): slb.tag, (CLB, "UntagResources"): slb.untag,
            (CLB, "DescribeVServerGroups"): slb.describe_groups, (CLB, "DescribeVServerGroupAttribute"): slb.describe_group,
            (CLB, "CreateVServerGroup"): slb.create_group, (CLB, "AddVServerGroupBackendServers"): slb.add,
            (CLB, "RemoveVServerGroupBackendServers"): slb.remove, (CLB, "SetVServerGroupAttribute"): slb.weigh, (CLB, "DeleteVServerGroup"): slb.delete_group,
            (CLB, "DescribeLoadBalancerListeners"): slb.describe_listeners, (CLB, "StartLoadBalancerListener"): slb.start,
            (CLB, "DeleteLoadBalancerListener"): slb.delete_listener,
            (NLB, "ListLoadBalancers"): nlb.list, (NLB, "CreateLoadBalancer"): nlb.create, (NLB, "DeleteLoadBalancer"): nlb.delete,
            (NLB, "UpdateLoadBalancerAttribute"): nlb.change("UpdateLoadBalancerAttribute", dict.update),
            (NLB, "UpdateLoadBalancerAddressTypeConfig"): nlb.change("UpdateLoadBalancerAddressTypeConfig", dict.update),
            (NLB, "UpdateLoadBalancerZones"): nlb.change("UpdateLoadBalancerZones", lambda one, given: one.update(ZoneMappings=nlb.zones(given["ZoneMappings"]))),
            (NLB, "UpdateLoadBalancerProtection"): nlb.protecting,
            (NLB, "LoadBalancerJoinSecurityGroup"): nlb.change("LoadBalancerJoinSecurityGroup", join),
            (NLB, "LoadBalancerLeaveSecurityGroup"): nlb.change("LoadBalancerLeaveSecurityGroup", leave),
            (NLB, "AttachCommonBandwidthPackageToLoadBalancer"): nlb.change("AttachCommonBandwidthPackageToLoadBalancer", dict.update),
            (NLB, "DetachCommonBandwidthPackageFromLoadBalancer"): nlb.change("DetachCommonBandwidthPackageFromLoadBalancer", detach),
            (NLB, "TagResources"): nlb.tag, (NLB, "UntagResources"): nlb.untag, (NLB, "GetJobStatus"): nlb.status,
            (NLB, "ListServerGroups"): nlb.list_groups, (NLB, "CreateServerGroup"): nlb.create_group, (NLB, "DeleteServerGroup"): nlb.delete_group,
            (NLB, "UpdateServerGroupAttribute"): nlb.update_group, (NLB, "ListServerGroupServers"): nlb.servers,
            (NLB, "ListListeners"): nlb.list_listeners, (NLB, "CreateListener"): nlb.create_listener,
            (NLB, "UpdateListenerAttribute"): nlb.change_listener("UpdateListenerAttribute", "Configuring", dict.update),
            (NLB, "StartListener"): nlb.change_listener("StartListener", "Starting", lambda one, _: one.update(ListenerStatus="Running")),
            (NLB, "DeleteListener"): nlb.change_listener("DeleteListener", "Deleting", lambda one, _: nlb.listeners.pop(one["ListenerId"])),
        }
        self.actions |= {(CLB, name): slb.set for name in SETS}
        for protocol in ("tcp", "udp", "http", "https"):
            self.actions[CLB, f"CreateLoadBalancer{protocol.upper()}Listener"] = slb.creating(protocol)
            self.actions[CLB, f"SetLoadBalancer{protocol.upper()}ListenerAttribute"] = slb.setting(protocol)
        for name in ("AddServersToServerGroup", "RemoveServersFromServerGroup", "UpdateServerGroupServersAttribute"):
            self.actions[NLB, name] = nlb.change_servers(name)

    def parameters(self, request):
        return request.query | (request.form() if request.method == "POST" else {})

    def call_name(self, request):
        if request.path.startswith("/latest/"):
            return "metadata"
        action, version = request.headers.get("x-acs-action"), request.headers.get("x-acs-version")
        if not action:
            parameters = self.parameters(request)
            action, version = parameters.get("Action", ""), parameters.get("Version", "")
        product = {ECS: "ecs", NET: "vpc", CLB: "slb", NLB: "nlb"}.get(version, "")
        return f"{product}:{action}"

    def answer(self, request):
        if request.path.startswith("/latest/"):
            return self.access.metadata(request)
        if request.path != "/" or request.method not in ("GET", "POST"):
            return Answer(404, "<html><body>404 Not Found</body></html>", {"Content-Type": "text/html"})
        parameters = self.parameters(request)
        action, version = self.access.check(request, parameters)
        return Answer(value=self.run(version, action, self.schema_read(version, action, parameters)))

    def schema_read(self, version, action, parameters):
        if not self.schema.knows(version, action):
            raise refused(404, "InvalidAction.NotFound", f"Specified api is not found: {action} of {version}.")
        return self.schema.read(version, action, parameters)

    def run(self, version, action, own):
        if (version, action) not in self.actions:
            raise refused(400, "UnsupportedAction.StandIn", f"the stand-in does not have {action}")
        handler = self.actions[version, action]
        wanted = inspect.signature(handler).parameters.values()
        for one in wanted:
            if one.kind is one.POSITIONAL_OR_KEYWORD and one.default is one.empty and one.name not in own:
                raise missing(one.name)
        takes_all = any(one.kind is one.VAR_KEYWORD for one in wanted)
        odd = set() if takes_all else set(own) - {one.name for one in wanted}
        if odd:
            raise refused(400, "UnsupportedParameter.StandIn", f"the stand-in does not have {sorted(odd)} of {action}")
        answer = {"RequestId": str(uuid.uuid4()).upper()} | handler(**own)
        self.schema.check(version, action, answer)
        return answer

    # What only an administrator does.

    def do_account(self):
        return {"key": KEY, "secret": SECRET, "role": ROLE, "region": REGION, "zone": ZONE, "vpc": VPC, "table": self.table}

    def do_add_machine(self, name, region=REGION, zone=ZONE, vpc=VPC, **more):
        return self.ecs.add(name, region, zone, vpc, **more)

    def do_add_machines(self, prefix, count):
        return [self.ecs.add(f"{prefix}-{number}", REGION, ZONE, VPC)["id"] for number in range(count)]

    def do_power(self, id, state):
        self.ecs.all[id]["Status"] = state

    def do_kinds(self):
        return {
            "machines": self.ecs.all, "balancers": self.slb.all, "groups": self.slb.groups, "routes": self.vpc.entries, "nlbs": self.nlb.all,
            "nlb-groups": self.nlb.groups, "nlb-listeners": self.nlb.listeners, "listeners": self.slb.listeners,
        }

    def do_delete(self, kind, id):
        """As if somebody else had; a machine is taken out of all groups."""
        kinds = self.do_kinds()
        one = kinds[kind].pop(id, None)
        if kind == "machines":
            for group in (*self.slb.groups.values(), *self.nlb.groups.values()):
                group["servers"] = {key: server for key, server in group["servers"].items() if key[0] != id}
        if kind == "balancers" and one:
            self.slb.groups = {key: group for key, group in self.slb.groups.items() if group["balancer"] != id}
            self.slb.listeners = {key: listener for key, listener in self.slb.listeners.items() if key[0] != id}

    def do_resources(self, kind):
        """All of a kind, by id, with server groups' members as a list."""
        self.operations.settle()
        shown = lambda one: one | ({"servers": sorted(f"{id}:{port}" for id, port in one["servers"])} if "servers" in one else {})
        text = lambda key: key if isinstance(key, str) else ":".join(map(str, key))
        return {text(key): shown(one) for key, one in self.do_kinds()[kind].items()}

    def do_change(self, kind, id, fields):
        self.do_kinds()[kind][id] |= fields

    def do_command(self, version, action, parameters):
        """As another client of the account, at once."""
        seconds, self.operations.seconds = self.operations.seconds, 0
        try:
            own = self.schema_read(version, action, {name: str(value) for name, value in parameters.items()} | {"RegionId": REGION})
            if action == "GetJobStatus":
                own.pop("RegionId")
            return self.run(version, action, own)
        except Refused as refusal:
            raise ValueError(refusal.answer.value) from refusal
        finally:
            self.operations.seconds = seconds

    def do_route(self, destination, hop, hop_type="Instance"):
        return self.vpc.put(self.table, destination, hop, hop_type)

    def do_add_table(self):
        return self.vpc.add_table(VPC)

    def do_quota(self, balancers=60, routes=200):
        self.slb.quota = self.nlb.quota = balancers
        self.vpc.quota = routes

    def do_operations_take(self, seconds):
        self.operations.seconds = seconds

    def do_finish(self):
        """All that is under way is done now."""
        self.operations.finish()

    def do_fail_jobs(self, action, times=1):
        self.nlb.failures.append({"action": action, "times": times})

    def do_deny(self, actions):
        self.access.denied = set(actions)

    def do_role(self, seconds):
        """How long the next credentials of the role last."""
        self.access.role_seconds = seconds

    def do_expire(self):
        """The credentials of the role that were given are over."""
        self.access.keys = {id: (secret, token, until and 1) for id, (secret, token, until) in self.access.keys.items()}
