"""What Azure insists on for load balancers, their addresses and security groups, beyond the models; and what it fills in."""

import ipaddress
import itertools

from azure.errors import missing, refused
from azure.links import Links
from azure.machines import LOCATION, SUBSCRIPTION

BASE = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/demo/providers/Microsoft.Network"
SUBNET = ["10.0.0.0/8", "fd00::/64"]
KINDS = {
    "routetables": "routeTables", "loadbalancers": "loadBalancers", "publicipaddresses": "publicIPAddresses",
    "networksecuritygroups": "networkSecurityGroups", "privatelinkservices": "privateLinkServices",
    "virtualnetworks/subnets": "virtualNetworks/subnets",
}
"""Those that can be written."""
LISTS = ["frontendIPConfigurations", "backendAddressPools", "probes", "loadBalancingRules", "outboundRules"]
QUOTAS = {"publicipaddresses": "PublicIPCountLimitReached", "loadbalancers": "StandardSkuLoadBalancersLimitReached"}
PRIORITIES = range(100, 4097)


def wrong(text, code="InvalidRequestFormat"):
    return refused(400, code, text)


class Network:
    def __init__(self, store):
        self.store = store
        self.public, self.private = itertools.count(10), itertools.count(10)
        self.limits = {}
        self.links = Links(store, self)
        for path, properties in [
            (f"{BASE}/virtualNetworks/vnet", {"addressSpace": {"addressPrefixes": SUBNET}}),
            (f"{BASE}/virtualNetworks/vnet/subnets/subnet", {"addressPrefixes": SUBNET}),
            (f"{BASE}/virtualNetworks/vnet/subnets/inner", {"addressPrefixes": ["10.225.0.0/16"]}),
            (f"{BASE}/publicIPPrefixes/prefix", {"publicIPAddressVersion": "IPv4", "ipPrefix": "20.200.0.0/28"}),
            (f"{BASE}/networkSecurityGroups/nsg", {"securityRules": []}),
        ]:
            place = {} if "/subnets/" in path else {"location": LOCATION}
            store.renew(store.put(path, place | {"properties": properties}))

    def there(self, reference, at):
        """What a reference leads to."""
        found = self.store.all.get(((reference or {}).get("id") or "").lower())
        if found is None:
            text = f"Resource {(reference or {}).get('id')} referenced by resource {at} was not found."
            raise wrong(text, "InvalidResourceReference")
        return found

    def check(self, kind, path, body):
        limit = self.limits.get(kind)
        if limit is not None and path.lower() not in self.store.all:
            if len([one for one in self.store.all if one.split("/")[-2] == kind]) >= limit:
                raise wrong(f"Cannot create more than {limit} resources of this kind for this subscription in this region.", QUOTAS[kind])
        body.setdefault("properties", {})
        checks = {
            "loadbalancers": self.balancer, "publicipaddresses": self.address, "networksecuritygroups": self.group,
            "privatelinkservices": self.links.check, "virtualnetworks/subnets": self.subnet,
        }
        checks[kind](path, body)

    def subnet(self, path, body):
        """Its prefixes stay: addresses of it are in use."""
        before = self.there({"id": path}, path)["properties"]
        if body["properties"].get("addressPrefixes") != before["addressPrefixes"]:
            raise wrong(f"Subnet {path} is in use and its prefixes cannot be changed.", "InUsePrefixCannotBeDeleted")

    def address(self, path, body):
        properties, before = body["properties"], self.store.all.get(path.lower(), {}).get("properties", {})
        if body.get("sku", {}).get("name") != "Standard" or properties.get("publicIPAllocationMethod") != "Static":
            raise wrong("Standard sku publicIp must have AllocationMethod set to Static.", "StandardSkuPublicIPAddressesMustBeStatic")
        version = properties.setdefault("publicIPAddressVersion", "IPv4")
        if before and before["publicIPAddressVersion"] != version:
            raise wrong("The version of a public address cannot be changed.", "PropertyChangeNotAllowed")
        if prefix := properties.get("publicIPPrefix"):
            self.there(prefix, path)
        number = next(self.public)
        start = "20.200.0." if prefix else "20.100.0."
        fresh = f"{start}{number}" if version == "IPv4" else f"2603:1020::{number:x}"
        properties["ipAddress"] = before.get("ipAddress", fresh)
        if label := properties.get("dnsSettings", {}).get("domainNameLabel"):
            properties["dnsSettings"]["fqdn"] = f"{label}.{LOCATION}.cloudapp.azure.com"

    def balancer(self, path, body):
        properties = body["properties"]
        if body.get("sku", {}).get("name") != "Standard":
            raise wrong("Basic load balancers are retired.", "BasicSkuRetired")
        names = {}
        for kind in LISTS:
            seen = names[kind] = set()
            for item in properties.setdefault(kind, []):
                if not item.get("name") or item["name"].lower() in seen:
                    raise wrong(f"The name {item.get('name')} in {kind} is missing or there twice.", "InvalidResourceName")
                seen.add(item["name"].lower())
                item["id"] = f"{path}/{kind}/{item['name']}"
        self.links.check_fronts(path, properties["frontendIPConfigurations"])
        for front in properties["frontendIPConfigurations"]:
            self.front(path, front)
        for pool in properties["backendAddressPools"]:
            for address in pool.get("properties", {}).get("loadBalancerBackendAddresses", []):
                network = address["properties"].get("virtualNetwork") or pool["properties"].get("virtualNetwork")
                self.there(network, f"{path}/{pool['name']}")
                ipaddress.ip_address(address["properties"]["ipAddress"])
        for probe in properties["probes"]:
            self.probe(probe)
        self.rules(path, properties, names)

    def front(self, path, front):
        inner = front.get("properties", {})
        if public := inner.get("publicIPAddress"):
            self.there(public, path)
            if (user := self.user(public["id"])) and user != front["id"].lower():
                text = f"Resource {front['id']} is referencing public IP address {public['id']} that is already allocated to resource {user}."
                raise wrong(text, "PublicIPAddressInUse")
            return
        self.internal(path, inner)
        for one in self.fronts():
            if one["id"].lower() != front["id"].lower() and one["properties"].get("privateIPAddress") == inner["privateIPAddress"]:
                raise wrong(f"IP address {inner['privateIPAddress']} is already in use.", "PrivateIPAddressInUse")

    def internal(self, path, inner):
        """A private address of a subnet."""
        subnet = self.there(inner.get("subnet"), path)
        version = inner.setdefault("privateIPAddressVersion", "IPv4")
        prefixes = [ipaddress.ip_network(prefix) for prefix in subnet["properties"]["addressPrefixes"]]
        prefixes = [prefix for prefix in prefixes if f"IPv{prefix.version}" == version]
        if not prefixes:
            raise wrong(f"Subnet {subnet['id']} has no address prefix of {version}.")
        if inner.get("privateIPAllocationMethod") == "Static":
            if not inner.get("privateIPAddress"):
                raise wrong("A static private address is needed.", "PrivateIPAddressMissing")
            if not any(ipaddress.ip_address(inner["privateIPAddress"]) in prefix for prefix in prefixes):
                text = f"Private static IP address {inner['privateIPAddress']} does not belong to the range of subnet prefix {prefixes}."
                raise wrong(text, "PrivateIPAddressNotInSubnet")
        else:
            number = next(self.private)
            inner.setdefault("privateIPAddress", f"10.224.0.{number}" if version == "IPv4" else f"fd00::a:{number:x}")

    def probe(self, probe):
        inner = probe.get("properties", {})
        if inner.get("intervalInSeconds", 5) < 5:
            raise wrong(f"The interval of probe {probe['name']} is less than 5.")
        if inner.get("protocol") in ("Http", "Https") and not inner.get("requestPath"):
            raise wrong(f"Probe {probe['name']} needs a requestPath.")

    def rules(self, path, properties, names):
        """Rules lead from, to and by what is there, and no two from the same."""
        fronts = {front["id"].lower(): front["properties"] for front in properties["frontendIPConfigurations"]}
        pools = {pool["id"].lower(): pool.get("properties", {}) for pool in properties["backendAddressPools"]}
        used, led_to = {}, {}
        for rule in properties["loadBalancingRules"]:
            inner = rule.get("properties", {})
            needed = [("frontendIPConfiguration", LISTS[0]), ("backendAddressPool", LISTS[1]), ("probe", LISTS[2])]
            for field, kind in needed:
                if field == "probe" and field not in inner:
                    continue
                start, _, name = ((inner.get(field) or {}).get("id") or "").rpartition("/")
                if start.lower() != f"{path}/{kind}".lower() or name.lower() not in names[kind]:
                    text = f"Resource {inner.get(field)} referenced by resource {rule['id']} was not found."
                    raise wrong(text, "InvalidResourceReference")
            front_id, pool_id = inner["frontendIPConfiguration"]["id"].lower(), inner["backendAddressPool"]["id"].lower()
            self.rule(rule, fronts[front_id], pools[pool_id])
            key = front_id, inner["protocol"].lower(), inner["frontendPort"]
            of_front = [one for one in used if one[0] == front_id]
            if key in used or (of_front and "all" in (key[1], of_front[0][1])):
                raise wrong(f"Load balancing rules {used.get(key)} and {rule['name']} use the same frontend, protocol and port.")
            used[key] = rule["name"]
            if not inner.get("enableFloatingIP"):
                key = pool_id, inner["protocol"].lower(), inner["backendPort"]
                if key in led_to:
                    text = f"Load balancing rules {led_to[key]} and {rule['name']} with floating IP disabled use the same protocol, backend port and pool."
                    raise wrong(text, "RulesUseSameBackendPortProtocolAndPool")
                led_to[key] = rule["name"]

    def rule(self, rule, front, pool):
        """One rule, from its frontend to its pool."""
        inner, name = rule["properties"], rule["name"]
        protocol, ports = inner["protocol"].lower(), [inner.get("frontendPort"), inner.get("backendPort")]
        if (protocol == "all") != (ports == [0, 0]) or (protocol != "all" and not all(port and 0 < port < 65535 for port in ports)):
            raise wrong(f"Rule {name}: ports {ports} are not for protocol {protocol}: 0 and All are for all ports, and nothing else is.")
        if protocol == "all" and not front.get("subnet"):
            raise wrong(f"Rule {name} for all ports needs an internal frontend.")
        if inner.get("enableFloatingIP") and ports[0] != ports[1]:
            raise wrong(f"Rule {name} has floating IP enabled, so its frontend and backend ports have to be the same.")
        if protocol == "udp" and inner.get("enableTcpReset"):
            raise wrong(f"Rule {name} of UDP cannot reset.")
        if not 4 <= inner.setdefault("idleTimeoutInMinutes", 4) <= 100:
            raise wrong(f"The idle timeout of rule {name} is not from 4 to 100.")
        public = front.get("publicIPAddress")
        version = self.there(public, name)["properties"]["publicIPAddressVersion"] if public else front["privateIPAddressVersion"]
        behind = [one["properties"]["ipAddress"] for one in pool.get("loadBalancerBackendAddresses", [])]
        if any(f"IPv{ipaddress.ip_address(one).version}" != version for one in behind):
            raise wrong(f"Rule {name} leads from a frontend of {version} to a pool of another version.")

    def group(self, path, body):
        priorities, names = set(), set()
        for rule in body["properties"].setdefault("securityRules", []):
            inner = rule.get("properties", {})
            key = inner.get("direction"), inner.get("priority")
            if inner.get("priority") not in PRIORITIES or key in priorities or rule["name"].lower() in names:
                text = f"Security rule {rule['name']} has a priority or name that is not allowed or there twice: {key}."
                raise wrong(text, "SecurityRuleConflict")
            priorities.add(key)
            names.add(rule["name"].lower())
            for one, many in [("sourceAddressPrefix", "sourceAddressPrefixes"), ("destinationAddressPrefix", "destinationAddressPrefixes")]:
                if bool(inner.get(one)) == bool(inner.get(many)):
                    raise wrong(f"Security rule {rule['name']} needs {one} or {many}.", "SecurityRuleInvalidAddressPrefix")
                for network in inner.get(many) or []:
                    try:
                        ipaddress.ip_network(network, strict=False)
                    except ValueError as error:
                        raise wrong(f"Security rule {rule['name']}: {error}", "SecurityRuleInvalidAddressPrefix") from error
            if bool(inner.get("destinationPortRange")) == bool(inner.get("destinationPortRanges")):
                text = f"Security rule {rule['name']} needs destinationPortRange or destinationPortRanges."
                raise wrong(text, "SecurityRuleInvalidPortRange")
            rule["id"] = f"{path}/securityRules/{rule['name']}"

    def fronts(self):
        balancers = [one for path, one in self.store.all.items() if path.split("/")[-2] == "loadbalancers"]
        return [front for one in balancers for front in one["properties"].get("frontendIPConfigurations", [])]

    def user(self, public):
        """Whose a public address is."""
        for front in self.fronts():
            if (front["properties"].get("publicIPAddress") or {}).get("id", "").lower() == public.lower():
                return front["id"].lower()
        return None

    def check_deletion(self, path):
        kind = path.lower().split("/")[-2]
        if kind == "loadbalancers":
            self.links.check_fronts(path, [])
        elif kind == "privatelinkservices":
            self.links.check_deletion(path)
        elif kind not in ("publicipaddresses", "privateendpointconnections"):
            raise refused(405, "MethodNotAllowed", f"DELETE of {kind} is not for Cloudwit")
        if kind == "publicipaddresses" and (user := self.user(path)):
            text = f"Public IP address {path} can not be deleted since it is still allocated to resource {user}."
            raise wrong(text, "PublicIPAddressCannotBeDeleted")
        if path.lower() not in self.store.all:
            raise missing(path)
