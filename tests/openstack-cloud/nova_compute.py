"""Nova behind its API, as far as volumes need it: its own conductor and compute manager with its own fake hypervisor, reached as the API reaches them."""

import time

import turns

# The host that servers are on which take volumes.
HOST = "compute"

# How long a hypervisor takes to attach or detach a disk, in seconds: long enough to be seen.
PACE = 0.2


def start():
    """Takes what the API sends to a conductor and to the host's compute service."""
    import oslo_messaging
    from nova import objects, rpc
    from nova.compute import manager
    from nova.conductor.manager import ComputeTaskManager
    from nova.objects import base

    # Gives the API's process what a process of these services has.
    objects.register_all()
    # There is no Placement, and nothing is placed.
    manager.report.SchedulerReportClient = lambda: None
    compute = manager.ComputeManager(compute_driver="fake.FakeDriver", host=HOST)
    for name in ("attach_volume", "detach_volume"):
        setattr(compute, name, _slow(getattr(compute, name)))
    _register()
    for topic, name, endpoints in (
        ("conductor", "conductor", [ComputeTaskManager()]),
        ("compute", HOST, [compute, *compute.additional_endpoints]),
    ):
        target = oslo_messaging.Target(topic=topic, server=name)
        rpc.get_server(target, endpoints, base.NovaObjectSerializer()).start()


def meet_cinder(_asked):
    """Does what Nova does at its first request to Cinder alone: it takes seconds, more than a caller waits for on a busy machine."""
    from nova import exception
    from nova.volume import cinder
    from nova_objects import admin

    try:
        cinder.API().get(admin(), "00000000-0000-0000-0000-000000000000")
    except exception.VolumeNotFound:
        return {}


def _slow(change):
    def slowly(*arguments, **named):
        with turns.pause():
            time.sleep(PACE)
        return change(*arguments, **named)

    return slowly


def _register():
    """The compute service's entry, by which the API sees that the host is up."""
    import datetime

    from nova import context, objects
    from nova_objects import admin, cell

    with context.target_cell(admin(), cell()) as there:
        now = datetime.datetime.now(datetime.timezone.utc)
        service = objects.Service(there, host=HOST, binary="nova-compute", topic="compute", report_count=1, last_seen_up=now)
        service.create()
    objects.HostMapping(admin(), host=HOST, cell_mapping=cell()).create()
