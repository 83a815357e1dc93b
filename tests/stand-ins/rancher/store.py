"""Resources with their states; what is changed is done later."""

import copy
import itertools
import uuid
from datetime import datetime, timezone

from frame import Operations
from rancher.errors import refused
from rancher.states import SETTLED, step

PREFIXES = {"host": "1h", "stack": "1st", "loadBalancerService": "1s", "externalService": "1s", "ipAddress": "1ia", "setting": "1as"}


def now():
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class Store:
    def __init__(self):
        self.all, self.operations, self.numbers = {}, Operations(0), itertools.count(1)

    def add(self, type, fields, state="requested"):
        id = f"{PREFIXES[type]}{next(self.numbers)}"
        made = {
            "id": id, "type": type, "kind": type, "uuid": str(uuid.uuid4()), "created": now(), "removed": None, "state": state, "accountId": "1a5",
            "transitioningMessage": None, "failing": None, **copy.deepcopy(fields),
        }
        self.all[id] = made
        return made

    def of(self, *types):
        """All of these types that are not removed."""
        self.operations.settle()
        return [one for one in self.all.values() if one["type"] in types and one["removed"] is None]

    def get(self, type, id):
        """What is removed is there by its id for a while."""
        self.operations.settle()
        found = self.all.get(id)
        if found is None or (found["type"] != type and not (type == "service" and id.startswith("1s"))):
            raise refused(404)
        return found

    def process(self, one, name, finish=lambda: None):
        """Begins a process; refuses it in a state from which there is none."""
        self.operations.settle()
        found = step(one["type"], name, one["state"])
        if found is None:
            raise refused(405 if name == "remove" else 409)
        one["state"], end = found[0], found[1]
        one["run"] = run = uuid.uuid4()

        def ended():
            # Another process took over.
            if one["run"] != run:
                return
            finish()
            if one["failing"] is None:
                one["state"] = end
                if end == "removed":
                    one["removed"] = now()

        self.operations.begin(ended, id=one["id"])
        return one

    def transitioning(self, one):
        if one["failing"]:
            return "error"
        return "no" if one["state"] in SETTLED else "yes"
