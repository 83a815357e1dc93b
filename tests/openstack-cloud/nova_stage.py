"""Nova and what a test does to it: servers, as the scheduler and a hypervisor would have made them, through Nova's own objects."""

import os
import sys
import uuid
from pathlib import Path

import nova_compute as compute
import nova_many as many
import turns
from nova_objects import STATES, admin, cell, instance_of, register, save_network
from stage import Stage
from tokens import Tokens


def application(folder: Path, _urls: dict):
    # The pipeline has to be the first.
    os.environ["OS_NOVA_CONFIG_DIR"] = str(folder)
    os.environ["OS_NOVA_CONFIG_FILES"] = f"{sys.prefix}/etc/nova/api-paste.ini;nova.conf"
    tokens = Tokens()
    sys.argv = ["nova"]
    from nova.wsgi.osapi_compute import application as nova

    turns.begin()
    compute.start()
    verbs = {
        "forget-tokens": tokens.forget,
        "flavor": flavor,
        "servers": servers,
        "many-servers": many.servers,
        "change": change,
        "delete": delete,
        "meet-cinder": compute.meet_cinder,
    }
    stage = Stage(nova, verbs)
    stage.lock = turns.LOCK
    return stage


def flavor(asked):
    """A flavor `name`, unless there is one."""
    from nova import exception, objects

    try:
        made = objects.Flavor.get_by_name(admin(), asked["name"])
    except exception.FlavorNotFoundByName:
        made = objects.Flavor(
            admin(),
            name=asked["name"],
            flavorid=asked.get("id", str(uuid.uuid4())),
            memory_mb=asked.get("memory", 4096),
            vcpus=asked.get("cpus", 2),
            root_gb=20,
            ephemeral_gb=0,
            swap=0,
            rxtx_factor=1.0,
            is_public=True,
            extra_specs={},
        )
        made.create()
    return {"id": made.flavorid}


def servers(asked):
    """Servers of a `project` and `user` with a `flavor` (its name); each of `servers` has name, zone, status, metadata, nics, host."""
    from nova import context, objects

    made = []
    shape = objects.Flavor.get_by_name(admin(), asked["flavor"])
    place = cell()
    with context.target_cell(admin(), place) as there:
        for wanted in asked["servers"]:
            instance = instance_of(there, asked, wanted, shape)
            instance.create()
            save_network(instance, wanted.get("nics", []))
            register(instance.uuid, asked, place, shape)
            made.append(instance.uuid)
    return {"servers": made}


def change(asked):
    """Changes a `server`: status, name, metadata, access_ipv4, access_ipv6, nics, of which those given."""
    with _found(asked["server"]) as instance:
        if "status" in asked:
            instance.vm_state, instance.power_state = STATES[asked["status"]]
        if "name" in asked:
            instance.display_name = asked["name"]
        if "metadata" in asked:
            instance.metadata = asked["metadata"]
        for key, field in (("access_ipv4", "access_ip_v4"), ("access_ipv6", "access_ip_v6")):
            if key in asked:
                setattr(instance, field, asked[key])
        instance.save()
        if "nics" in asked:
            save_network(instance, asked["nics"])
    return {}


def delete(asked):
    """Deletes a `server`, as a hypervisor confirms it."""
    from nova import objects

    with _found(asked["server"]) as instance:
        instance.destroy()
    mapping = objects.InstanceMapping.get_by_instance_uuid(admin(), asked["server"])
    mapping.queued_for_delete = True
    mapping.save()
    return {}


class _found:
    """The instance of this id, in its cell."""

    def __init__(self, server):
        self.server = server

    def __enter__(self):
        from nova import context, objects

        self.target = context.target_cell(admin(), cell())
        there = self.target.__enter__()
        return objects.Instance.get_by_uuid(there, self.server, expected_attrs=["metadata", "system_metadata"])

    def __exit__(self, *error):
        return self.target.__exit__(*error)
