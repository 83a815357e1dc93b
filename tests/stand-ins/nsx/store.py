"""What was intended: objects by their paths, with revisions, references and marks of deletion; and what has been realized of it."""

import time
import uuid
from dataclasses import dataclass, field

from nsx import models
from nsx.errors import bad, missing, refused, stale


@dataclass(frozen=True)
class Kind:
    model: str
    """Of the client, or the field whose value names it."""
    references: tuple = ()
    """Fields with the paths of other objects."""
    needed: tuple = ()
    """Fields without which it is refused."""


KINDS = {
    "lb-services": Kind("LBService", ("connectivity_path",)),
    "lb-virtual-servers": Kind("LBVirtualServer", ("pool_path", "application_profile_path", "lb_service_path"), ("ip_address", "ports", "application_profile_path")),
    "lb-pools": Kind("LBPool", ("active_monitor_paths",)),
    "lb-monitor-profiles": Kind("resource_type", needed=("resource_type",)),
    "lb-app-profiles": Kind("resource_type", needed=("resource_type",)),
    "ip-pools": Kind("IpAddressPool"),
    "ip-allocations": Kind("IpAddressAllocation"),
    "tier-1s": Kind("Tier1"),
    "static-routes": Kind("StaticRoutes", needed=("network", "next_hops")),
}
BASES = {"lb-monitor-profiles": "LBMonitorProfile", "lb-app-profiles": "LBAppProfile"}
REALIZED = {"ip-allocations": "RealizedIpAddressAllocation", "lb-virtual-servers": "RealizedLbVirtualServer", "static-routes": "RealizedStaticRoute"}


@dataclass
class Thing:
    body: dict
    kind: str
    due: float
    """When it is realized."""
    error: str = ""
    """Why it will never be."""
    attributes: dict = field(default_factory=dict)

    def state(self):
        if time.monotonic() < self.due:
            return "UNREALIZED"
        return "ERROR" if self.error else "REALIZED"


def kind_of(path):
    return path.rsplit("/", 2)[-2]


def paths_in(value):
    return value if isinstance(value, list) else [value] if value else []


class Store:
    def __init__(self):
        self.things = {}
        self.leaving = {}
        """Paths of what is marked for deletion, and until when."""
        self.seconds = 0.2
        self.failures = []
        """Orders to fail realization: kind, text, times."""
        self.most = {}
        """Most objects of a kind."""

    def get(self, path):
        if path not in self.things:
            raise missing(path)
        return self.things[path]

    def put(self, path, body, merge=False):
        """Creates or replaces, or with `merge` changes only what is given."""
        kind, thing = kind_of(path), self.things.get(path)
        if self.leaving.get(path, 0) > time.monotonic():
            raise bad(f"Object {path} is marked for deletion. It cannot be changed before that is done.", 500045)
        if thing is None and len([one for one in self.things.values() if one.kind == kind]) >= self.most.get(kind, 1 << 30):
            raise bad(f"The number of {kind} exceeds the maximum that is supported.", 500303)
        if thing is not None and not merge and body.get("_revision") != thing.body["_revision"]:
            raise stale(path)
        if thing is not None and merge and body.get("_revision", thing.body["_revision"]) != thing.body["_revision"]:
            raise stale(path)
        before = thing.body if thing else {}
        whole = before | body if merge else dict(body)
        self.check_needed(kind, whole)
        parent, _, id = path.rpartition(f"/{kind}/")
        whole |= {
            "id": id, "path": path, "relative_path": id, "parent_path": parent, "display_name": whole.get("display_name", id),
            "resource_type": whole.get("resource_type") or KINDS[kind].model, "_revision": before.get("_revision", -1) + 1,
            "unique_id": before.get("unique_id") or str(uuid.uuid4()), "marked_for_delete": False, "_system_owned": False,
        }
        self.check(kind, whole)
        error = self.failure(kind)
        self.things[path] = Thing(whole, kind, time.monotonic() + self.seconds, error, thing.attributes if thing else {})
        return whole

    def check_needed(self, kind, body):
        for name in KINDS[kind].needed:
            if not body.get(name):
                raise bad(f"Field level validation errors: {{{name} is a required property}}", 220)

    def check(self, kind, body):
        known = KINDS[kind]
        try:
            if known.model == "resource_type":
                models.check_tree(BASES[kind], "resource_type", body, "")
            else:
                models.check(known.model, body)
        except ValueError as error:
            raise bad(f"Field level validation errors: {error}", 220) from error
        for name in known.references:
            for path in paths_in(body.get(name)):
                if path not in self.things:
                    raise bad(f"The path=[{path}] is invalid")

    def failure(self, kind):
        for order in self.failures:
            if order["kind"] == kind and order["times"] > 0:
                order["times"] -= 1
                return order["text"]
        return ""

    def delete(self, path, force=False):
        thing = self.get(path)
        users = [other for other, one in self.things.items() if path in self.references(one) or other.startswith(f"{path}/")]
        if users and not force:
            text = f"The object path=[{path}] cannot be deleted as either it has children or it is being referenced by other objects path={users}."
            raise refused(400, 500030, text)
        del self.things[path]
        if thing.kind in REALIZED and not force:
            self.leaving[path] = time.monotonic() + self.seconds

    def references(self, thing):
        return [path for name in KINDS[thing.kind].references for path in paths_in(thing.body.get(name))]

    def of(self, kind, parent):
        return [thing.body for path, thing in sorted(self.things.items()) if path.rsplit("/", 1)[0] == f"{parent}/{kind}"]

    def realized(self, path):
        """The realized entities of an intent."""
        thing = self.get(path)
        state = thing.state()
        entity = {
            "entity_type": REALIZED.get(thing.kind, "RealizedObject"), "intent_paths": [path], "intent_reference": [path], "state": state, "id": path.rsplit("/", 1)[1],
            "alarms": [{"message": thing.error, "source_reference": path}] if state == "ERROR" else [],
            "extended_attributes": [
                {"key": key, "values": [value], "data_type": "STRING", "multivalue": False} for key, value in thing.attributes.items() if state == "REALIZED"
            ],
        }
        models.check("GenericPolicyRealizedResource", entity)
        return [entity]
