"""Classic Load Balancers: one change at a time, listeners with their protocols, server groups."""

import json

from alibaba.errors import busy, gone, missing, refused, wrong

TOP = ["Bandwidth", "Description", "Scheduler", "VServerGroupId", "AclStatus", "AclType"]
L4 = {"HealthCheck": "on", "HealthCheckInterval": 2, "HealthyThreshold": 3, "UnhealthyThreshold": 3, "HealthCheckConnectTimeout": 5, "ProxyProtocolV2Enabled": False}
WEB = {
    "HealthCheck": "off", "StickySession": "off", "IdleTimeout": 15, "RequestTimeout": 60, "XForwardedFor": "on", "XForwardedFor_proto": "off", "Gzip": "on",
}
DEFAULTS = {
    "tcp": L4 | {"HealthCheckType": "tcp", "PersistenceTimeout": 0, "EstablishedTimeout": 900, "ConnectionDrain": "off"}, "udp": L4,
    "http": WEB, "https": WEB | {"EnableHttp2": "on", "TLSCipherPolicy": "tls_cipher_policy_1_0"},
}
CERTIFICATES = {"cert-1", "cert-2"}
SCHEDULERS = {"wrr", "rr", "wlc", "sch", "tch", "qch"}
SERVERS = 20


def number(value):
    text = str(value)
    return int(text) if text.lstrip("-").isdigit() else value


class Slb:
    def __init__(self, operations, ecs, region):
        self.operations, self.ecs, self.region = operations, ecs, region
        self.all, self.groups, self.listeners, self.tokens = {}, {}, {}, {}
        self.number = 0
        self.quota = 60

    def id(self, prefix):
        self.number += 1
        return f"{prefix}-bp1{self.number:09x}"

    # The load balancer.

    def get(self, id):
        self.operations.settle()
        if id not in self.all:
            raise gone("InvalidLoadBalancerId.NotFound", id)
        return self.all[id]

    def changed(self, id):
        """It may be changed now, and is busy then for a while."""
        balancer = self.get(id)
        if balancer["busy"]:
            raise busy()
        if self.operations.seconds:
            balancer["busy"] = True
            self.operations.begin(lambda: balancer.update(busy=False))
        return balancer

    def shown(self, balancer):
        tags = [{"TagKey": key, "TagValue": value} for key, value in balancer["tags"].items()]
        # As numbers, with the words beside them.
        alias = balancer["InternetChargeType"]
        hidden = ("tags", "busy", "InternetChargeType")
        shown = {key: value for key, value in balancer.items() if key not in hidden}
        return shown | {"Tags": {"Tag": tags}, "InternetChargeType": {"paybytraffic": "4"}.get(alias, "3"), "InternetChargeTypeAlias": alias}

    def describe(self, RegionId, LoadBalancerId=None, LoadBalancerName=None, Tag=(), PageNumber=1, PageSize=50):
        self.operations.settle()
        size = int(PageSize)
        if not 1 <= size <= 100:
            raise wrong("The page size is out of range.", "InvalidParameter.PageSize")
        found = [one for one in self.all.values() if LoadBalancerId in (None, one["LoadBalancerId"]) and LoadBalancerName in (None, one["LoadBalancerName"])]
        if Tag:
            found = [one for one in found if any(one["tags"].get(tag["Key"]) == tag.get("Value", "") for tag in Tag)]
        start = (int(PageNumber) - 1) * size
        some = [self.shown(one) for one in found[start : start + size]]
        return {"LoadBalancers": {"LoadBalancer": some}, "PageNumber": int(PageNumber), "PageSize": size, "TotalCount": len(found)}

    def create(self, RegionId, ClientToken=None, LoadBalancerName=None, AddressType="internet", VSwitchId=None, VpcId=None, Address=None, Tag=(),
               LoadBalancerSpec=None, InstanceChargeType="PayBySpec", InternetChargeType="paybytraffic", Bandwidth=None, DeleteProtection="off",
               ModificationProtectionStatus="NonProtection", ModificationProtectionReason="", AddressIPVersion="ipv4", **others):
        if ClientToken in self.tokens and ClientToken is not None:
            return self.tokens[ClientToken]
        if len(self.all) >= self.quota:
            raise refused(400, "QuotaLimitExceeds.LoadBalancer", "The maximum number of SLB instances is exceeded.")
        if AddressType not in ("internet", "intranet"):
            raise wrong("The specified AddressType is not valid.", "InvalidParameter.AddressType")
        if VSwitchId and AddressType != "intranet":
            raise wrong("a public one has no vswitch", "InvalidParameter.VSwitchId")
        if InstanceChargeType == "PayByCLCU" and LoadBalancerSpec:
            raise wrong("PayByCLCU has no spec", "InvalidParameter.LoadBalancerSpec")
        id = self.id("lb")
        self.all[id] = {
            "LoadBalancerId": id, "LoadBalancerName": LoadBalancerName or id, "LoadBalancerStatus": "active", "AddressType": AddressType, "RegionId": RegionId,
            "Address": Address or (f"47.96.{self.number >> 8}.{self.number & 255}" if AddressType == "internet" else f"10.200.0.{self.number & 255}"),
            "AddressIPVersion": AddressIPVersion, "VSwitchId": VSwitchId or "", "VpcId": VpcId or "", "NetworkType": "vpc" if VSwitchId else "classic",
            "InstanceChargeType": InstanceChargeType, "LoadBalancerSpec": LoadBalancerSpec or "", "InternetChargeType": InternetChargeType,
            "Bandwidth": int(Bandwidth or 5120), "DeleteProtection": DeleteProtection, "ModificationProtectionStatus": ModificationProtectionStatus,
            "ModificationProtectionReason": ModificationProtectionReason, "MasterZoneId": others.get("MasterZoneId", f"{RegionId}-g"),
            "SlaveZoneId": others.get("SlaveZoneId", f"{RegionId}-h"), "ResourceGroupId": others.get("ResourceGroupId", "rg-default"),
            "PayType": "PayOnDemand", "tags": {tag["Key"]: tag.get("Value", "") for tag in Tag}, "busy": False,
        }
        answer = {"LoadBalancerId": id, "LoadBalancerName": self.all[id]["LoadBalancerName"], "Address": self.all[id]["Address"]}
        self.tokens[ClientToken] = answer
        return answer

    def delete(self, RegionId, LoadBalancerId):
        balancer = self.changed(LoadBalancerId)
        if balancer["DeleteProtection"] == "on":
            raise refused(400, "OperationDenied.DeleteProtectionIsOn", "The operation is not allowed because of the delete protection.")
        del self.all[LoadBalancerId]
        self.groups = {id: one for id, one in self.groups.items() if one["balancer"] != LoadBalancerId}
        self.listeners = {key: one for key, one in self.listeners.items() if key[0] != LoadBalancerId}
        return {}

    def set(self, RegionId, LoadBalancerId, **fields):
        balancer = self.changed(LoadBalancerId)
        if "LoadBalancerSpec" in fields and balancer["InstanceChargeType"] != "PayBySpec" and "InstanceChargeType" not in fields:
            raise refused(400, "OperationDenied.InstanceChargeType", "it is not paid by spec")
        balancer.update({key: number(value) if key == "Bandwidth" else value for key, value in fields.items()})
        return {}

    def tag(self, RegionId, ResourceType, ResourceId, Tag):
        for id in ResourceId:
            self.get(id)["tags"].update({tag["Key"]: tag.get("Value", "") for tag in Tag})
        return {}

    def untag(self, RegionId, ResourceType, ResourceId, TagKey):
        for id in ResourceId:
            for key in TagKey:
                self.get(id)["tags"].pop(key, None)
        return {}

    # Server groups.

    def group(self, id):
        self.operations.settle()
        if id not in self.groups:
            raise gone("VServerGroupId.NotExist", id)
        return self.groups[id]

    def servers(self, text):
        servers = json.loads(text)
        if len(servers) > SERVERS:
            raise wrong(f"at most {SERVERS} servers at once", "InvalidParameter.BackendServers")
        return {(one["ServerId"], str(one["Port"])): one for one in servers}

    def describe_groups(self, RegionId, LoadBalancerId):
        self.get(LoadBalancerId)
        own = [{"VServerGroupId": id, "VServerGroupName": one["name"]} for id, one in self.groups.items() if one["balancer"] == LoadBalancerId]
        return {"VServerGroups": {"VServerGroup": own}}

    def describe_group(self, RegionId, VServerGroupId):
        group = self.group(VServerGroupId)
        servers = [
            {"ServerId": id, "Port": int(port), "Weight": int(one["Weight"]), "Type": "ecs", "Description": one.get("Description", "")}
            for (id, port), one in group["servers"].items()
        ]
        return {
            "VServerGroupId": VServerGroupId, "VServerGroupName": group["name"], "LoadBalancerId": group["balancer"], "BackendServers": {"BackendServer": servers},
        }

    def create_group(self, RegionId, LoadBalancerId, VServerGroupName, BackendServers="[]"):
        self.changed(LoadBalancerId)
        id = self.id("rsp")
        self.groups[id] = {"balancer": LoadBalancerId, "name": VServerGroupName, "servers": {}}
        self.put(id, BackendServers)
        return {"VServerGroupId": id}

    def put(self, id, text):
        servers = self.servers(text)
        for server, _ in servers:
            if server not in self.ecs.all:
                raise refused(400, "ObtainIpFail", f"The specified server {server} does not exist.")
        self.group(id)["servers"].update(servers)

    def add(self, RegionId, VServerGroupId, BackendServers):
        self.changed(self.group(VServerGroupId)["balancer"])
        self.put(VServerGroupId, BackendServers)
        return {"VServerGroupId": VServerGroupId}

    def remove(self, RegionId, VServerGroupId, BackendServers):
        self.changed(self.group(VServerGroupId)["balancer"])
        for key in self.servers(BackendServers):
            self.group(VServerGroupId)["servers"].pop(key, None)
        return {"VServerGroupId": VServerGroupId}

    def weigh(self, RegionId, VServerGroupId, BackendServers):
        group = self.group(VServerGroupId)
        self.changed(group["balancer"])
        for key, one in self.servers(BackendServers).items():
            if key in group["servers"]:
                group["servers"][key] = one
        return {"VServerGroupId": VServerGroupId}

    def delete_group(self, RegionId, VServerGroupId):
        self.changed(self.group(VServerGroupId)["balancer"])
        if any(one["VServerGroupId"] == VServerGroupId for one in self.listeners.values()):
            raise refused(400, "RspoolVipExist", "There are vips associating with this vServer group.")
        del self.groups[VServerGroupId]
        return {}

    # Listeners.

    def describe_listeners(self, RegionId, LoadBalancerId, MaxResults=20, NextToken=None):
        from alibaba.ecs import paged

        [self.get(id) for id in LoadBalancerId]
        own = [one for key, one in self.listeners.items() if key[0] in LoadBalancerId]
        some, token = paged(own, MaxResults, NextToken)
        answer = {"TotalCount": len(own), "MaxResults": int(MaxResults), "NextToken": token or ""}
        # Without any, there is no list either.
        return answer | ({"Listeners": [self.shown_listener(one) for one in some]} if some else {})

    def shown_listener(self, listener):
        protocol = listener["ListenerProtocol"]
        top = {key: value for key, value in listener.items() if key in TOP or key in ("LoadBalancerId", "ListenerPort", "ListenerProtocol", "Status")}
        config = {key: value for key, value in listener.items() if key not in top and key != "acls"}
        acls = {"AclIds": listener["acls"], "AclId": listener["acls"][0]} if listener["acls"] else {}
        return top | acls | {f"{protocol.upper()}ListenerConfig": config}

    def fields(self, protocol, given):
        fields = {}
        for key, value in given.items():
            key = {"healthCheckInterval": "HealthCheckInterval", "HealthCheckSwitch": "HealthCheck"}.get(key, key)
            fields[key] = {"true": True, "false": False}.get(value, number(value))
        if "AclId" in fields:
            fields["acls"] = str(fields.pop("AclId")).split(",")
        if fields.get("AclStatus") == "on" and not (fields.get("acls") and fields.get("AclType")):
            raise wrong("AclId and AclType go with AclStatus", "MissingParam.AclId")
        if fields.get("Scheduler", "rr") not in SCHEDULERS:
            raise wrong("The specified Scheduler is not valid.", "InvalidParameter.Scheduler")
        if "ServerCertificateId" in fields and fields["ServerCertificateId"] not in CERTIFICATES:
            raise gone("CertificateNotFound", fields["ServerCertificateId"])
        if fields.get("StickySession") == "on" and "StickySessionType" not in fields:
            raise missing("StickySessionType")
        return fields

    def creating(self, protocol):
        def create(RegionId, LoadBalancerId, ListenerPort, Bandwidth=None, **given):
            self.changed(LoadBalancerId)
            port = int(ListenerPort)
            others = [key for key in self.listeners if key[:2] == (LoadBalancerId, port) and (key[2] == "udp") == (protocol == "udp")]
            if others:
                raise refused(400, "ListenerAlreadyExists", "There is already a listener bound to the port on the specified load balancer.")
            if protocol == "https" and "ServerCertificateId" not in given:
                raise missing("ServerCertificateId")
            if "VServerGroupId" in given:
                self.group(given["VServerGroupId"])
            own = {"LoadBalancerId": LoadBalancerId, "ListenerPort": port, "ListenerProtocol": protocol, "Status": "stopped", "Bandwidth": number(Bandwidth or -1)}
            self.listeners[LoadBalancerId, port, protocol] = {
                **DEFAULTS[protocol], **own, "Scheduler": "wrr", "AclStatus": "off", "acls": [], "VServerGroupId": "", **self.fields(protocol, given),
            }
            return {}

        return create

    def listener(self, id, port, protocol):
        key = (id, int(port), protocol)
        if key not in self.listeners:
            raise wrong("The specified listener does not exist.")
        return self.listeners[key]

    def setting(self, protocol):
        def change(RegionId, LoadBalancerId, ListenerPort, VServerGroup=None, **given):
            self.changed(LoadBalancerId)
            listener = self.listener(LoadBalancerId, ListenerPort, protocol)
            if VServerGroup != "on":
                given.pop("VServerGroupId", None)
            listener.update(self.fields(protocol, given))
            return {}

        return change

    def start(self, RegionId, LoadBalancerId, ListenerPort, ListenerProtocol):
        self.changed(LoadBalancerId)
        self.listener(LoadBalancerId, ListenerPort, ListenerProtocol)["Status"] = "running"
        return {}

    def delete_listener(self, RegionId, LoadBalancerId, ListenerPort, ListenerProtocol):
        self.changed(LoadBalancerId)
        self.listener(LoadBalancerId, ListenerPort, ListenerProtocol)
        del self.listeners[LoadBalancerId, int(ListenerPort), ListenerProtocol]
        return {}
