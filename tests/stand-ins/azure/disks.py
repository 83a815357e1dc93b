"""Managed disks and snapshots: what Azure insists on beyond the models, what it fills in, and how disks come to machines."""

import copy
import re
import time
import uuid

from azure.errors import missing, refused
from azure.machines import LOCATION, SUBSCRIPTION
from azure.schema import assure, check
from frame import Answer

VERSIONS = ("2023-10-02", "2024-03-02", "2025-01-02", "2026-03-02")
"""Of the API of disks and snapshots, which has its own."""
OWN_SPEED = ("UltraSSD_LRS", "PremiumV2_LRS")
ZONES = ["1", "2", "3"]
LUNS = range(64)
CACHES = ("None", "ReadOnly", "ReadWrite")
NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,78}[A-Za-z0-9_])?")
READ_ONLY = ("id", "name", "type", "etag", "managedBy", "managedByExtended", "systemData")
SIZES = {"Standard_B1s": 2, "Standard_D2s_v3": 4, "Standard_D4s_v3": 8, "Standard_D64s_v3": 32}
"""Most data disks of machines."""
FULL = "The maximum number of data disks allowed to be attached to a VM of this size is {}."


def wrong(text, code="InvalidParameter"):
    return refused(400, code, text)


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%S.0000000+00:00", time.gmtime())


class Disks:
    def __init__(self, store):
        self.store = store
        self.most = None
        """Data disks of each machine, in place of what its size says."""
        self.full, self.at_once, self.limit, self.percent = [], False, None, None
        self.failing, self.offline_only = {}, False

    def versions(self, path):
        """Whether this is a path of the API of disks."""
        return re.search(r"/microsoft\.compute/(disks|snapshots)(/|$)", path.lower()) is not None

    def sizes(self):
        return [{"name": name, "maxDataDiskCount": most, "numberOfCores": 2, "memoryInMB": 8192, "osDiskSizeInMB": 1047552, "resourceDiskSizeInMB": 16384}
                for name, most in SIZES.items()]

    def answer(self, request, operation, shown=None, status=202):
        """To a change: with where to ask how it goes on, unless it is done."""
        if operation.done and operation.error is None:
            return Answer(200, shown)
        return Answer(status, shown, self.following(request, operation))

    def following(self, request, operation):
        base = f"http://{request.headers['host']}/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Compute/locations/{LOCATION}/DiskOperations/{operation.name}"
        link = f"{base}?api-version={request.query['api-version']}&p=1&t=a%2Bb"
        return {"Azure-AsyncOperation": link, "Location": f"{link}&monitor=true", "Retry-After": "1"}

    def begin(self, path, verb, finish):
        """An operation on a resource; one that a test has ordered to fail leaves the resource so."""
        failure = self.failing.pop(verb, None)

        def end():
            there = self.store.all.get(path.lower())
            try:
                if failure:
                    raise refused(409, failure, "The operation failed.")
                finish()
            except Exception:
                if there is not None:
                    there["properties"]["provisioningState"] = "Failed"
                raise

        return self.store.operations.begin(end, path=path.lower())

    def settle(self, there):
        there["properties"]["provisioningState"] = "Succeeded"

    def gib(self, size, sku):
        most = 65536 if sku in OWN_SPEED else 32767
        if not 1 <= size <= most:
            raise wrong(f"The value '{size}' of parameter 'disk.diskSizeGB' is out of range. The value must be between '1' and '{most}', inclusive.")

    def speed(self, properties, sku):
        own = [field for field in ("diskIOPSReadWrite", "diskMBpsReadWrite") if properties.get(field) is not None]
        if own and sku not in OWN_SPEED:
            raise wrong(f"{own[0]} can be set for disks of the types UltraSSD_LRS and PremiumV2_LRS only, and not for {sku}.")

    def source(self, creation):
        """What a disk or snapshot begins with."""
        option, source = creation.get("createOption"), creation.get("sourceResourceId")
        if option == "Empty" and not source:
            return None
        if option != "Copy" or not source:
            raise wrong("Required parameter 'creationData.sourceResourceId' is missing (null), or it has another createOption.")
        found = self.store.all.get(source.lower())
        if found is None:
            raise missing(source)
        return found

    def put_disk(self, path, body):
        properties = body.setdefault("properties", {})
        creation, sku = properties.get("creationData"), body.setdefault("sku", {}).setdefault("name", "Standard_LRS")
        if creation is None:
            raise wrong("Required parameter 'creationData' is missing (null).")
        source, zones = self.source(creation), body.get("zones", [])
        least = source["properties"]["diskSizeGB"] if source else 0
        if source and source["properties"].get("completionPercent", 100) < 100:
            raise refused(409, "OperationNotAllowed", f"The source {source['id']} is not ready.")
        size = properties.setdefault("diskSizeGB", least)
        self.gib(size, sku)
        if size < least:
            raise wrong(f"The specified size {size} is smaller than the size {least} of the source.")
        self.speed(properties, sku)
        if creation.get("logicalSectorSize") and (sku not in OWN_SPEED or creation["logicalSectorSize"] not in (512, 4096)):
            raise wrong("The logical sector size cannot be chosen for this disk.")
        if any(zone not in ZONES for zone in zones) or len(zones) > 1:
            raise wrong(f"The zones {zones} are not supported. The supported zones for location '{LOCATION}' are '{','.join(ZONES)}'", "InvalidAvailabilityZone")
        if sku.endswith("_ZRS") and zones or sku in OWN_SPEED and not zones:
            raise refused(400, "BadRequest", f"A disk of the type {sku} cannot have the zones {zones}.")
        if source and "/disks/" in source["id"] and not sku.endswith("_ZRS") and source.get("zones", []) != zones:
            raise refused(400, "BadRequest", "The disk and its source have to be in the same zone.")
        if (properties.get("networkAccessPolicy") == "AllowPrivate") != ("diskAccessId" in properties):
            raise wrong("networkAccessPolicy AllowPrivate needs a diskAccessId, and no other does.")
        before = self.store.all.get(path.lower())
        if before and before["properties"]["creationData"] != creation:
            raise refused(409, "PropertyChangeNotAllowed", "Changing property 'creationData' is not allowed for existing disk.")
        place = f"{LOCATION}-{zones[0]}" if zones else ""
        if not before and place in self.full and self.at_once:
            raise refused(409, "SkuNotAvailable", f"The requested size for resource '{path}' is currently not available in zone '{place}'.")

        def finish(there):
            if not before and place in self.full:
                raise refused(409, "ZonalAllocationFailed", f"Allocation failed. We do not have sufficient capacity for the disk in zone '{place}'.")
            if sku in OWN_SPEED:
                there["properties"] = {"diskIOPSReadWrite": 3000, "diskMBpsReadWrite": 125} | there["properties"]

        return finish

    def put_snapshot(self, path, body):
        properties = body.setdefault("properties", {})
        source = self.source(properties.get("creationData") or {})
        if source is None:
            raise wrong("A snapshot needs a source.")
        before = self.store.all.get(path.lower())
        if before and before["properties"]["creationData"] != properties["creationData"]:
            raise refused(409, "PropertyChangeNotAllowed", "Changing property 'creationData' is not allowed for existing disk.")
        properties["diskSizeGB"] = source["properties"]["diskSizeGB"]
        body.setdefault("sku", {"name": "Standard_LRS"})

        def finish(there):
            if self.percent is not None:
                there["properties"]["completionPercent"] = self.percent

        return finish

    def put(self, path, kind, body):
        """Begins the creation of a disk or snapshot: the resource as it is shown, and the operation."""
        if not NAME.fullmatch(path.rsplit("/", 1)[1]):
            raise wrong(f"The entity name '{path.rsplit('/', 1)[1]}' is invalid according to its validation rule.")
        body = copy.deepcopy({key: value for key, value in body.items() if key not in READ_ONLY})
        count = len([one for one in self.store.all if one.split("/")[-2] == kind])
        if self.limit is not None and path.lower() not in self.store.all and count >= self.limit:
            raise refused(409, "OperationNotAllowed", f"Operation results in exceeding quota limits of {kind}. Maximum allowed: {self.limit}, Current in use: {count}.")
        finish = self.put_disk(path, body) if kind == "disks" else self.put_snapshot(path, body)
        there = self.store.all.get(path.lower())
        if there is None:
            body["properties"] |= {"diskState": "Unattached", "timeCreated": now(), "uniqueId": str(uuid.uuid4())}
            there = self.store.put(path, body | {"type": f"Microsoft.Compute/{kind}"})
        else:
            there["tags"] = body.get("tags", {})
            there["properties"] |= body["properties"]
        there["properties"]["provisioningState"] = "Updating"
        shown = copy.deepcopy(there)

        def end():
            finish(there)
            self.settle(there)

        return shown, self.begin(path, "create", end)

    def patch(self, path, body):
        """Begins a change of a disk."""
        check("disks/update", body)
        there = self.store.get(path)
        properties = body.get("properties", {})
        sku, held = body.get("sku", there["sku"])["name"], there.get("managedBy")
        self.speed(properties, sku)
        size = properties.get("diskSizeGB", there["properties"]["diskSizeGB"])
        self.gib(size, sku)
        if size < there["properties"]["diskSizeGB"]:
            raise refused(409, "OperationNotAllowed", "Disk resize to a smaller size is not allowed.")
        if held and self.offline_only and size > there["properties"]["diskSizeGB"]:
            text = f"Cannot resize disk {there['name']} while it is attached to running VM {held}."
            raise refused(409, "OperationNotAllowed", text)
        if held and sku != there["sku"]["name"]:
            raise refused(409, "OperationNotAllowed", f"Cannot change the type of disk {there['name']} while it is attached to {held}.")
        there["properties"]["provisioningState"] = "Updating"

        def finish():
            there["properties"] |= properties
            there["sku"] = {"name": sku}
            self.settle(there)

        return copy.deepcopy(there), self.begin(path, "change", finish)

    def delete(self, path):
        there = self.store.all[path.lower()]
        if held := there.get("managedBy"):
            raise refused(409, "OperationNotAllowed", f"Disk {there['name']} is attached to VM {held}.")
        there["properties"]["provisioningState"] = "Deleting"
        return self.begin(path, "delete", lambda: self.store.all.pop(path.lower(), None))

    def holders(self, disk):
        return disk.get("managedByExtended") or [one for one in [disk.get("managedBy")] if one]

    def hold(self, disk, machines):
        for field in ("managedBy", "managedByExtended"):
            disk.pop(field, None)
        if machines:
            disk["managedBy"] = machines[0]
        if len(machines) > 1:
            disk["managedByExtended"] = machines
        disk["properties"]["diskState"] = "Attached" if machines else "Unattached"

    def data_disk(self, machine, item):
        """Checks an item of a machine's list that is to stay or to come."""
        if item.get("createOption") != "Attach" or item.get("lun") not in LUNS or item.get("caching", "None") not in CACHES:
            raise wrong(f"The data disk {item} has no usable createOption, lun or caching.")
        disk = self.store.all.get(item["managedDisk"]["id"].lower())
        if disk is None:
            raise missing(item["managedDisk"]["id"])
        others = [one for one in self.holders(disk) if one.lower() != machine["id"].lower()]
        if len(others) >= disk["properties"].get("maxShares", 1):
            text = f"Disk '{disk['name']}' cannot be attached as the disk is already owned by VM '{others[0]}'."
            raise refused(409, "ConflictingUserInput", text)
        if disk.get("zones") and disk["zones"] != machine.get("zones"):
            raise refused(400, "BadRequest", f"Disk {disk['id']} cannot be attached to the VM because it is not in the same zone as the VM.")
        uncached = disk["sku"]["name"] in OWN_SPEED or disk["properties"].get("maxShares", 1) > 1
        if uncached and item.get("caching", "None") != "None":
            raise wrong(f"Disk {disk['id']} does not support caching.")
        return disk

    def put_machine(self, path, kind, body):
        """Begins a change of a machine's data disks; everything that is not said stays."""
        machine = self.store.get(path)
        profile = body.get("properties", {}).get("storageProfile", {})
        if set(body) - {"location", "properties"} or set(body["properties"]) != {"storageProfile"} or set(profile) != {"dataDisks"}:
            raise refused(405, "MethodNotAllowed", f"A change of more than data disks is not for Cloudwit: {body}")
        items = copy.deepcopy(profile["dataDisks"])
        luns = [item.get("lun") for item in items]
        if len(set(luns)) < len(luns):
            raise wrong(f"A disk at LUN {max(luns, key=luns.count)} already exists.")
        size = machine["properties"].get("hardwareProfile", {}).get("vmSize") or machine["sku"]["name"]
        most = self.most if self.most is not None else SIZES[size]
        if len(items) > most:
            raise refused(409, "OperationNotAllowed", FULL.format(most))
        staying = [item for item in items if not item.get("toBeDetached")]
        held = [self.data_disk(machine, item) for item in staying]
        machine["properties"]["storageProfile"]["dataDisks"] = items
        machine["properties"]["provisioningState"] = "Updating"
        self.store.renew(machine)

        def finish():
            held = [self.data_disk(machine, item) for item in staying]
            machine["properties"]["storageProfile"]["dataDisks"] = staying
            for disk in self.all():
                machines = [one for one in self.holders(disk) if one.lower() != path.lower()]
                here = any(one is disk for one in held)
                if here or len(machines) < len(self.holders(disk)):
                    self.hold(disk, machines + [machine["id"]] if here else machines)
            for item in staying:
                item["managedDisk"].setdefault("storageAccountType", "StandardSSD_LRS")
            self.settle(machine)
            self.store.renew(machine)

        assure(kind, {key: value for key, value in machine.items() if key != "etag"})
        return machine, self.begin(path, "attach" if held else "detach", finish)

    def all(self):
        return [one for path, one in self.store.all.items() if path.split("/")[-2] == "disks"]

    def let_go(self, path):
        """The disks of a machine that is deleted."""
        for disk in self.all():
            machines = self.holders(disk)
            if any(one.lower() == path.lower() for one in machines):
                self.hold(disk, [one for one in machines if one.lower() != path.lower()])
