"""How Nova's own objects make a server: as the scheduler and a hypervisor would have left it."""

import datetime
import uuid

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


def instance_of(there, asked, wanted, shape):
    """The instance for one of the `servers` in what was asked, not yet in the database."""
    from nova import objects

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
        progress=0,
        config_drive="",
        launched_at=datetime.datetime.now(datetime.timezone.utc),
        access_ip_v4=wanted.get("access_ipv4"),
        access_ip_v6=wanted.get("access_ipv6"),
        # Nova counts disks from it on.
        root_device_name="/dev/vda",
        # One that takes volumes is on a host.
        host=wanted.get("host"),
    )
    instance.flavor = shape
    instance.old_flavor = instance.new_flavor = None
    return instance


def save_network(instance, nics):
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
        vifs.append(model.VIF(id=nic["port"], address=nic["mac"], network=network, type="ovs", active=True))
    cache = objects.InstanceInfoCache.new(instance._context, instance.uuid)
    cache.network_info = model.NetworkInfo(vifs)
    cache.save()


def register(uuid_, asked, place, shape):
    """What Nova's API keeps beside the cell: where the server is, and what was asked of the scheduler."""
    from nova import objects

    mapping = objects.InstanceMapping(
        admin(),
        instance_uuid=uuid_,
        cell_mapping=place,
        project_id=asked["project"],
        user_id=asked["user"],
        queued_for_delete=False,
    )
    mapping.create()
    wish = objects.RequestSpec(
        admin(),
        instance_uuid=uuid_,
        project_id=asked["project"],
        user_id=asked["user"],
        availability_zone=None,
        flavor=shape,
        num_instances=1,
        scheduler_hints={},
    )
    wish.create()


def cell():
    from nova import objects

    return next(cell for cell in objects.CellMappingList.get_all(admin()) if cell.name == "cell1")


def admin():
    from nova import context

    return context.get_admin_context()
