"""Persistent disks: their states, and what the controller refuses to do with them."""

import re
import uuid

from photon.errors import error, refused

KIND = "persistent-disk"
# `DiskCreateSpec` of the API's model.
NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9-]{0,62}")
FIELDS = {"name", "kind", "flavor", "capacityGb", "tags", "affinities"}
# In which states of a disk each operation is allowed.
ALLOWED = {"ATTACH_DISK": {"DETACHED"}, "DETACH_DISK": {"ATTACHED"}, "DELETE_DISK": {"DETACHED", "ERROR"}}


class Failed(Exception):
    """Why a task fails."""


class Disks:
    def __init__(self, flavors, limit_gb):
        self.all, self.flavors, self.limit_gb = {}, flavors, limit_gb
        self.failures = []

    def used_gb(self):
        return sum(disk["capacityGb"] for disk in self.all.values())

    def known(self, id):
        if id not in self.all:
            raise refused(404, "DiskNotFound", f"Disk {KIND}#{id} not found")
        return self.all[id]

    def made(self, spec):
        """The new disk, which the controller has from the request on."""
        spec = spec if isinstance(spec, dict) else {}
        if set(spec) - FIELDS:
            raise refused(400, "InvalidJson", f"Unrecognized field {sorted(set(spec) - FIELDS)[0]}")
        name, gigabytes, tags = spec.get("name"), spec.get("capacityGb"), spec.get("tags", [])
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise refused(400, "InvalidEntity", f"name : The specified disk name does not match pattern: ^[a-zA-Z][a-zA-Z0-9-]* (was {name})")
        if spec.get("kind") not in (KIND, "persistent"):
            raise refused(400, "InvalidEntity", f"kind : The specified kind does not match : persistent-disk|persistent (was {spec.get('kind')})")
        if not isinstance(gigabytes, int) or gigabytes < 1:
            raise refused(400, "InvalidEntity", f"capacityGb must be greater than or equal to 1 (was {gigabytes})")
        if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
            raise refused(400, "InvalidJson", "tags are texts")
        if spec.get("flavor") not in self.flavors:
            raise refused(404, "FlavorNotFound", f"Flavor named {spec.get('flavor')}, kind {KIND} is not found")
        if self.used_gb() + gigabytes > self.limit_gb:
            raise refused(400, "QuotaError", f"Not enough quota: Current Limit: persistent-disk.capacity, {self.limit_gb}, GB, desiredUsage {self.used_gb() + gigabytes}, GB")
        disk = {"id": str(uuid.uuid4()), "kind": KIND, "name": name, "state": "CREATING", "flavor": spec["flavor"], "capacityGb": gigabytes,
                "tags": sorted(set(tags)), "vms": [], "datastore": "datastore1"}
        self.all[disk["id"]] = disk
        return disk

    def check(self, disk, operation):
        if disk["state"] not in ALLOWED[operation]:
            raise refused(400, "StateError", f"Invalid operation {operation} for {KIND}#{disk['id']} in state {disk['state']}")

    def fails(self, operation):
        """Whether a test has ordered that the next one of these fails."""
        found = next((one for one in self.failures if one["operation"] == operation), None)
        if found:
            self.failures.remove(found)
            return Failed(found["code"], found["message"])
        return None

    def created(self, disk):
        failure = self.fails("CREATE_DISK")
        disk["state"] = "ERROR" if failure else "DETACHED"
        if failure:
            raise failure

    def attached(self, disk, machine):
        failure = self.fails("ATTACH_DISK")
        if failure:
            raise failure
        disk["state"], disk["vms"] = "ATTACHED", [machine]

    def detached(self, disk):
        failure = self.fails("DETACH_DISK")
        if failure:
            raise failure
        disk["state"], disk["vms"] = "DETACHED", []

    def deleted(self, disk):
        failure = self.fails("DELETE_DISK")
        if failure:
            raise failure
        self.all.pop(disk["id"], None)

    def of_machine(self, machine):
        some = [disk for disk in self.all.values() if machine in disk["vms"]]
        return [{"id": disk["id"], "name": disk["name"], "kind": KIND, "flavor": disk["flavor"], "capacityGb": disk["capacityGb"], "state": disk["state"], "bootDisk": False} for disk in some]

    def ticket(self):
        line = lambda value: [{"key": "persistent-disk.capacity", "value": float(value), "unit": "GB"}]
        return {"tenantTicketId": "rt-1", "tenantTicketName": "gold", "limits": line(self.limit_gb), "usage": line(self.used_gb())}

    def flavor(self, name):
        return {"id": f"flavor-{name}", "kind": KIND, "name": name, "state": "READY", "cost": [{"key": KIND, "value": 1.0, "unit": "COUNT"}], "tags": []}


def of_task(failure):
    """The failure of a task, in its step."""
    return error(*failure.args) if isinstance(failure, Failed) else error("InternalError", str(failure))
