"""Google's discovery document: which calls there are, what they take and give."""

import json
import re
from pathlib import Path

import googleapiclient
from gce.errors import invalid, refused

DOCUMENTS = Path(googleapiclient.__file__).parent / "discovery_cache/documents"


class Schema:
    def __init__(self, name="compute.v1"):
        self.document = json.loads((DOCUMENTS / f"{name}.json").read_text())
        self.schemas = self.document["schemas"]
        self.methods = {}
        self.read(self.document["resources"])

    def read(self, resources):
        for resource in resources.values():
            self.read(resource.get("resources", {}))
            for method in resource.get("methods", {}).values():
                path = self.document["servicePath"] + method["path"]
                # A value with a plus takes several parts of the path: its own pattern says which.
                value = lambda found: f"({method['parameters'][found[2]]['pattern'].strip('^$')})" if found[1] else "([^/]+)"
                pattern = re.compile(re.sub(r"\{(\+?)(\w+)\}", value, path))
                names = re.findall(r"\{\+?(\w+)\}", path)
                self.methods.setdefault(method["httpMethod"], []).append((pattern, names, method))

    def method(self, request):
        """The method of a request and the values in its path. What Google does not document is refused."""
        path = request.path.removeprefix("/")
        for pattern, names, method in self.methods.get(request.method, []):
            found = pattern.fullmatch(path)
            if found:
                values = dict(zip(names, found.groups()))
                self.check_parameters(method, values | request.query)
                if "request" in method:
                    self.check_body(method, request)
                elif request.body:
                    raise invalid(f"{method['id']} takes no body")
                return method, values
        raise refused(404, "notFound", f"{request.method} {request.path} is no method of Compute Engine")

    def check_parameters(self, method, values):
        known = self.document["parameters"] | method.get("parameters", {})
        for name, value in values.items():
            if name not in known:
                raise invalid(f"{method['id']} has no parameter {name}")
            parameter = known[name]
            if "pattern" in parameter and not re.fullmatch(parameter["pattern"], value):
                raise invalid(f"Invalid value '{value}' for {name}: it does not match '{parameter['pattern']}'")
            if parameter["type"] == "integer":
                most = int(parameter.get("maximum", 2**32))
                if not value.isdigit() or int(value) > most:
                    raise invalid(f"Invalid value '{value}' for {name}")
            if parameter["type"] == "boolean" and value not in ("true", "false"):
                raise invalid(f"Invalid value '{value}' for {name}")
        for name, parameter in method.get("parameters", {}).items():
            if parameter.get("required") and name not in values:
                raise invalid(f"Required parameter: {name}")

    def check_body(self, method, request):
        body = request.json()
        if not isinstance(body, dict):
            raise invalid(f"{method['id']} takes an object")
        problems = self.problems(body, method["request"], "resource", method["id"])
        if problems:
            raise invalid("; ".join(problems))

    def check_answer(self, method, answer):
        """Raises a mistake of the stand-in: what it answers is not what Compute Engine answers."""
        problems = self.problems(answer, method["response"], "answer", "")
        if problems:
            raise AssertionError(f"{method['id']}: {problems}")

    def problems(self, value, schema, at, method):
        if "$ref" in schema:
            schema = self.schemas[schema["$ref"]]
        kind = schema.get("type")
        match kind:
            case "object":
                return self.problems_of_object(value, schema, at, method)
            case "array":
                if not isinstance(value, list):
                    return [f"{at} is no list"]
                each = (self.problems(item, schema["items"], f"{at}[{n}]", method) for n, item in enumerate(value))
                return [problem for problems in each for problem in problems]
            case "boolean":
                return [] if isinstance(value, bool) else [f"{at} is no boolean"]
            case "integer" | "number":
                number = isinstance(value, (int, float)) and not isinstance(value, bool)
                return [] if number else [f"{at} is no number"]
            case "string":
                return problems_of_text(value, schema, at)
        return []

    def problems_of_object(self, value, schema, at, method):
        if not isinstance(value, dict):
            return [f"{at} is no object"]
        problems = []
        properties, others = schema.get("properties", {}), schema.get("additionalProperties")
        for name, item in value.items():
            inner = properties.get(name, others)
            if inner is None:
                problems.append(f"Invalid JSON payload: unknown name \"{name}\" at {at}")
            else:
                problems += self.problems(item, inner, f"{at}.{name}", method)
        for name, inner in properties.items():
            if method in inner.get("annotations", {}).get("required", []) and name not in value:
                problems.append(f"Required field '{at}.{name}' not specified")
        return problems


def problems_of_text(value, schema, at):
    if not isinstance(value, str):
        return [f"{at} is no text"]
    if "enum" in schema and value not in schema["enum"]:
        return [f"Invalid value for field '{at}': '{value}'"]
    if "pattern" in schema and not re.fullmatch(schema["pattern"], value):
        return [f"Invalid value for field '{at}': '{value}' does not match '{schema['pattern']}'"]
    if schema.get("format") in ("int64", "uint64") and not re.fullmatch(r"-?\d+", value):
        return [f"Invalid value for field '{at}': '{value}' is no number"]
    return []
