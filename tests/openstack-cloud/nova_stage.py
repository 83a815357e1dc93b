"""Nova and what a test does to it: servers, as the scheduler and a hypervisor would have made them, through Nova's own objects."""

import os
import sys
import uuid
from pathlib import Path

from stage import Stage
from tokens import Tokens

# What the API shows as status is made of these two.
STATES = {
    "ACTIVE": ("active", 1),
    "BUILD": ("building", 0),
    "SHUTOFF": ("stopped", 4),
    "ERROR": ("error", 0),
    "SHELVED_OFFLOADED": ("shelved_offloaded", 4),
    "PAUSED": ("paused", 3),
    "SUSPENDED": ("suspended", 4),
}


def application(folder: Path, urls: dict):
    # The pipeline has to be the first.
    os.environ["OS_NOVA_CONFIG_DIR"] = str(folder)
    os.environ["OS_NOVA_CONFIG_FILES"] = f"{sys.prefix}/etc/nova/api-paste.ini;nova.conf"
    tokens = Tokens(urls)
    sys.argv = ["nova"]
    from nova.wsgi.osapi_compute import application as nova

    verbs = {"forget-tokens": tokens.forget, "flavor": flavor, "servers": servers, "change": change, "delete": delete}
    return Stage(nova, verbs, tokens.owner)


def flavor(asked):
    """A flavor `name`, unless there is one."""
    from nova import exception, objects

    try:
        made = objects.Flavor.get_by_name(_context(), asked["name"])
    except exception.FlavorNotFoundByName:
        made = objects.Flavor(
            _context(),
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
    """Servers of a `project` and `user` with a `flavor` (its name); each of `servers` has name, zone, status, metadata, nics."""
    from nova import context, objects

    made = []
    shape = objects.Flavor.get_by_name(_context(), asked["flavor"])
    cell = _cell()
    with context.target_cell(_context(), cell) as there:
        for wanted in asked["servers"]:
            instance = _instance(objects, there, asked, wanted, shape)
            instance.create()
            _save_network(instance, wanted.get("nics", []))
            mapping = objects.InstanceMapping(
                _context(),
                instance_uuid=instance.uuid,
                cell_mapping=cell,
                project_id=asked["project"],
                user_id=asked["user"],
                queued_for_delete=False,
            )
            mapping.create()
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
            _save_network(instance, asked["nics"])
    return {}


def delete(asked):
    """Deletes a `server`, as a hypervisor confirms it."""
    from nova import objects

    with _found(asked["server"]) as instance:
        instance.destroy()
    mapping = objects.InstanceMapping.get_by_instance_uuid(_context(), asked["server"])
    mapping.queued_for_delete = True
    mapping.save()
    return {}


def _instance(objects, there, asked, wanted, shape):
    vm_state, power_state = STATES[wanted.get("status", "ACTIVE")]
    instance = objects.Instance(
        there,
        uuid=wanted.get("id", str(uuid.uuid4())),
        user_id=asked["user"],
        project_id=asked["project"],
        display_name=wanted["name"],
        hostname=wanted["name"].split(".")[0],
        availability_zone=wanted.get("zone", "nova"),
        vm_state=vm_state,
        power_state=power_state,
        task_state=None,
        metadata=wanted.get("metadata", {}),
        memory_mb=shape.memory_mb,
        vcpus=shape.vcpus,
        root_gb=shape.root_gb,
        ephemeral_gb=0,
        instance_type_id=shape.id,
        image_ref="",
        system_metadata={},
        security_groups=objects.SecurityGroupList(),
        access_ip_v4=wanted.get("access_ipv4"),
        access_ip_v6=wanted.get("access_ipv6"),
    )
    instance.flavor = shape
    instance.old_flavor = instance.new_flavor = None
    return instance


def _save_network(instance, nics):
    """The addresses the API shows. Each of `nics` has port, mac, network, name, addresses, and floating (address to floating address)."""
    from nova import objects
    from nova.network import model

    vifs = []
    for nic in nics:
        subnets = []
        for address in nic["addresses"]:
            floating = [model.IP(address=nic["floating"][address], type="floating")] if address in nic.get("floating", {}) else []
            fixed = model.FixedIP(address=address, floating_ips=floating)
            subnets.append(model.Subnet(cidr=None, ips=[fixed]))
        network = model.Network(id=nic["network"], bridge=None, label=nic["name"], subnets=subnets)
        vifs.append(model.VIF(id=nic["port"], address=nic.get("mac"), network=network, type="ovs", active=True))
    cache = objects.InstanceInfoCache.new(instance._context, instance.uuid)
    cache.network_info = model.NetworkInfo(vifs)
    cache.save()


class _found:
    """The instance of this id, in its cell."""

    def __init__(self, server):
        self.server = server

    def __enter__(self):
        from nova import context, objects

        self.target = context.target_cell(_context(), _cell())
        there = self.target.__enter__()
        return objects.Instance.get_by_uuid(there, self.server, expected_attrs=["metadata", "system_metadata"])

    def __exit__(self, *error):
        return self.target.__exit__(*error)


def _cell():
    from nova import objects

    return next(cell for cell in objects.CellMappingList.get_all(_context()) if cell.name == "cell1")


def _context():
    from nova import context

    return context.get_admin_context()
