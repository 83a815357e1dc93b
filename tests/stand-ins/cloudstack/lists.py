"""What each list shows, filtered as CloudStack does."""

from cloudstack.errors import no_such, wrong

DETAILS = {"all", "group", "nics", "stats", "secgrp", "tmpl", "servoff", "diskoff", "iso", "volume", "min", "affgrp", "backoff"}


class Lists:
    def __init__(self, store, network):
        self.store, self.network = store, network

    def owned(self, kind, parameters):
        """Those of the project, else those of the account."""
        project = parameters.get("projectid")
        if project is not None and project not in self.store.kinds["projects"]:
            raise no_such(parameters["command"], "projectid", project)
        return [one for one in self.store.all(kind) if one.get("projectid") == project]

    def filtered(self, kind, items, parameters, **keys):
        """By id, and by parameters that are fields of the same name."""
        if id := parameters.get("id"):
            self.store.known(kind, id, parameters["command"], "id")
        if keyword := parameters.get("keyword"):
            items = [one for one in items if keyword.lower() in one["name"].lower()]
        for name in ("id", *keys):
            if name in parameters:
                field = keys.get(name) or name
                items = [one for one in items if one.get(field) == parameters[name]]
        return items

    def machines(self, parameters):
        found = self.owned("machines", parameters)
        if "state" not in parameters:
            # `allow.user.view.destroyed.vm` is false.
            found = [one for one in found if one["state"] not in ("Destroyed", "Expunging")]
        found = self.filtered("machines", found, parameters, state="state")
        if name := parameters.get("name"):
            found = [one for one in found if name.lower() in one["name"].lower()]
        if ids := parameters.get("ids"):
            for id in ids.split(","):
                self.store.known("machines", id, "listVirtualMachines", "ids")
            found = [one for one in found if one["id"] in ids.split(",")]
        details = set(parameters.get("details", "all").split(","))
        if not details <= DETAILS:
            raise wrong(f"The details parameter contains a non permitted value: {details - DETAILS}")
        return "virtualmachine", [self.shown_machine(one, details) for one in found]

    def shown_machine(self, machine, details):
        hidden = {"projectid"}
        if not details & {"all", "nics"}:
            hidden |= {"nic", "publicip", "publicipid"}
        if not details & {"all", "servoff"}:
            hidden |= {"serviceofferingname", "serviceofferingid"}
        return {key: value for key, value in machine.items() if key not in hidden and value is not None}

    def networks(self, parameters):
        found = self.filtered("networks", self.owned("networks", parameters), parameters, vpcid="vpcid")
        shown = [{key: value for key, value in one.items() if key != "services" and value is not None} for one in found]
        for one, network in zip(shown, found, strict=True):
            one["service"] = [{"name": name} for name in network["services"]]
        return "network", shown

    def addresses(self, parameters):
        found = self.owned("addresses", parameters)
        if parameters.get("allocatedonly", "true") == "true":
            found = [one for one in found if one["allocated"]]
        else:
            found = found + [one for one in self.store.all("addresses") if not one["allocated"] and one not in found]
        found = self.filtered("addresses", found, parameters, ipaddress="ipaddress", vpcid="vpcid", associatednetworkid="associatednetworkid", state="state")
        for tag in parameters.get("tags", []):
            found = [one for one in found if tag in one["tags"]]
        return "publicipaddress", [self.network.shown_address(one) for one in found]

    def rules(self, parameters):
        found = self.filtered("rules", self.owned("rules", parameters), parameters, publicipid="publicipid", networkid="networkid", name="name")
        return "loadbalancerrule", [self.network.shown_rule(one) for one in found]

    def members(self, parameters):
        rule = self.store.get("rules", parameters["id"], "listLoadBalancerRuleInstances", "id")
        found = [self.store.kinds["machines"][id] for id in rule["machines"] if id in self.store.kinds["machines"]]
        return "loadbalancerruleinstance", [self.shown_machine(one, {"all"}) for one in found]

    def firewall(self, parameters):
        found = self.filtered("firewall", self.owned("firewall", parameters), parameters, ipaddressid="ipaddressid", networkid="networkid")
        return "firewallrule", found

    def acls(self, parameters):
        found = self.owned("acls", parameters)
        found += [one for one in self.store.all("acls") if one["name"].startswith("default_") and one not in found]
        return "networkacllist", self.filtered("acls", found, parameters, name="name", vpcid="vpcid")

    def openings(self, parameters):
        found = self.filtered("openings", self.owned("openings", parameters), parameters, aclid="aclid", protocol="protocol", traffictype="traffictype")
        if network := parameters.get("networkid"):
            acl = self.store.kinds["networks"].get(network, {}).get("aclid")
            found = [one for one in found if one["aclid"] == acl]
        return "networkacl", found
