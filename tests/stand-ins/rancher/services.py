"""Stacks, load balancers and external services: what Cattle refuses of them, links that follow from rules, and where load balancers are reached."""

from rancher.errors import invalid, refused

RESERVED_PORT = 42
NO_HOST = "Scheduling failed: hosts need ports {} available"


def published(port):
    outside, _, inside = port.removesuffix("/tcp").partition(":")
    if not outside.isdigit() or not inside.isdigit():
        raise invalid("InvalidOption", "ports", f"{port} is no port")
    return int(outside)


class Services:
    def __init__(self, store):
        self.store, self.links = store, {}

    def rules(self, one):
        return (one.get("lbConfig") or {}).get("portRules") or []

    def check(self, type, body, id=None):
        """What the schema does not say (ServiceValidationFilter)."""
        if type == "stack" and any(one["name"] == body.get("name") for one in self.store.of("stack")):
            raise invalid("NotUnique", "name")
        if type not in ("loadBalancerService", "externalService"):
            return
        if id is None:
            stack = self.store.all.get(body.get("stackId") or "")
            if stack is None or stack["type"] != "stack" or stack["state"] in ("error", "removing", "removed"):
                raise invalid("InvalidState", "stackId", "stack is not in a valid state")
            same = [one for one in self.store.of("loadBalancerService", "externalService") if one["stackId"] == body["stackId"]]
            if any(one["name"].lower() == body["name"].lower() for one in same):
                raise invalid("NotUnique", "name")
            for port in (body.get("launchConfig") or {}).get("ports") or []:
                published(port)
        if body.get("externalIpAddresses") and body.get("hostname"):
            raise invalid("InvalidOption", message="externalIpAddresses and hostname are mutually exclusive")
        for rule in self.rules(body):
            if rule["sourcePort"] == RESERVED_PORT:
                raise invalid("InvalidOption", message=f"Port {RESERVED_PORT} is reserved for service health check")
            if not rule.get("serviceId") and not rule.get("selector"):
                raise invalid("MissingRequired", "serviceId")
            if rule.get("targetPort") is None:
                raise invalid("MissingRequired", "targetPort")
            self.known(rule["serviceId"])

    def known(self, id):
        found = self.store.all.get(id)
        if found is None or found["type"] not in ("externalService", "loadBalancerService") or found["state"] in ("removing", "removed"):
            raise invalid("InvalidReference", "serviceId", f"Service {id} is removed")

    def link(self, one, ids):
        self.links[one["id"]] = list(dict.fromkeys(ids))

    def consumed(self, id):
        return [one for one in self.store.of("externalService", "loadBalancerService") if one["id"] in self.links.get(id, [])]

    def consumers(self, id):
        return [one for one in self.store.of("externalService", "loadBalancerService") if id in self.links.get(one["id"], [])]

    def created(self, one):
        self.store.process(one, "create", lambda: self.follow(one))

    def follow(self, one):
        """Links of a load balancer are those of its rules (LoadBalancerServiceCreatePostListener)."""
        if one["type"] == "loadBalancerService":
            self.link(one, [rule["serviceId"] for rule in self.rules(one)])

    def updated(self, one):
        self.store.process(one, "update", lambda: (self.follow(one), self.reach(one)))

    def activated(self, one):
        self.store.process(one, "activate", lambda: self.reach(one))

    def removed(self, one):
        def gone():
            one.pop("publicEndpoints", None)
            self.links.pop(one["id"], None)
            for ids in self.links.values():
                if one["id"] in ids:
                    ids.remove(one["id"])
            self.retry()

        # Its container goes at once.
        one["failing"], one["transitioningMessage"] = None, None
        self.store.process(one, "remove", gone)

    def reach(self, one):
        """A container on a host whose ports are free."""
        if one["type"] != "loadBalancerService" or one["state"] == "updating-inactive" or one.get("publicEndpoints"):
            return
        ports = [published(port) for port in (one["launchConfig"] or {}).get("ports") or []]
        taken = {(point["hostId"], point["port"]) for other in self.store.of("loadBalancerService") for point in other.get("publicEndpoints") or []}
        hosts = [host for host in self.store.of("host") if host["state"] == "active" and host["agentState"] != "disconnected"]
        free = [host for host in hosts if not any((host["id"], port) in taken for port in ports)]
        if not free:
            one["failing"] = True
            one["transitioningMessage"] = NO_HOST.format(", ".join(f"{port}/tcp" for port in ports))
            return
        one["failing"], one["transitioningMessage"] = None, None
        one["publicEndpoints"] = [
            {"type": "publicEndpoint", "ipAddress": free[0]["agentIpAddress"], "port": port, "hostId": free[0]["id"], "instanceId": "1i1", "serviceId": one["id"]}
            for port in ports
        ]

    def retry(self):
        """What failed is tried again when a port or a host comes free."""
        for one in self.store.of("loadBalancerService"):
            if one["failing"]:
                self.reach(one)
                if one["failing"] is None:
                    one["state"] = "active"

    def act(self, one, action, body):
        if action == "activate":
            self.activated(one)
        elif action == "deactivate":
            self.store.process(one, "deactivate", lambda: one.update(publicEndpoints=[]))
        elif action == "setservicelinks":
            ids = [link["serviceId"] for link in body.get("serviceLinks") or []]
            if len(ids) != len(set(ids)):
                raise invalid("NotUnique", "serviceId and link name combination")
            for id in ids:
                self.known(id)
            self.link(one, ids)
        else:
            raise refused(409, "ActionNotAvailable")
