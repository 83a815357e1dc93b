"""Network Load Balancers: each change is a job, and locks what it changes."""

from alibaba.ecs import paged
from alibaba.errors import gone, missing, refused, wrong

SERVERS = 200


def boolean(value):
    return {"true": True, "false": False}.get(value, value)


def typed(node):
    """Values of parameters as answers have them."""
    if isinstance(node, dict):
        return {key: typed(value) for key, value in node.items()}
    if isinstance(node, list):
        return [typed(value) for value in node]
    return int(node) if str(node).isdigit() else boolean(node)


class Nlb:
    def __init__(self, operations, ecs):
        self.operations, self.ecs = operations, ecs
        self.all, self.groups, self.listeners, self.tokens = {}, {}, {}, {}
        self.number = 0
        self.quota = 60
        self.failures = []

    def id(self, prefix):
        self.number += 1
        return f"{prefix}-{self.number:010x}"

    def job(self, action, thing, key, during, finish, undo=lambda: None):
        """Begins a change of a thing, whose `key` says meanwhile what goes on."""
        self.operations.settle()
        before = thing[key]
        thing[key] = during
        failure = next((one for one in self.failures if one["action"] == action and one["times"]), None)
        if failure:
            failure["times"] -= 1

        def run():
            thing[key] = before
            if failure:
                undo()
                raise RuntimeError("the job failed")
            finish()

        return self.operations.begin(run, job=True).name

    def status(self, JobId):
        operation = self.operations.get(JobId)
        if operation is None:
            raise gone("ResourceNotFound.Job", JobId)
        return {"Status": "processing" if not operation.done else "Failed" if operation.error else "Succeeded"}

    def found(self, kind, id, code):
        self.operations.settle()
        if id not in kind:
            raise gone(f"ResourceNotFound.{code}", id)
        return kind[id]

    def free(self, thing, key, *states):
        if thing[key] not in states:
            raise refused(409, "Conflict.Lock", "The resource is being changed. Try again later.")
        return thing

    def get(self, id):
        return self.free(self.found(self.all, id, "loadBalancer"), "LoadBalancerStatus", "Active")

    # The load balancer.

    def list(self, RegionId, LoadBalancerIds=None, LoadBalancerNames=None, Tag=(), MaxResults=20, NextToken=None):
        self.operations.settle()
        found = [one for one in self.all.values() if LoadBalancerIds is None or one["LoadBalancerId"] in LoadBalancerIds]
        found = [one for one in found if LoadBalancerNames is None or one["LoadBalancerName"] in LoadBalancerNames]
        return self.page("LoadBalancers", found, Tag, MaxResults, NextToken)

    def page(self, name, found, tags, size, token):
        if tags:
            found = [one for one in found if all({"Key": tag["Key"], "Value": tag.get("Value", "")} in one["Tags"] for tag in tags)]
        some, token = paged(found, size, token)
        shown = [{key: value for key, value in one.items() if key != "servers"} for one in some]
        return {name: shown, "NextToken": token or "", "TotalCount": len(found), "MaxResults": int(size)}

    def create(self, RegionId, AddressType, VpcId, ZoneMappings, ClientToken=None, LoadBalancerName=None, Tag=(), DeletionProtectionConfig=None,
               ModificationProtectionConfig=None, AddressIpVersion="Ipv4", BandwidthPackageId="", ResourceGroupId="rg-default"):
        if ClientToken is not None and ClientToken in self.tokens:
            return self.tokens[ClientToken]
        if len(self.all) >= self.quota:
            raise refused(400, "QuotaExceeded.LoadBalancersNum", "The quota of load balancers is exceeded.")
        if AddressType not in ("Internet", "Intranet"):
            raise wrong("The specified AddressType is not valid.", "IllegalParam.AddressType")
        if len({zone["ZoneId"] for zone in ZoneMappings}) < 2:
            raise wrong("at least two zones", "IllegalParam.ZoneMappings")
        id = self.id("nlb")
        balancer = self.all[id] = {
            "LoadBalancerId": id, "LoadBalancerName": LoadBalancerName or id, "LoadBalancerStatus": "Active", "LoadBalancerBusinessStatus": "Normal",
            "LoadBalancerType": "Network", "AddressType": AddressType, "AddressIpVersion": AddressIpVersion, "VpcId": VpcId, "RegionId": RegionId,
            "DNSName": f"{id}.{RegionId}.nlb.aliyuncs.com", "CrossZoneEnabled": True, "SecurityGroupIds": [], "BandwidthPackageId": BandwidthPackageId,
            "ZoneMappings": self.zones(ZoneMappings), "ResourceGroupId": ResourceGroupId,
            "DeletionProtectionConfig": {"Enabled": False} | typed(DeletionProtectionConfig or {}),
            "ModificationProtectionConfig": {"Status": "NonProtection"} | (ModificationProtectionConfig or {}), "Tags": self.tags(Tag),
        }
        self.job("CreateLoadBalancer", balancer, "LoadBalancerStatus", "Provisioning", lambda: None, lambda: balancer.update(LoadBalancerStatus="CreateFailed"))
        self.tokens[ClientToken] = {"LoadbalancerId": id}
        return self.tokens[ClientToken]

    def zones(self, mappings):
        return [{"ZoneId": zone["ZoneId"], "VSwitchId": zone["VSwitchId"], "Status": "Active"} for zone in mappings]

    def tags(self, tags):
        return [{"Key": tag["Key"], "Value": tag.get("Value", "")} for tag in tags]

    def change(self, action, make, job=True):
        def run(RegionId, LoadBalancerId, **given):
            balancer = self.get(LoadBalancerId)
            name = self.job(action, balancer, "LoadBalancerStatus", "Configuring", lambda: make(balancer, typed(given)))
            return {"JobId": name} if job else {}

        return run

    def delete(self, RegionId, LoadBalancerId):
        balancer = self.found(self.all, LoadBalancerId, "loadBalancer")
        self.free(balancer, "LoadBalancerStatus", "Active", "CreateFailed")
        if balancer["DeletionProtectionConfig"]["Enabled"]:
            raise refused(400, "OperationDenied.DeletionProtection", "The operation is not allowed because of the deletion protection.")

        def finish():
            self.all.pop(LoadBalancerId)
            self.listeners = {id: one for id, one in self.listeners.items() if one["LoadBalancerId"] != LoadBalancerId}

        return {"JobId": self.job("DeleteLoadBalancer", balancer, "LoadBalancerStatus", "Deleting", finish)}

    def protect(self, balancer, given):
        if "DeletionProtectionEnabled" in given:
            balancer["DeletionProtectionConfig"] = {"Enabled": given["DeletionProtectionEnabled"]}
        if "ModificationProtectionStatus" in given:
            balancer["ModificationProtectionConfig"] = {"Status": given["ModificationProtectionStatus"]}

    def protecting(self, RegionId, LoadBalancerId, **given):
        self.protect(self.get(LoadBalancerId), typed(given))
        return {}

    def tag(self, RegionId, ResourceType, ResourceId, Tag):
        for id in ResourceId:
            balancer = self.found(self.all, id, "loadBalancer")
            fresh = self.tags(Tag)
            balancer["Tags"] = [tag for tag in balancer["Tags"] if tag["Key"] not in {one["Key"] for one in fresh}] + fresh
        return {}

    def untag(self, RegionId, ResourceType, ResourceId, TagKey):
        for id in ResourceId:
            balancer = self.found(self.all, id, "loadBalancer")
            balancer["Tags"] = [tag for tag in balancer["Tags"] if tag["Key"] not in TagKey]
        return {}

    # Server groups.

    def related(self, id):
        return sorted({one["LoadBalancerId"] for one in self.listeners.values() if one["ServerGroupId"] == id})

    def list_groups(self, RegionId, ServerGroupIds=None, Tag=(), MaxResults=20, NextToken=None):
        self.operations.settle()
        found = [one | {"RelatedLoadBalancerIds": self.related(id)} for id, one in self.groups.items() if ServerGroupIds is None or id in ServerGroupIds]
        return self.page("ServerGroups", found, Tag, MaxResults, NextToken)

    def create_group(self, RegionId, ServerGroupName, VpcId, ServerGroupType="Instance", Protocol="TCP", Scheduler="Wrr", HealthCheckConfig=None, Tag=(),
                     ConnectionDrainEnabled=False, ConnectionDrainTimeout=10, PreserveClientIpEnabled=True, ResourceGroupId="rg-default"):
        if any(one["ServerGroupName"] == ServerGroupName for one in self.groups.values()):
            raise refused(409, "ResourceAlreadyExist.ServerGroup", "The server group exists already.")
        id = self.id("sgp")
        check = {
            "HealthCheckEnabled": True, "HealthCheckType": "TCP", "HealthCheckConnectPort": 0, "HealthyThreshold": 2, "UnhealthyThreshold": 2,
            "HealthCheckConnectTimeout": 5, "HealthCheckInterval": 10, "HealthCheckDomain": "", "HealthCheckUrl": "", "HealthCheckHttpCode": [],
        }
        group = self.groups[id] = {
            "ServerGroupId": id, "ServerGroupName": ServerGroupName, "ServerGroupType": ServerGroupType, "Protocol": Protocol, "VpcId": VpcId, "RegionId": RegionId,
            "Scheduler": Scheduler, "ServerGroupStatus": "Available", "HealthCheck": check | typed(HealthCheckConfig or {}), "Tags": self.tags(Tag),
            "ConnectionDrainEnabled": boolean(ConnectionDrainEnabled), "ConnectionDrainTimeout": int(ConnectionDrainTimeout),
            "PreserveClientIpEnabled": boolean(PreserveClientIpEnabled), "ResourceGroupId": ResourceGroupId, "servers": {},
        }
        return {"JobId": self.job("CreateServerGroup", group, "ServerGroupStatus", "Creating", lambda: None, lambda: self.groups.pop(id)), "ServerGroupId": id}

    def group(self, id):
        return self.free(self.found(self.groups, id, "serverGroup"), "ServerGroupStatus", "Available")

    def update_group(self, RegionId, ServerGroupId, HealthCheckConfig=None, **given):
        group = self.group(ServerGroupId)

        def finish():
            group.update(typed(given))
            group["HealthCheck"] |= typed(HealthCheckConfig or {})

        return {"JobId": self.job("UpdateServerGroupAttribute", group, "ServerGroupStatus", "Configuring", finish), "ServerGroupId": ServerGroupId}

    def delete_group(self, RegionId, ServerGroupId):
        group = self.group(ServerGroupId)
        if self.related(ServerGroupId):
            raise refused(409, "ResourceInUse.ServerGroup", "The server group is in use.")
        finish = lambda: self.groups.pop(ServerGroupId)
        return {"JobId": self.job("DeleteServerGroup", group, "ServerGroupStatus", "Deleting", finish)}

    def servers(self, RegionId, ServerGroupId, MaxResults=20, NextToken=None):
        group = self.found(self.groups, ServerGroupId, "serverGroup")
        found = list(group["servers"].values())
        some, token = paged(found, MaxResults, NextToken)
        return {"Servers": some, "NextToken": token or "", "TotalCount": len(found), "MaxResults": int(MaxResults)}

    def change_servers(self, action):
        def run(RegionId, ServerGroupId, Servers):
            group = self.group(ServerGroupId)
            if len(Servers) > SERVERS:
                raise wrong(f"at most {SERVERS} servers at once")
            for one in Servers:
                if action != "RemoveServersFromServerGroup" and one["ServerId"] not in self.ecs.all:
                    raise gone("ResourceNotFound.BackendServer", one["ServerId"])
            keys = [(one["ServerId"], int(one["Port"])) for one in Servers]
            there = group["servers"]
            during = {"AddServersToServerGroup": "Adding", "RemoveServersFromServerGroup": "Removing"}.get(action, "Configuring")
            for key, one in zip(keys, Servers, strict=True):
                if action == "AddServersToServerGroup":
                    shown = {name: one[name] for name in ("ServerId", "ServerType", "Description") if name in one}
                    there[key] = shown | {"Port": key[1], "Weight": int(one.get("Weight", 100)), "ServerGroupId": ServerGroupId}
                elif key not in there:
                    raise gone("ResourceNotFound.BackendServer", one["ServerId"])
                there[key]["Status"] = during

            def finish():
                for key, one in zip(keys, Servers, strict=True):
                    if during == "Removing" or key[0] not in self.ecs.all:
                        there.pop(key, None)
                    elif key in there:
                        there[key].update(Status="Available", Weight=int(one.get("Weight", there[key]["Weight"])))

            def undo():
                for key in keys:
                    there.pop(key, None) if during == "Adding" else there[key].update(Status="Available")

            return {"JobId": self.job(action, group, "ServerGroupStatus", "Configuring", finish, undo), "ServerGroupId": ServerGroupId}

        return run

    # Listeners.

    def list_listeners(self, RegionId, LoadBalancerIds=None, MaxResults=20, NextToken=None):
        self.operations.settle()
        found = [one for one in self.listeners.values() if LoadBalancerIds is None or one["LoadBalancerId"] in LoadBalancerIds]
        return self.page("Listeners", found, (), MaxResults, NextToken)

    def fields(self, given):
        fields = typed(given)
        if "ServerGroupId" in fields:
            self.found(self.groups, fields["ServerGroupId"], "serverGroup")
        return fields

    def create_listener(self, RegionId, LoadBalancerId, ListenerPort, ListenerProtocol, ServerGroupId, **given):
        balancer = self.get(LoadBalancerId)
        port, udp = int(ListenerPort), ListenerProtocol == "UDP"
        own = [one for one in self.listeners.values() if one["LoadBalancerId"] == LoadBalancerId]
        if any(one["ListenerPort"] == port and (one["ListenerProtocol"] == "UDP") == udp for one in own):
            raise refused(409, "ResourceAlreadyExist.Listener", "The listener exists already.")
        if ListenerProtocol == "TCPSSL" and "CertificateIds" not in given:
            raise missing("CertificateIds")
        fields = self.fields(given | {"ServerGroupId": ServerGroupId})
        id = self.id("lsn")
        listener = self.listeners[id] = {
            "ListenerId": id, "LoadBalancerId": LoadBalancerId, "ListenerPort": port, "ListenerProtocol": ListenerProtocol, "ListenerStatus": "Provisioning",
            "RegionId": RegionId, "IdleTimeout": 900, "ProxyProtocolEnabled": False, "Cps": 0, "Tags": [], **fields,
        }
        finish, undo = lambda: listener.update(ListenerStatus="Running"), lambda: self.listeners.pop(id)
        return {"JobId": self.job("CreateListener", balancer, "LoadBalancerStatus", "Configuring", finish, undo), "ListenerId": id}

    def change_listener(self, action, during, make):
        def run(RegionId, ListenerId, **given):
            listener = self.found(self.listeners, ListenerId, "listener")
            balancer, fields = self.get(listener["LoadBalancerId"]), self.fields(given)
            before, listener["ListenerStatus"] = listener["ListenerStatus"], during

            def finish():
                listener["ListenerStatus"] = before
                make(listener, fields)

            undo = lambda: listener.update(ListenerStatus=before)
            return {"JobId": self.job(action, balancer, "LoadBalancerStatus", "Configuring", finish, undo)}

        return run
