"""Private link services: what Azure insists on beyond the model, and the private endpoints that others connect."""

import uuid

from azure.errors import refused
from azure.machines import LOCATION

MOST_ADDRESSES = 8
"""Of one service, each of a subnet."""


def wrong(text, code="InvalidRequestFormat"):
    return refused(400, code, text)


class Links:
    def __init__(self, store, network):
        self.store, self.network = store, network

    def all(self):
        return [one for path, one in self.store.all.items() if path.split("/")[-2] == "privatelinkservices"]

    def of(self, front):
        """The service at a frontend."""
        for one in self.all():
            if any(there["id"].lower() == front.lower() for there in one["properties"]["loadBalancerFrontendIpConfigurations"]):
                return one
        return None

    def check(self, path, body):
        properties, before = body["properties"], self.store.all.get(path.lower(), {}).get("properties", {})
        fronts = properties.get("loadBalancerFrontendIpConfigurations") or []
        if not fronts:
            raise wrong(f"Private link service {path} has no frontend IP configuration.")
        for reference in fronts:
            self.front(path, reference["id"])
        if before and [one["id"].lower() for one in before["loadBalancerFrontendIpConfigurations"]] != [one["id"].lower() for one in fronts]:
            raise wrong(f"The frontend of private link service {path} cannot be changed.", "PropertyChangeNotAllowed")
        self.addresses(path, properties)
        visible = set((properties.get("visibility") or {}).get("subscriptions", []))
        approved = set((properties.get("autoApproval") or {}).get("subscriptions", []))
        if "*" not in visible and not approved <= visible:
            raise wrong(f"Subscriptions {approved - visible} of autoApproval are not in visibility.")
        properties["alias"] = before.get("alias") or f"{path.rsplit('/', 1)[1]}.{uuid.uuid4()}.{LOCATION}.azure.privatelinkservice"
        properties.pop("privateEndpointConnections", None)

    def front(self, path, reference):
        front = next((one for one in self.network.fronts() if one["id"].lower() == reference.lower()), None)
        if front is None:
            raise wrong(f"Resource {reference} referenced by resource {path} was not found.", "InvalidResourceReference")
        other = self.of(reference)
        if other is not None and other["id"].lower() != path.lower():
            raise wrong(f"Frontend {reference} is used by private link service {other['id']}.")
        balancer = self.store.all[reference.lower().split("/frontendipconfigurations/")[0]]
        for rule in balancer["properties"].get("loadBalancingRules", []):
            inner = rule["properties"]
            floats = inner.get("enableFloatingIP") and front["properties"].get("publicIPAddress")
            if floats and inner["frontendIPConfiguration"]["id"].lower() == reference.lower():
                raise wrong(f"Rule {rule['id']} has floating IP enabled, so its public frontend cannot have a private link service.")

    def addresses(self, path, properties):
        configurations = properties.get("ipConfigurations") or []
        if not 1 <= len(configurations) <= MOST_ADDRESSES or len({one["name"] for one in configurations}) != len(configurations):
            raise wrong(f"Private link service {path} needs 1 to {MOST_ADDRESSES} IP configurations with names of their own.")
        if sum(bool(one["properties"].get("primary")) for one in configurations) != 1:
            raise wrong(f"Private link service {path} needs one primary IP configuration.")
        for one in configurations:
            inner = one["properties"]
            subnet = self.network.there(inner.get("subnet"), path)
            if subnet["properties"].get("privateLinkServiceNetworkPolicies") != "Disabled":
                text = f"Private link service {path} cannot be created in subnet {subnet['id']} since it has private link service network policies enabled."
                raise wrong(text, "PrivateLinkServiceCannotBeCreatedInSubnetThatHasNetworkPoliciesEnabled")
            if inner.get("privateIPAddressVersion", "IPv4") != "IPv4":
                raise wrong(f"Private link service {path} takes IPv4 addresses only.")
            self.network.internal(path, inner)
            one["id"] = f"{path}/ipConfigurations/{one['name']}"

    def check_fronts(self, path, fronts):
        """Frontends that a service is at stay."""
        names = {front["name"].lower() for front in fronts}
        for one in self.all():
            for reference in one["properties"]["loadBalancerFrontendIpConfigurations"]:
                balancer, name = reference["id"].lower().split("/frontendipconfigurations/")
                if balancer == path.lower() and name not in names:
                    text = f"Frontend {reference['id']} is in use by private link service {one['id']} and cannot be deleted."
                    raise wrong(text, "InUseFrontendIPConfigurationCannotBeDeleted")

    def check_deletion(self, path):
        if self.connections(path):
            raise wrong(f"Private link service {path} has private endpoint connections and cannot be deleted.", "PrivateLinkServiceInUse")

    def connections(self, path):
        return self.store.list(f"{path}/privateEndpointConnections")

    def connect(self, path, name):
        """A private endpoint of a consumer."""
        connection = {"type": "Microsoft.Network/privateLinkServices/privateEndpointConnections", "properties": {
            "privateLinkServiceConnectionState": {"status": "Approved"}, "provisioningState": "Succeeded",
        }}
        self.store.renew(self.store.put(f"{path}/privateEndpointConnections/{name}", connection))

    def renew_balancer(self, service):
        """A service at a frontend changes the load balancer too."""
        for reference in service["properties"]["loadBalancerFrontendIpConfigurations"]:
            if balancer := self.store.all.get(reference["id"].lower().split("/frontendipconfigurations/")[0]):
                self.store.renew(balancer)
