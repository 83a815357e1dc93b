"""Refusals in Baidu's words."""

import uuid

from frame import Refused


def refused(status, code, message, headers=None):
    return Refused(status, {"requestId": str(uuid.uuid4()), "code": code, "message": message}, headers)


def wrong(message):
    return refused(400, "InappropriateJSON", message)


def missing(what, id):
    return refused(404, "NoSuchObject", f"The specified object {what} {id} is not found or resource do not exist.")


def unfinished():
    return refused(409, "LastOperationNotFinished", "Last operation has not finished.")


def unfit(message):
    return refused(409, "InvalidInstanceStatus", message)


def quota(what):
    return refused(403, f"{what}QuotaExceeded", f"The quota of {what} is exceeded.")


def fields(body, needed, others=""):
    """The body of a request. Baidu reads past what it does not know; here that is refused."""
    body = body if isinstance(body, dict) else {}
    needed, known = needed.split(), {*needed.split(), *others.split()}
    if lacking := [name for name in needed if body.get(name) in (None, "")]:
        raise wrong(f"{', '.join(lacking)} is missing")
    if odd := set(body) - known:
        raise wrong(f"there is no {', '.join(sorted(odd))}")
    return body
