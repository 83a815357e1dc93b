"""Refusals in the words of NSX (`ApiError` of its models)."""

from frame import Refused

NAMES = {
    400: "BAD_REQUEST", 401: "UNAUTHORIZED", 403: "FORBIDDEN", 404: "NOT_FOUND", 409: "CONFLICT", 412: "PRECONDITION_FAILED", 429: "TOO_MANY_REQUESTS",
    503: "SERVICE_UNAVAILABLE",
}


def refused(status, code, text, module="policy"):
    return Refused(status, {"httpStatus": NAMES[status], "error_code": code, "module_name": module, "error_message": text})


def missing(path):
    return refused(404, 500090, f"The requested object : {path} could not be found. Object identifiers are case sensitive.")


def stale(name):
    return refused(412, 604, f"The object {name} was modified by somebody else. Please retry.")


def bad(text, code=500012):
    return refused(400, code, text)
