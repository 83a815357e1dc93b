"""How the controller refuses something."""

from frame import Refused


def error(code, message):
    """As it stands in answers and in the steps of tasks."""
    return {"code": code, "message": message, "data": {}}


def refused(status, code, message):
    return Refused(status, error(code, message))
