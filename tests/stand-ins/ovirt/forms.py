"""One model in both forms: what is an object with a list in JSON is an element with elements in XML, and ids and links are attributes there."""

import json
from xml.etree import ElementTree

ATTRIBUTES = ("id", "href", "rel")


def element(name, value):
    found = ElementTree.Element(name)
    if isinstance(value, str):
        found.text = value
        return found
    for key, inner in value.items():
        if key in ATTRIBUTES:
            found.set(key, inner)
            continue
        for one in inner if isinstance(inner, list) else [inner]:
            found.append(element(key, one))
    return found


def written(accept, name, value):
    """The body and its content type."""
    if "json" in accept:
        # The outermost name is not written, and an empty list is not there at all.
        return json.dumps({key: inner for key, inner in value.items() if inner != []}), "application/json"
    return ElementTree.tostring(element(name, value), encoding="unicode", xml_declaration=True), "application/xml"
