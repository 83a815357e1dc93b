"""Refusals in the Resource Manager's words."""

from frame import Refused


def refused(status, code, message, headers=None):
    return Refused(status, {"error": {"code": code, "message": message, "details": []}}, headers)


def missing(path):
    """The words for a resource that does not exist; whose group or parent is missing is told too."""
    parts = path.strip("/").split("/")
    kind, name = "/".join(parts[5:-1:2]), "/".join(parts[6::2])
    text = f"The Resource '{kind}/{name}' under resource group '{parts[3]}' was not found."
    return refused(404, "ResourceNotFound", text)
