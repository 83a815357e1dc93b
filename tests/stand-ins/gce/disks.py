"""Persistent disks and snapshots: what Compute Engine adds to them, and how they come to machines."""

import time

from gce.errors import OperationFailed, in_use, invalid, not_found, refused

# With the least size of one with replicas, in GB.
TYPES = {"pd-standard": 200, "pd-balanced": 10, "pd-ssd": 10, "pd-extreme": None, "hyperdisk-balanced": None}
# Types of machines that take fewer disks, the one they start from included.
SMALL = ("f1-micro", "g1-small", "e2-micro", "e2-small", "e2-medium")
MOST_GB = 65_536


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%S.000-00:00", time.gmtime())


def gigabytes(text):
    """What the schema has as a number in a text."""
    size = int(text)
    if not 1 <= size <= MOST_GB:
        raise invalid(f"Invalid value for field 'resource.sizeGb': '{text}'. Disk size must be from 1 to {MOST_GB}")
    return size


def complete_disk(cloud, path, body):
    parts = path.split("/")
    scope = "/".join(parts[:4])
    kind = cloud.store.path(body.get("type") or f"{scope}/diskTypes/pd-standard")
    name = kind.split("/")[-1]
    if kind != f"{scope}/diskTypes/{name}" or name not in TYPES:
        raise invalid(f"Invalid value for field 'resource.type': '{body.get('type')}'. The referenced disk type does not exist")
    snapshot = cloud.store.get(cloud.store.linked(body["sourceSnapshot"], parts[1])) if body.get("sourceSnapshot") else None
    size = gigabytes(body.get("sizeGb") or (snapshot["diskSizeGb"] if snapshot else "500"))
    if snapshot and size < int(snapshot["diskSizeGb"]):
        raise invalid(f"Invalid value for field 'resource.sizeGb': '{size}'. Requested disk size cannot be smaller than the snapshot size ({snapshot['diskSizeGb']} GB)")
    if snapshot and snapshot["status"] != "READY":
        raise refused(400, "resourceNotReady", f"The resource '{cloud.store.path(snapshot['selfLink'])}' is not ready")
    whole = {"physicalBlockSizeBytes": "4096"} | body | {"type": cloud.store.link(kind), "sizeGb": str(size), "status": "READY", "creationTimestamp": now()}
    if snapshot:
        whole |= {"sourceSnapshot": snapshot["selfLink"], "sourceSnapshotId": snapshot["id"]}
    if parts[2] == "zones":
        if "replicaZones" in body:
            raise invalid("Invalid value for field 'resource.replicaZones': it is for regional disks")
        return whole | {"zone": cloud.store.link(scope)}
    return whole | {"region": cloud.store.link(scope), "replicaZones": replicas(cloud, parts, body, name, size)}


def replicas(cloud, parts, body, kind, size):
    zones = [cloud.store.linked(link, parts[1]) for link in body.get("replicaZones", [])]
    if len(set(zones)) != 2 or any(not zone.split("/")[-1].startswith(parts[3] + "-") for zone in zones):
        raise invalid("Invalid value for field 'resource.replicaZones': two zones of the region are needed")
    least = TYPES[kind]
    if least is None or size < least:
        raise invalid(f"Invalid value for field 'resource.sizeGb': '{size}'. Disk size for {kind} with replicas must be at least {least} GB")
    return [cloud.store.link(zone) for zone in zones]


class Disks:
    """The verbs of disks, beside those of everything."""

    def resize(self, method, path, body):
        path = path.rsplit("/", 1)[0]
        disk = self.store.get(path)
        size = gigabytes(body["sizeGb"])
        if size <= int(disk["sizeGb"]):
            raise invalid(f"Invalid value for field 'sizeGb': '{size}'. New disk size must be larger than {disk['sizeGb']}")
        return self.cloud.begin("resizeDisk", path, lambda: disk.update(sizeGb=str(size)))

    def create_snapshot(self, method, path, body):
        source = path.rsplit("/", 1)[0]
        disk = self.store.get(source)
        made = f"projects/{source.split('/')[1]}/global/snapshots/{body.get('name', '')}"
        if made in self.store.resources or made in self.store.coming:
            raise refused(409, "alreadyExists", f"The resource '{made}' already exists")
        self.cloud.insist_on_quota(made)
        self.store.coming.add(made)
        snapshot = body | {
            "status": self.cloud.snapshots_begin, "sourceDisk": disk["selfLink"], "sourceDiskId": disk["id"], "diskSizeGb": disk["sizeGb"],
            "creationTimestamp": now(), "storageBytes": "0",
        }

        def finish():
            self.store.coming.discard(made)
            self.store.add(made, snapshot)

        return self.cloud.begin("createSnapshot", source, finish)

    def disk_of(self, machine, body):
        """Of a machine, as it stands in the body: what keeps it from being attached is raised."""
        path = self.store.linked(body["source"], machine.split("/")[1])
        disk, zone = self.store.get(path), self.store.link("/".join(machine.split("/")[:4]))
        if zone not in [disk.get("zone"), *disk.get("replicaZones", [])]:
            raise invalid(f"Invalid value for field 'resource.source': '{path}' is not in the zone of the instance")
        if disk.get("users"):
            raise in_use(path, self.store.path(disk["users"][0]))
        return path, disk

    def attach_disk(self, method, path, body, query=None):
        machine = path.rsplit("/", 1)[0]
        instance = self.store.get(machine)
        source, disk = self.disk_of(machine, body)
        held = instance.setdefault("disks", [])
        device = body.get("deviceName") or f"persistent-disk-{len(held) + 1}"
        if any(one["deviceName"] == device for one in held):
            raise invalid(f"Invalid value for field 'resource.deviceName': '{device}' is in use")
        most = 15 if instance["machineType"].split("/")[-1] in SMALL else 127
        most = self.cloud.disks_most if self.cloud.disks_most is not None else most
        if len(held) >= most:
            raise refused(403, "limitExceeded", f"Exceeded limit 'maximum_persistent_disks' on resource '{machine}'. Limit: {most}")

        def finish():
            if source not in self.store.resources:
                raise OperationFailed(404, "RESOURCE_NOT_FOUND", f"The resource '{source}' was not found")
            if disk.get("users"):
                raise OperationFailed(400, "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE", f"The disk resource '{source}' is already being used by '{disk['users'][0]}'")
            held.append({"kind": "compute#attachedDisk", "index": len(held) + 1, "type": "PERSISTENT", "mode": body.get("mode", "READ_WRITE"), "source": disk["selfLink"],
                         "deviceName": device, "boot": False, "autoDelete": False, "diskSizeGb": disk["sizeGb"]})
            disk["users"] = [self.store.link(machine)]

        return self.cloud.begin("attachDisk", machine, finish)

    def detach_disk(self, method, path, body, query=None):
        machine = path.rsplit("/", 1)[0]
        instance = self.store.get(machine)
        device = query["deviceName"]
        held = instance.setdefault("disks", [])
        if not any(one["deviceName"] == device for one in held):
            raise invalid(f"Invalid value for field 'disk': '{device}'. No attached disk found with device name '{device}'")

        def finish():
            for one in [one for one in held if one["deviceName"] == device]:
                held.remove(one)
                disk = self.store.resources.get(self.store.path(one["source"]))
                if disk is not None:
                    disk.pop("users", None)

        return self.cloud.begin("detachDisk", machine, finish)


def let_go(store, machine):
    """The disks of a machine that is deleted."""
    link = store.link(machine)
    for path, disk in store.resources.items():
        if path.split("/")[-2] == "disks" and link in disk.get("users", []):
            del disk["users"]


def insist_detached(store, path):
    disk = store.resources.get(path)
    if disk is None:
        raise not_found(path)
    for user in disk.get("users", []):
        raise in_use(path, store.path(user))
