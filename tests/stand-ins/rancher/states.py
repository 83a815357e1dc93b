"""The state machines of Cattle's processes: from which states one begins, through which state it goes, and where it ends."""

# A transition that depends on where it begins is a dictionary.
UPDATING = {
    "inactive": ("updating-inactive", "inactive"), "active": ("updating-active", "active"), "updating-active": ("updating-active", "active"),
    "activating": ("activating", "active"),
}
OF_SERVICES = {
    "create": ({"requested"}, "registering", "inactive"),
    "activate": ({"inactive", "restarting"}, "activating", "active"),
    "update": UPDATING,
    "deactivate": ({"restarting", "active", "activating", "updating-inactive", "updating-active"}, "deactivating", "inactive"),
    "remove": ({"inactive", "registering", "active", "activating", "updating-inactive", "updating-active", "deactivating", "requested"}, "removing", "removed"),
}
PROCESSES = {
    "loadBalancerService": OF_SERVICES,
    "externalService": OF_SERVICES,
    "stack": {
        "create": ({"requested"}, "activating", "active"),
        "update": ({"active"}, "updating-active", "active"),
        "remove": ({"requested", "active", "activating", "updating-active", "error"}, "removing", "removed"),
    },
    "host": {
        "activate": ({"inactive", "registering", "provisioned"}, "activating", "active"),
        "deactivate": ({"active", "activating", "updating-active"}, "deactivating", "inactive"),
        "remove": ({"inactive", "activating", "deactivating", "registering", "error"}, "removing", "removed"),
    },
}
SETTLED = {"active", "inactive", "removed", "purged", "error"}


def step(type, process, state):
    """Where a process goes from this state, and where it ends; None where it cannot begin."""
    known = PROCESSES.get(type, {}).get(process)
    if known is None:
        return None
    if isinstance(known, dict):
        return known.get(state)
    start, through, end = known
    return (through, end) if state in start else None


def actions(type, state, all):
    """The actions of a resource in this state: those that are no process are there in every state."""
    return [one for one in all if one not in PROCESSES.get(type, {}) or step(type, one, state)]
