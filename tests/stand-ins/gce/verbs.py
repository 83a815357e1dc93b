"""What changes: insert, delete, patch, update, and the members of pools and groups."""

from gce.disks import Disks, insist_detached
from gce.errors import OperationFailed, invalid, not_found, refused
from gce.rules import complete, fingerprint

VERBS = {
    "insert": "insert",
    "delete": "delete",
    "patch": "patch",
    "update": "update",
    "addInstance": "add_to_pool",
    "removeInstance": "remove_from_pool",
    "addInstances": "add_to_group",
    "removeInstances": "remove_from_group",
    "setCommonInstanceMetadata": "set_metadata",
    "attachDisk": "attach_disk",
    "detachDisk": "detach_disk",
    "resize": "resize",
    "createSnapshot": "create_snapshot",
}
# Those whose arguments are in the query.
ASKING = {"detachDisk"}


class Verbs(Disks):
    def __init__(self, cloud):
        self.cloud, self.store = cloud, cloud.store

    def insert(self, method, collection, body):
        path = f"{collection}/{body.get('name', '')}"
        if path in self.store.resources or path in self.store.coming:
            raise refused(409, "alreadyExists", f"The resource '{path}' already exists")
        self.cloud.insist_on_quota(path)
        body = complete(self.cloud, path, body)
        self.store.coming.add(path)

        def finish():
            self.store.coming.discard(path)
            if path.split("/")[-2] == "disks" and path.split("/")[3] in self.cloud.full:
                zone = "/".join(path.split("/")[:4])
                raise OperationFailed(503, "ZONE_RESOURCE_POOL_EXHAUSTED", f"The zone '{zone}' does not have enough resources available to fulfill the request.")
            self.store.add(path, body)

        return self.cloud.begin("insert", path, finish)

    def delete(self, method, path, body):
        self.store.get(path)
        self.insist_unused(path)

        def finish():
            try:
                self.insist_unused(path)
            except Exception as error:
                text = str(error.answer.value["error"]["message"])
                raise OperationFailed(400, "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE", text) from error
            self.store.resources.pop(path, None)

        return self.cloud.begin("delete", path, finish)

    def insist_unused(self, path):
        self.store.insist_unused(path)
        if path.split("/")[-2] == "disks" and path in self.store.resources:
            insist_detached(self.store, path)

    def change(self, kind, path, body, whole):
        known = self.store.get(path)
        if "fingerprint" in known and body.get("fingerprint", known["fingerprint"] if not whole else None) != known["fingerprint"]:
            raise refused(412, "conditionNotMet", "Invalid fingerprint.")
        if "name" in body and body["name"] != known["name"]:
            raise invalid("Invalid value for field 'resource.name': it cannot be changed")
        kept = {name: known[name] for name in ("id", "selfLink", "name", "region") if name in known} if whole else known
        changed = complete(self.cloud, path, kept | body)

        def finish():
            if path not in self.store.resources:
                raise OperationFailed(404, "RESOURCE_NOT_FOUND", f"The resource '{path}' was not found")
            self.store.resources[path] = changed
            if "fingerprint" in changed:
                changed["fingerprint"] = fingerprint()

        return self.cloud.begin(kind, path, finish)

    def patch(self, method, path, body):
        return self.change("patch", path, body, False)

    def update(self, method, path, body):
        return self.change("update", path, body, True)

    def set_metadata(self, method, path, body):
        path = path.rsplit("/", 1)[0]
        known = self.store.get(path)["commonInstanceMetadata"]
        if body.get("fingerprint") != known["fingerprint"]:
            raise refused(412, "conditionNotMet", "Supplied fingerprint does not match current metadata fingerprint.")

        def finish():
            known["items"], known["fingerprint"] = body.get("items", []), fingerprint()

        return self.cloud.begin("setMetadata", path, finish)

    def members(self, path, links):
        """Paths of machines that exist; a pool takes machines of its region only."""
        project = path.split("/")[1]
        return [self.store.linked(link["instance"], project) for link in links]

    def add_to_pool(self, method, path, body):
        path = path.rsplit("/", 1)[0]
        pool = self.store.get(path)
        added = self.members(path, body.get("instances", []))
        if len(added) > 1_000:
            raise invalid("Invalid value for field 'instances': at most 1000 in one request")

        def finish():
            links = [link for link in map(self.store.link, added) if link not in pool.get("instances", [])]
            pool["instances"] = pool.get("instances", []) + links

        return self.cloud.begin("AddInstance", path, finish)

    def remove_from_pool(self, method, path, body):
        path = path.rsplit("/", 1)[0]
        pool = self.store.get(path)
        gone = {self.store.path(link["instance"]) for link in body.get("instances", [])}
        held = {self.store.path(link) for link in pool.get("instances", [])}
        if not gone <= held:
            raise invalid(f"Invalid value for field 'instances': {sorted(gone - held)[0]} is not in the target pool")

        def finish():
            pool["instances"] = [link for link in pool["instances"] if self.store.path(link) not in gone]

        return self.cloud.begin("RemoveInstance", path, finish)

    def add_to_group(self, method, path, body):
        path = path.rsplit("/", 1)[0]
        group = self.store.get(path)
        added = self.members(path, body.get("instances", []))
        zone = path.split("/")[3]
        held = group.setdefault("_members", [])
        for member in added:
            if member.split("/")[3] != zone:
                raise invalid(f"Invalid value for field 'instances': {member} is not in {zone}")
            if member in held:
                raise refused(400, "memberAlreadyExists", f"'{member}' is already a member of '{path}'")

        def finish():
            held.extend(member for member in added if member not in held)

        return self.cloud.begin("addInstances", path, finish)

    def remove_from_group(self, method, path, body):
        path = path.rsplit("/", 1)[0]
        held = self.store.get(path).setdefault("_members", [])
        gone = [self.store.path(link["instance"]) for link in body.get("instances", [])]
        for member in gone:
            if member not in held:
                raise refused(400, "memberNotFound", f"'{member}' is not a member of '{path}'")

        def finish():
            held[:] = [member for member in held if member not in gone]

        return self.cloud.begin("removeInstances", path, finish)

    def list_instances(self, path, request):
        path = path.rsplit("/", 1)[0]
        if path not in self.store.resources:
            raise not_found(path)
        held = [member for member in self.store.resources[path].get("_members", []) if member in self.store.resources]
        items = [{"instance": self.store.link(member), "status": "RUNNING"} for member in held]
        return {"kind": "compute#instanceGroupsListInstances", "id": path} | ({"items": items} if items else {})
