"""Resources: each with an ETag that each change replaces, and changes that take time."""

import copy
import uuid

from azure.errors import missing, refused
from frame import Operations


class Store:
    def __init__(self):
        self.all = {}
        """By path in small letters."""
        self.operations = Operations(0)

    def put(self, path, resource):
        """As it is, for tests and machines."""
        resource = {"id": path, "name": path.rsplit("/", 1)[1], **copy.deepcopy(resource)}
        self.all[path.lower()] = resource
        return resource

    def get(self, path):
        self.operations.settle()
        found = self.all.get(path.lower())
        if found is None:
            raise missing(path)
        return found

    def list(self, collection):
        """What is directly in a collection, in the order of names."""
        self.operations.settle()
        start = collection.lower() + "/"
        return [self.all[path] for path in sorted(self.all) if path.startswith(start) and "/" not in path[len(start) :]]

    def renew(self, resource):
        resource["etag"] = f'W/"{uuid.uuid4()}"'

    def conditions(self, path, headers):
        """`If-Match` and `If-None-Match`, and changes that are not done."""
        there = self.all.get(path.lower())
        wanted, unwanted = headers.get("if-match"), headers.get("if-none-match")
        if unwanted == "*" and there is not None:
            raise refused(412, "PreconditionFailed", f"Precondition failed: {path} exists.")
        if wanted not in (None, "*") and (there is None or there["etag"] != wanted):
            text = f"Etag provided in if-match header {wanted} does not match etag of resource {path}."
            raise refused(412, "PreconditionFailedEtagMismatch", text)
        if any(operation.details["path"] == path.lower() for operation in self.operations.running()):
            text = f"Another operation on this or dependent resource is in progress. {path}"
            raise refused(409, "AnotherOperationInProgress", text)

    def change(self, path, resource, kind):
        """Begins a change: the resource is there at once, and done later, which is a change of its own."""
        created = path.lower() not in self.all
        there = self.put(path, resource | {"type": kind})
        there.setdefault("properties", {})["provisioningState"] = "Updating"
        self.renew(there)

        def finish():
            there["properties"]["provisioningState"] = "Succeeded"
            self.renew(there)

        operation = self.operations.begin(finish, path=path.lower())
        return there, operation, created

    def remove(self, path):
        """Begins a deletion: the resource is there until it is done."""
        self.all[path.lower()]["properties"]["provisioningState"] = "Deleting"
        self.renew(self.all[path.lower()])
        return self.operations.begin(lambda: self.all.pop(path.lower(), None), path=path.lower())
