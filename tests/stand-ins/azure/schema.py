"""What a body may be, by the models of Microsoft's own clients: names, types, words of enumerations."""

import enum
import functools
import types
import typing

import azure.mgmt.compute.models as compute
import azure.mgmt.network.models as network

from azure.errors import refused

MODELS = {
    "routetables": network.RouteTable,
    "loadbalancers": network.LoadBalancer,
    "networksecuritygroups": network.NetworkSecurityGroup,
    "publicipprefixes": network.PublicIPPrefix,
    "virtualnetworks": network.VirtualNetwork,
    "virtualnetworks/subnets": network.Subnet,
    "privatelinkservices": network.PrivateLinkService,
    "privatelinkservices/privateendpointconnections": network.PrivateEndpointConnection,
    "networkinterfaces": network.NetworkInterface,
    "publicipaddresses": network.PublicIPAddress,
    "virtualmachines": compute.VirtualMachine,
    "virtualmachinescalesets": compute.VirtualMachineScaleSet,
    "virtualmachinescalesets/virtualmachines": compute.VirtualMachineScaleSetVM,
    "disks": compute.Disk,
    "disks/update": compute.DiskUpdate,
    "snapshots": compute.Snapshot,
    "vmsizes": compute.VirtualMachineSize,
}


@functools.cache
def fields(model):
    """Names as they are sent, and their types."""
    import sys

    model({})  # fills in names
    hints = {}
    for base in reversed(model.__mro__):
        module = sys.modules.get(base.__module__)
        package = sys.modules.get(base.__module__.rsplit(".", 1)[0])
        scope = {**vars(module), "_models": package} if module else {}
        for name, hint in base.__dict__.get("__annotations__", {}).items():
            if name in model._attr_to_rest_field:
                hints[name] = hint if not isinstance(hint, str) else eval(hint, scope)
            if name in hints and isinstance(hints[name], typing._GenericAlias | types.GenericAlias):
                hints[name] = resolved(hints[name], scope)
    return {model._attr_to_rest_field[name]._rest_name: hint for name, hint in hints.items()}


def resolved(hint, scope):
    """With forward references in it replaced."""
    if isinstance(hint, typing.ForwardRef):
        return eval(hint.__forward_arg__, scope)
    if isinstance(hint, str):
        return eval(hint, scope)
    arguments = typing.get_args(hint)
    if not arguments:
        return hint
    origin = typing.get_origin(hint)
    arguments = tuple(resolved(argument, scope) if not isinstance(argument, type(None)) else argument for argument in arguments)
    return typing.Union[arguments] if origin in (typing.Union, types.UnionType) else origin[arguments]


def mistake(hint, value, at):
    """What is wrong with a value; None if nothing is."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        words = [one for one in arguments if isinstance(one, type) and issubclass(one, enum.Enum)]
        if words and isinstance(value, str):
            known = [word.value for word in words[0]]
            if value.lower() not in [word.lower() for word in known]:
                return f"'{value}' at {at} is none of {known}"
            return None
        found = [mistake(one, value, at) for one in arguments if not (one is type(None) and value is not None)]
        return None if None in found else found[0]
    if origin is list:
        if not isinstance(value, list):
            return f"{at} is no list"
        return next(filter(None, (mistake(arguments[0], item, f"{at}[{number}]") for number, item in enumerate(value))), None)
    if origin is dict:
        if not isinstance(value, dict):
            return f"{at} is no object"
        return next(filter(None, (mistake(arguments[1], item, f"{at}.{key}") for key, item in value.items())), None)
    if isinstance(hint, type) and hasattr(hint, "_calculated"):  # a model
        if not isinstance(value, dict):
            return f"{at} is no object"
        known = fields(hint)
        for key, item in value.items():
            if key not in known:
                return f"Could not find member '{key}' on object of type '{hint.__name__}' at {at}"
            if item is not None and (found := mistake(known[key], item, f"{at}.{key}")):
                return found
        return None
    if hint is type(None):
        return None if value is None else f"{at} is not null"
    simple = {bool: bool, int: int, float: (int, float), str: str}.get(hint)
    if simple and (not isinstance(value, simple) or (hint is int and isinstance(value, bool))):
        return f"{at} is no {hint.__name__}"
    return None


def check(kind, body):
    """A body that is sent to the cloud."""
    found = mistake(MODELS[kind], body, kind)
    if found:
        raise refused(400, "InvalidRequestFormat", f"Cannot parse the request. {found}")


def assure(kind, resource):
    """A resource that the stand-in tells: another one would be a mistake of its own."""
    found = mistake(MODELS[kind], resource, kind)
    assert found is None, found
    return resource
