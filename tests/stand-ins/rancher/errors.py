"""Refusals as Cattle writes them."""

import uuid

from frame import Refused

NAMES = {401: "Unauthorized", 404: "NotFound", 405: "MethodNotAllowed", 409: "Conflict"}


def refused(status, code=None, message=None, field=None):
    code = code or NAMES[status]
    value = {"id": str(uuid.uuid4()), "type": "error", "links": {}, "actions": {}, "status": status, "code": code, "message": message or code, "detail": None}
    return Refused(status, value | ({"fieldName": field} if field else {}), {"Content-Type": "application/json; charset=utf-8"})


def invalid(code, field=None, message=None):
    return refused(422, code, message, field)
