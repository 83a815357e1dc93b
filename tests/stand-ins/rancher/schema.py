"""The recorded schema documents: every request and every answer is checked against them.

Cattle reads past fields and filters that it does not know, or that may not be set; here that is refused.
"""

import json
import re
from pathlib import Path

from rancher.errors import invalid, refused

RESERVED = {"limit", "marker", "sort", "order", "include", "action"}
OF_EVERY = {"id", "type", "baseType", "links", "actions"}


class Schemas:
    def __init__(self):
        documents = json.loads((Path(__file__).parent / "schemas.json").read_text())["data"]
        self.types = {one["id"]: one for one in documents}
        self.plurals = {one["pluralName"].lower(): one["id"] for one in documents if one["collectionMethods"]}

    def documents(self, base):
        """As a client reads them."""
        for name, one in sorted(self.types.items()):
            links = {"self": f"{base}/schemas/{name.lower()}"}
            if "GET" in one["collectionMethods"]:
                links["collection"] = f"{base}/{one['pluralName'].lower()}"
            yield one | {"links": links, "actions": {}}

    def type_of(self, plural):
        if plural not in self.plurals:
            raise refused(404)
        return self.plurals[plural]

    def allowed(self, type, method, of):
        if method not in self.types[type][f"{of}Methods"]:
            raise refused(405)

    def conditions(self, type, query):
        """The filters of a list: field, modifier, value."""
        filters, found = self.types[type]["collectionFilters"], []
        for name, value in query.items():
            if name in RESERVED:
                continue
            field, _, modifier = name.partition("_")
            if modifier not in filters.get(field, {"modifiers": []})["modifiers"] and not (modifier == "" and field in filters):
                raise invalid("InvalidOption", name, f"the list of {type} has no filter {name}")
            found.append((field, modifier or "eq", value))
        for link in query.get("include", "").split(","):
            if link and link not in self.types[type]["includeableLinks"]:
                raise invalid("InvalidOption", link, f"{type} does not include {link}")
        return found

    def checked(self, type, body, verb):
        """A body for `create` or `update`, with defaults."""
        fields = self.types[type]["resourceFields"]
        if not isinstance(body, dict):
            raise invalid("InvalidFormat", type)
        for name, value in body.items():
            if name == "type":
                continue
            field = fields.get(name)
            # What is embedded is written anew as a whole.
            if field is None or not field.get("create" if verb == "embedded" else verb):
                raise invalid("InvalidOption", name, f"{name} of {type} may not be set by {verb}")
            if value is None and not field.get("nullable"):
                raise invalid("NotNullable", name)
            self.fits(field["type"], field, name, value)
        if verb != "update":
            for name, field in fields.items():
                if field.get("required") and field.get("create") and body.get(name) is None:
                    raise invalid("MissingRequired", name)
            return {name: field["default"] for name, field in fields.items() if "default" in field} | body
        return body

    def fits(self, type, field, name, value):
        if value is None or type == "json":
            return
        if found := re.fullmatch(r"(array|map)\[(.*)\]", type):
            wanted = list if found[1] == "array" else dict
            if not isinstance(value, wanted):
                raise invalid("InvalidFormat", name)
            for one in value if wanted is list else value.values():
                self.fits(found[2], {}, name, one)
        elif type in self.types:
            self.checked(type, value, "embedded")
        elif type in ("int", "boolean"):
            if not isinstance(value, bool if type == "boolean" else int) or (type == "int" and isinstance(value, bool)):
                raise invalid("InvalidFormat", name)
            if type == "int" and not field.get("min", value) <= value <= field.get("max", value):
                raise invalid("MaxLimitExceeded" if value > field.get("max", value) else "MinLimitExceeded", name)
        elif not isinstance(value, str):
            raise invalid("InvalidFormat", name)
        elif type == "enum" and value not in field.get("options", []):
            raise invalid("InvalidOption", name)
        elif chars := field.get("validChars"):
            if not re.fullmatch(f"[{chars}]*", value):
                raise invalid("InvalidCharacters", name)
            if not field.get("minLength", 0) <= len(value) <= field.get("maxLength", len(value)):
                raise invalid("MaxLengthExceeded" if value else "MinLengthExceeded", name)

    def is_shown(self, type, resource, included=()):
        """Fails where a resource has what its schema has not: a mistake of the stand-in."""
        fields, name = self.types[type]["resourceFields"], f"{type} {resource.get('id')}"
        for key, value in resource.items():
            if key in OF_EVERY or key in included:
                continue
            assert key in fields, f"{name}: {key} is no field"
            field = fields[key]
            assert value is not None or field.get("nullable") or field["type"] != "string", f"{name}: {key} is null"
            assert field["type"] != "enum" or value in field["options"], f"{name}: {key} is {value}"
        assert set(resource["actions"]) <= set(self.types[type]["resourceActions"]), f"{name}: {resource['actions']}"
        return resource
