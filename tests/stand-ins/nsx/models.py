"""What is sent and answered, checked against the models of VMware's own client: names and types of all fields, and the values of those that are enumerations.

The client fills in no discriminators and checks no enumerations, so that is done here.
"""

import vcf.nsx.model_client as client
from vmware.vapi.bindings import type as kinds

LARGEST_LIST = 10_000


def values(model, prefix):
    return {getattr(model, name) for name in dir(model) if name.startswith(prefix)}


ENUMERATIONS = {
    ("LBService", "size"): values(client.LBService, "SIZE_"),
    ("LBPool", "algorithm"): values(client.LBPool, "ALGORITHM_"),
    ("LBPoolMember", "admin_state"): values(client.LBPoolMember, "ADMIN_STATE_"),
    ("LBSnatTranslation", "type"): values(client.LBSnatTranslation, "TYPE_"),
    ("LBMonitorProfile", "resource_type"): values(client.LBMonitorProfile, "RESOURCE_TYPE_"),
    ("LBAppProfile", "resource_type"): values(client.LBAppProfile, "RESOURCE_TYPE_"),
    ("GenericPolicyRealizedResource", "state"): values(client.PolicyRealizedResource, "STATE_"),
}
TREES = {("LBPool", "snat_translation"): ("LBSnatTranslation", "type")}
"""Fields whose model is named by a field inside of them."""


def check(name, value, at=""):
    """Raises ValueError with the place of what is no `name`."""
    struct = getattr(client, name).get_binding_type()
    if not isinstance(value, dict):
        raise ValueError(f"{at or name} is no object")
    known = set(struct.get_field_names())
    for field, inner in value.items():
        place = f"{at}/{field}"
        if field not in known:
            raise ValueError(f"{place}: {name} has no such field")
        tree = TREES.get((name, field))
        if tree:
            check_tree(*tree, inner, place)
        else:
            check_type(struct.get_field(field), inner, place)
        allowed = ENUMERATIONS.get((name, field))
        if allowed and inner is not None and inner not in allowed:
            raise ValueError(f"{place}: {inner!r} is none of {sorted(allowed)}")


def check_tree(base, discriminator, value, at):
    """The model that the value itself names, which is one of the base's."""
    name = value.get(discriminator) if isinstance(value, dict) else None
    if name not in ENUMERATIONS[base, discriminator]:
        raise ValueError(f"{at}/{discriminator}: {name!r} is none of {base}")
    check(name, value, at)


def check_type(kind, value, at):
    match kind:
        case kinds.OptionalType():
            if value is not None:
                check_type(kind.element_type, value, at)
        case kinds.ListType():
            if not isinstance(value, list) or len(value) > LARGEST_LIST:
                raise ValueError(f"{at} is no list")
            for number, inner in enumerate(value):
                check_type(kind.element_type, inner, f"{at}/{number}")
        case kinds.ReferenceType():
            check(kind.resolved_type.binding_class.__name__, value, at)
        case kinds.StructType():
            check(kind.binding_class.__name__, value, at)
        case kinds.BooleanType() if not isinstance(value, bool):
            raise ValueError(f"{at} is no boolean")
        case kinds.IntegerType() if not isinstance(value, int) or isinstance(value, bool):
            raise ValueError(f"{at} is no integer")
        case kinds.StringType() if not isinstance(value, str):
            raise ValueError(f"{at} is no text")
