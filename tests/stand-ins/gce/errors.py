"""Refusals in Google's form."""

from frame import Refused


def refused(status, reason, message, headers=None):
    error = {"code": status, "message": message, "errors": [{"message": message, "domain": "global", "reason": reason}]}
    return Refused(status, {"error": error}, headers)


def invalid(message):
    return refused(400, "invalid", message)


def not_found(path):
    return refused(404, "notFound", f"The resource '{path}' was not found")


def in_use(path, by):
    text = f"The {path.split('/')[-2]} resource '{path}' is already being used by '{by}'"
    return refused(400, "resourceInUseByAnotherResource", text)


class OperationFailed(Exception):
    """How an operation ends that fails."""

    def __init__(self, status, code, message):
        super().__init__(message)
        self.status, self.code, self.message = status, code, message
