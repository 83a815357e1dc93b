"""What Compute Engine adds to a new resource, and what it does not take."""

import ipaddress
import secrets

from gce.disks import complete_disk
from gce.errors import invalid, refused


def fingerprint():
    return secrets.token_urlsafe(9)


def complete(cloud, path, body):
    """The resource as it will be shown. Raises what Compute Engine would."""
    collection = path.split("/")[-2]
    rule = globals().get(f"complete_{collection}")
    return rule(cloud, path, dict(body)) if rule else dict(body)


def project_of(path):
    return path.split("/")[1]


def absolute(cloud, path, body, *names):
    """Links to what exists, as whole URLs."""
    for name in names:
        if body.get(name):
            body[name] = cloud.store.link(cloud.store.linked(body[name], project_of(path)))


def complete_disks(cloud, path, body):
    return complete_disk(cloud, path, body)


def complete_routes(cloud, path, body):
    absolute(cloud, path, body, "network", "nextHopInstance")
    ipaddress.ip_network(body["destRange"])
    hops = [name for name in body if name.startswith("nextHop")]
    if len(hops) != 1:
        raise invalid("Invalid value for field 'resource': exactly one next hop is needed")
    return body


def complete_firewalls(cloud, path, body):
    absolute(cloud, path, body, "network")
    body.setdefault("priority", 1000)
    body.setdefault("direction", "INGRESS")
    for name in ("sourceRanges", "destinationRanges"):
        for text in body.get(name, []):
            try:
                ipaddress.ip_network(text)
            except ValueError as error:
                raise invalid(f"Invalid value for field 'resource.{name}': '{text}'") from error
    if not body.get("allowed") and not body.get("denied"):
        raise invalid("Invalid value for field 'resource.allowed': ''. Exactly one of allowed or denied is needed")
    return body


def complete_httpHealthChecks(cloud, path, body):
    if body.get("timeoutSec", 5) > body.get("checkIntervalSec", 5):
        raise invalid("Invalid value for field 'resource.timeoutSec': it is more than checkIntervalSec")
    return {"requestPath": "/", "port": 80, "checkIntervalSec": 5, "timeoutSec": 5, "healthyThreshold": 2, "unhealthyThreshold": 2} | body


def complete_healthChecks(cloud, path, body):
    if body.get("type") != "HTTP" or "httpHealthCheck" not in body:
        raise invalid("Invalid value for field 'resource.type': the stand-in knows HTTP only")
    return {"checkIntervalSec": 5, "timeoutSec": 5, "healthyThreshold": 2, "unhealthyThreshold": 2} | body


def complete_addresses(cloud, path, body):
    kind = body.setdefault("addressType", "EXTERNAL")
    if kind == "INTERNAL":
        absolute(cloud, path, body, "subnetwork")
        if not body.get("subnetwork"):
            raise invalid("Invalid value for field 'resource.subnetwork': an internal address needs one")
    else:
        body.setdefault("networkTier", "PREMIUM")
    taken = {other["address"] for other in cloud.store.resources.values() if "address" in other}
    wanted = body.get("address")
    if wanted in taken and cloud.store.resources.get(path, {}).get("address") != wanted:
        raise refused(409, "alreadyExists", f"Specified IP address is already reserved: {wanted}")
    if not wanted:
        body["address"] = next(cloud.internal if kind == "INTERNAL" else cloud.external)
    elif kind == "EXTERNAL" and not any(rule.get("IPAddress") == wanted for rule in cloud.store.resources.values()):
        raise invalid(f"Invalid value for field 'resource.address': '{wanted}'. Specified external IP address is not in use")
    return {"status": "RESERVED"} | body | {"region": region(cloud, path)}


def region(cloud, path):
    return cloud.store.link("/".join(path.split("/")[:4]))


def complete_targetPools(cloud, path, body):
    body["healthChecks"] = [linked(cloud, path, link) for link in body.get("healthChecks", [])]
    body["instances"] = [linked(cloud, path, link) for link in body.get("instances", [])]
    if len(body["healthChecks"]) > 1:
        raise invalid("Invalid value for field 'resource.healthChecks': at most one")
    if len(body["instances"]) > 200:
        raise invalid("Invalid value for field 'resource.instances': at most 200 when it is made")
    return {"sessionAffinity": "NONE", "region": region(cloud, path)} | body


def linked(cloud, path, link):
    return cloud.store.link(cloud.store.linked(link, project_of(path)))


def complete_instanceGroups(cloud, path, body):
    absolute(cloud, path, body, "network")
    return body | {"zone": region(cloud, path), "fingerprint": fingerprint()}


def complete_backendServices(cloud, path, body):
    body["healthChecks"] = [linked(cloud, path, link) for link in body.get("healthChecks", [])]
    body["backends"] = [backend | {"group": linked(cloud, path, backend["group"])} for backend in body.get("backends", [])]
    if len(body["healthChecks"]) != 1:
        raise invalid("Invalid value for field 'resource.healthChecks': exactly one is needed")
    return {"sessionAffinity": "NONE", "region": region(cloud, path), "fingerprint": fingerprint()} | body


def complete_forwardingRules(cloud, path, body):
    scheme = body.setdefault("loadBalancingScheme", "EXTERNAL")
    absolute(cloud, path, body, "target", "backendService", "network", "subnetwork")
    addresses = {other["address"]: other for other in cloud.store.resources.values() if "address" in other}
    ip = body.get("IPAddress")
    if scheme == "EXTERNAL":
        if not body.get("target") or "backendService" in body:
            raise invalid("Invalid value for field 'resource.target': an external rule of the stand-in needs a target pool")
        tier = body.setdefault("networkTier", "PREMIUM")
        if ip and ip not in addresses:
            raise invalid(f"Invalid value for field 'resource.IPAddress': '{ip}'. It is not reserved")
        if ip and addresses[ip]["networkTier"] != tier:
            raise invalid(f"Invalid value for field 'resource.networkTier': the address has {addresses[ip]['networkTier']}")
        if not body.get("portRange"):
            raise invalid("Invalid value for field 'resource.portRange': it is needed")
    else:
        if not body.get("backendService") or bool(body.get("ports")) == bool(body.get("allPorts")):
            raise invalid("Invalid value for field 'resource.ports': ports or allPorts, and a backend service")
        if len(body.get("ports", [])) > 5:
            raise invalid("Invalid value for field 'resource.ports': at most 5")
    for other, rule in cloud.store.resources.items():
        if ip and other != path and "/forwardingRules/" in other and rule.get("IPAddress") == ip:
            if rule.get("portRange") == body.get("portRange") and rule["IPProtocol"] == body["IPProtocol"]:
                raise invalid(f"Invalid value for field 'resource.IPAddress': '{ip}' is in use with these ports")
    body["IPAddress"] = ip or next(cloud.internal if scheme == "INTERNAL" else cloud.external)
    return body | {"region": region(cloud, path), "fingerprint": fingerprint()}
