"""Resources with their states, and jobs: what is changed is done later."""

import copy
import uuid
from datetime import datetime, timezone

from cloudstack.errors import ApiError, no_such
from frame import Operations

KINDS = ["machines", "networks", "addresses", "rules", "firewall", "acls", "openings", "projects"]


def now():
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S+0000")


class Store:
    def __init__(self):
        self.kinds = {kind: {} for kind in KINDS}
        self.removed = {kind: set() for kind in KINDS}
        """Ids that were there once: CloudStack keeps the rows."""
        self.operations = Operations(0)
        self.failures = []
        """How the next jobs of a command end."""

    def add(self, kind, resource):
        resource = {"id": str(uuid.uuid4()), **copy.deepcopy(resource)}
        self.kinds[kind][resource["id"]] = resource
        return resource

    def remove(self, kind, id):
        self.kinds[kind].pop(id, None)
        self.removed[kind].add(id)

    def all(self, kind):
        self.operations.settle()
        return list(self.kinds[kind].values())

    def get(self, kind, id, command, parameter):
        """For a command that changes something: it has to be there."""
        self.operations.settle()
        found = self.kinds[kind].get(id)
        if found is None:
            raise no_such(command, parameter, id)
        return found

    def known(self, kind, id, command, parameter):
        """For a list: what was there once may be asked for, and nothing is found."""
        self.operations.settle()
        if id not in self.kinds[kind] and id not in self.removed[kind]:
            raise no_such(command, parameter, id)

    def job(self, command, finish, result, undo=lambda: None, **more):
        """Begins a job: `finish()` makes the change when it is due, `undo()` takes back what was done at once when the job fails."""
        failure = next((failure for failure in self.failures if failure["command"] == command and failure["times"]), None)
        if failure:
            failure["times"] -= 1

        def run():
            if failure:
                undo()
                raise ApiError(failure["code"], failure["text"])
            finish()

        job = str(uuid.uuid4())
        self.operations.begin(run, job=job, cmd=f"org.apache.cloudstack.api.command.user.{command[0].upper()}{command[1:]}Cmd", result=result)
        return {"jobid": job, **more}

    def looked_at(self, id):
        """How a job stands."""
        self.operations.settle()
        job = next((job for job in self.operations.all.values() if job.details["job"] == id), None)
        if job is None:
            raise no_such("queryAsyncJobResult", "jobid", id)
        value = {"jobid": id, "cmd": job.details["cmd"], "created": now(), "jobprocstatus": 0, "jobresultcode": 0, "jobstatus": 0}
        if job.error is not None:
            if not isinstance(job.error, ApiError):
                raise job.error
            value |= {"jobstatus": 2, "jobresultcode": job.error.code, "jobresulttype": "object"}
            value["jobresult"] = {"errorcode": job.error.code, "errortext": job.error.text}
        elif job.done:
            value |= {"jobstatus": 1, "jobresulttype": "object", "jobresult": job.details["result"]()}
        return value
