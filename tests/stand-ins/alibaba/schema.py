"""Which parameters each action takes, and which fields its answer has: as the models of Alibaba Cloud's own SDK say."""

import importlib
import re
import sys
import types
from pathlib import Path

from alibaba.errors import wrong

MODELS = {
    "2014-05-26": "alibabacloud_ecs20140526.models", "2016-04-28": "alibabacloud_vpc20160428.models", "2014-05-15": "alibabacloud_slb20140515.models",
    "2022-04-30": "alibabacloud_nlb20220430.models",
}
OF_ALL = {
    "Action", "Version", "Format", "AccessKeyId", "Signature", "SignatureMethod", "SignatureVersion", "SignatureNonce", "SignatureType", "Timestamp",
    "SecurityToken",
}


def lazily(name):
    """The module with an SDK's models, each of which is read when it is asked for: all of ECS are twenty megabytes."""
    package = importlib.import_module(name.rpartition(".")[0])
    folder = Path(package.__path__[0]) / "models"
    found = re.findall(r"^from (\._\w+) import (\w+)$", (folder / "__init__.py").read_text(), re.M)
    files = {model: file for file, model in found}
    module = types.ModuleType(name)
    module.__path__ = [str(folder)]

    def find(model):
        if model not in files:
            raise AttributeError(model)
        return getattr(importlib.import_module(f"{name}{files[model]}"), model)

    module.__getattr__ = find
    sys.modules[name] = package.models = module
    return module


def tree(parameters):
    """`Tag.1.Key=a` as {"Tag": [{"Key": "a"}]}."""
    root = {}
    for name, value in parameters.items():
        at, parts = root, name.split(".")
        for part in parts[:-1]:
            at = at.setdefault(part, {})
            if not isinstance(at, dict):
                raise wrong(f"the parameter {name} is a value and an object")
        at[parts[-1]] = value
    return lists(root)


def lists(node):
    if not isinstance(node, dict):
        return node
    if node and all(key.isdigit() for key in node):
        numbers = sorted(int(key) for key in node)
        if numbers != list(range(1, len(numbers) + 1)):
            raise wrong(f"lists are numbered from 1: {numbers}")
        return [lists(node[str(number)]) for number in numbers]
    return {key: lists(value) for key, value in node.items()}


def unknown(node, known, path=""):
    """Names in `node` that `known` does not have."""
    if isinstance(node, list):
        return [name for at, one in enumerate(node) for name in unknown(one, (known or [])[at] if at < len(known or []) else None, f"{path}.{at + 1}")]
    if not isinstance(node, dict) or not node:
        return []
    if not isinstance(known, dict):
        return [path]
    found = []
    for key, value in node.items():
        name = f"{path}.{key}" if path else key
        found += [name] if key not in known else unknown(value, known[key], name)
    return found


class Schema:
    def __init__(self):
        self.modules = {}

    def model(self, version, name):
        if version not in self.modules:
            self.modules[version] = lazily(MODELS[version])
        return getattr(self.modules[version], name, None)

    def knows(self, version, action):
        return version in MODELS and self.model(version, f"{action}Request") is not None

    def read(self, version, action, parameters):
        """The action's own parameters, as its model has them."""
        own = tree({name: value for name, value in parameters.items() if name not in OF_ALL})
        # What the SDK leaves out of its own model it does not know.
        again = self.model(version, f"{action}Request")().from_map(own).to_map()
        odd = unknown(own, again)
        if odd:
            raise wrong(f"{action} has no parameter {', '.join(odd)}")
        return own

    def check(self, version, action, answer):
        """A mistake of the stand-in, where the SDK would not find a field."""
        again = self.model(version, f"{action}ResponseBody")().from_map(answer).to_map()
        odd = unknown(answer, again)
        assert not odd, f"the answer to {action} has no field {odd}"
