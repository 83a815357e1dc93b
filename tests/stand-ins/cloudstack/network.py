"""Networks with their services, public addresses, load balancer rules, firewall and ACLs: what each command does."""

import ipaddress

from cloudstack.errors import ApiError, wrong
from cloudstack.store import now

ALGORITHMS = ["roundrobin", "leastconn", "source"]
PROTOCOLS = ["tcp", "udp", "tcp-proxy", "ssl"]
DEFAULT_ACLS = ["default_allow", "default_deny"]
SUCCESS = {"success": True}


def transport(protocol):
    return "udp" if protocol == "udp" else "tcp"


def networks(text):
    """CIDRs between commas; none for everywhere."""
    try:
        return [ipaddress.ip_network(cidr.strip()) for cidr in text.split(",") if cidr.strip()]
    except ValueError as error:
        raise wrong(f"Invalid cidr in {text}: {error}") from error


def port(text, name):
    if not str(text).isdigit() or not 0 < int(text) < 65536:
        raise wrong(f"Invalid value for {name}: {text}")
    return int(text)


class Network:
    def __init__(self, store):
        self.store = store
        self.limit = None
        self.version = "4.22.0.0"

    # Addresses.

    def associate(self, project, ipaddress=None, networkid=None, vpcid=None, zoneid=None, **_):
        name = "associateIpAddress"
        if networkid:
            network = self.store.get("networks", networkid, name, "networkid")
            if network.get("vpcid"):
                text = "Can't assign ip to the network directly when network belongs to VPC.Specify vpcId to associate ip address to VPC"
                raise wrong(text)
        elif vpcid is None or vpcid not in {network.get("vpcid") for network in self.store.all("networks")}:
            raise wrong("Unable to figure out zone to assign ip to")
        owned = [one for one in self.store.all("addresses") if one["allocated"] and not one["issourcenat"]]
        if self.limit is not None and len(owned) >= self.limit:
            raise ApiError(535, "Maximum number of resources of type 'public_ip' for project has been exceeded.")
        free = [one for one in self.store.all("addresses") if one["state"] == "Free" and ipaddress in (None, one["ipaddress"])]
        if not free:
            raise ApiError(533, "Unable to allocate IP: insufficient address capacity")
        address = free[0]
        address |= {"state": "Allocating", "allocated": now(), "projectid": project, "vpcid": vpcid, "associatednetworkid": networkid}
        finish = lambda: address.update(state="Allocated")
        undo = lambda: address.update(self.unowned())
        return self.store.job(name, finish, lambda: {"ipaddress": self.shown_address(address)}, undo, id=address["id"])

    def unowned(self):
        return {"state": "Free", "allocated": "", "tags": [], "projectid": None, "vpcid": None, "associatednetworkid": None}

    def disassociate(self, id, **_):
        address = self.store.get("addresses", id, "disassociateIpAddress", "id")
        if address["issourcenat"]:
            raise wrong("Ip address id=" + id + " is source nat and can't be disassociated")
        if not address["allocated"]:
            raise wrong("Ip address is not allocated")
        address["state"] = "Releasing"

        def finish():
            for kind, key in [("rules", "publicipid"), ("firewall", "ipaddressid")]:
                for one in [one for one in self.store.kinds[kind].values() if one[key] == id]:
                    self.store.remove(kind, one["id"])
            address.update(self.unowned())

        return self.store.job("disassociateIpAddress", finish, lambda: SUCCESS)

    def shown_address(self, address):
        shown = {key: value for key, value in address.items() if value not in (None, "")}
        return shown | {"forvirtualnetwork": True, "issystem": False}

    def tag(self, resourceids, resourcetype, tags, **_):
        if resourcetype != "PublicIpAddress":
            raise wrong(f"Unable to find resource of type {resourcetype}")
        for id in resourceids.split(","):
            address = self.store.get("addresses", id, "createTags", "resourceids")
            if {tag["key"] for tag in address["tags"]} & {tag["key"] for tag in tags}:
                raise ApiError(530, f"tag {tags} already on PublicIpAddress with id {id}")
            # The rows are there at once; the job only says so.
            address["tags"] += tags
        return self.store.job("createTags", lambda: None, lambda: SUCCESS)

    # Rules of load balancers.

    def network_of(self, rule):
        return self.store.kinds["networks"][rule["networkid"]]

    def create_rule(self, algorithm, name, privateport, publicport, publicipid=None, networkid=None, protocol="tcp", cidrlist="", openfirewall="true", **_):
        command = "createLoadBalancerRule"
        if publicipid is None:
            raise wrong("Please specify either publicipid or zone")
        address = self.store.get("addresses", publicipid, command, "publicipid")
        if address["state"] != "Allocated":
            raise wrong(f"Unable to create load balancer rule; ip address is in {address['state']} state")
        networkid = networkid or address["associatednetworkid"]
        network = self.store.get("networks", networkid or "none", command, "networkid")
        if "Lb" not in network["services"]:
            raise wrong("Network doesn't support Lb service")
        if algorithm not in ALGORITHMS:
            raise wrong(f"Invalid algorithm: {algorithm}")
        if protocol not in PROTOCOLS:
            raise wrong(f"Invalid protocol: {protocol}")
        publicport, privateport = port(publicport, "publicport"), port(privateport, "privateport")
        networks(cidrlist)
        if openfirewall != "false" and network.get("vpcid"):
            raise wrong("openFirewall can't be true for VPC networks")
        for one in self.store.all("rules"):
            if one["publicipid"] == publicipid and one["publicport"] == str(publicport) and transport(one["protocol"]) == transport(protocol):
                text = f"The range specified, {publicport}-{publicport}, conflicts with rule {one['id']} which has {publicport}-{publicport}"
                raise ApiError(537, text)
        rule = self.store.add("rules", {
            "name": name, "publicipid": publicipid, "publicip": address["ipaddress"], "publicport": str(publicport), "privateport": str(privateport),
            "algorithm": algorithm, "protocol": protocol, "cidrlist": " ".join(str(cidr) for cidr in networks(cidrlist)), "networkid": networkid,
            "state": "Add", "machines": [], "projectid": address["projectid"],
        })
        if openfirewall != "false":
            self.open(publicipid, transport(protocol), startport=publicport, endport=publicport, cidrlist=cidrlist)
        address["associatednetworkid"] = networkid
        return self.store.job(command, lambda: None, lambda: {"loadbalancer": self.shown_rule(rule)}, id=rule["id"])

    def shown_rule(self, rule):
        return {key: value for key, value in rule.items() if key != "machines" and value is not None} | {"tags": []}

    def update_rule(self, id, algorithm=None, protocol=None, cidrlist=None, **_):
        rule = self.store.get("rules", id, "updateLoadBalancerRule", "id")
        if algorithm not in [None, *ALGORITHMS] or protocol not in [None, *PROTOCOLS]:
            raise wrong(f"Invalid algorithm or protocol: {algorithm} {protocol}")
        if cidrlist is not None and self.version < "4.22":
            raise wrong("updateLoadBalancerRule has no parameter cidrlist in this version")
        changes = {"algorithm": algorithm, "protocol": protocol}
        if cidrlist is not None:
            changes["cidrlist"] = " ".join(str(cidr) for cidr in networks(cidrlist))
        finish = lambda: rule.update({key: value for key, value in changes.items() if value is not None})
        return self.store.job("updateLoadBalancerRule", finish, lambda: {"loadbalancer": self.shown_rule(rule)})

    def delete_rule(self, id):
        rule = self.store.get("rules", id, "deleteLoadBalancerRule", "id")
        before, rule["state"] = rule["state"], "Revoke"
        undo = lambda: rule.update(state=before)
        return self.store.job("deleteLoadBalancerRule", lambda: self.store.remove("rules", id), lambda: SUCCESS, undo)

    def assign(self, id, virtualmachineids="", **_):
        command = "assignToLoadBalancerRule"
        rule = self.store.get("rules", id, command, "id")
        ids = [one for one in virtualmachineids.split(",") if one]
        if not ids:
            raise wrong("Either virtualmachineids or vmidipmap has to be specified")
        for one in ids:
            machine = self.store.get("machines", one, command, "virtualmachineids")
            if machine["state"] in ("Destroyed", "Expunging"):
                raise wrong(f"Invalid instance id: {one}")
            if not any(nic["networkid"] == rule["networkid"] for nic in machine["nic"]):
                raise wrong(f"VM {one} cannot be added because it doesn't belong in the same network.")

        def finish():
            # The job sees what the ones before it did.
            for one in ids:
                if one in rule["machines"]:
                    raise wrong(f"VM {self.store.kinds['machines'][one]['name']} is already mapped to load balancer.")
            rule["machines"] += ids
            rule["state"] = "Active"

        return self.store.job(command, finish, lambda: SUCCESS)

    def withdraw(self, id, virtualmachineids="", **_):
        command = "removeFromLoadBalancerRule"
        rule = self.store.get("rules", id, command, "id")
        ids = [one for one in virtualmachineids.split(",") if one]
        for one in ids:
            if one not in rule["machines"]:
                raise wrong(f"The instance {one} is not assigned to the load balancer rule {id}")
        finish = lambda: rule.update(machines=[one for one in rule["machines"] if one not in ids])
        return self.store.job(command, finish, lambda: SUCCESS)

    # What lets traffic in.

    def open(self, ipaddressid, protocol, startport=None, endport=None, cidrlist="", **_):
        address = self.store.get("addresses", ipaddressid, "createFirewallRule", "ipaddressid")
        network = self.store.kinds["networks"].get(address["associatednetworkid"] or "none")
        if address.get("vpcid") or network is None or "Firewall" not in network["services"]:
            raise wrong("Unable to create firewall rule for the ip; the network has no Firewall service")
        if protocol not in ("tcp", "udp"):
            raise wrong(f"Protocol {protocol} is not supported")
        start, end, cidrs = port(startport, "startport"), port(endport, "endport"), networks(cidrlist or "0.0.0.0/0")
        for one in self.store.all("firewall"):
            overlaps = any(a.overlaps(b) for a in networks(one["cidrlist"]) for b in cidrs if a.version == b.version)
            if one["ipaddressid"] == ipaddressid and one["protocol"] == protocol and one["startport"] <= end and start <= one["endport"] and overlaps:
                raise ApiError(537, f"The range specified, {start}-{end}, conflicts with rule {one['id']}")
        rule = self.store.add("firewall", {
            "ipaddressid": ipaddressid, "ipaddress": address["ipaddress"], "protocol": protocol, "startport": start, "endport": end,
            "cidrlist": ",".join(str(cidr) for cidr in cidrs), "networkid": network["id"], "state": "Active", "projectid": address["projectid"],
        })
        return self.store.job("createFirewallRule", lambda: None, lambda: {"firewallrule": rule}, id=rule["id"])

    def close(self, id):
        self.store.get("firewall", id, "deleteFirewallRule", "id")
        return self.store.job("deleteFirewallRule", lambda: self.store.remove("firewall", id), lambda: SUCCESS)

    def allow(self, protocol, aclid=None, networkid=None, startport=None, endport=None, cidrlist="", action="Allow", traffictype="Ingress", reason=None,
              number=None, **_):
        command = "createNetworkACL"
        if aclid is None:
            aclid = self.store.get("networks", networkid or "none", command, "networkid").get("aclid")
        acl = self.store.get("acls", aclid or "none", command, "aclid")
        if acl["name"] in DEFAULT_ACLS:
            raise wrong("Cannot modify default ACL")
        if protocol not in ("tcp", "udp", "icmp", "all") or action not in ("Allow", "Deny") or traffictype not in ("Ingress", "Egress"):
            raise wrong(f"Invalid protocol, action or traffic type: {protocol} {action} {traffictype}")
        last = max([one["number"] for one in self.store.all("openings") if one["aclid"] == aclid], default=0)
        rule = self.store.add("openings", {
            "aclid": aclid, "aclname": acl["name"], "protocol": protocol, "startport": str(port(startport, "startport")),
            "endport": str(port(endport, "endport")), "cidrlist": ",".join(str(cidr) for cidr in networks(cidrlist or "0.0.0.0/0")), "action": action,
            "traffictype": traffictype, "reason": reason or "", "number": int(number or last + 1), "state": "Active", "projectid": acl.get("projectid"),
        })
        return self.store.job(command, lambda: None, lambda: {"networkacl": rule}, id=rule["id"])

    def forbid(self, id):
        self.store.get("openings", id, "deleteNetworkACL", "id")
        return self.store.job("deleteNetworkACL", lambda: self.store.remove("openings", id), lambda: SUCCESS)
