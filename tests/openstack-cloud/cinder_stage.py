"""Cinder and what a test does to it: API, scheduler and the managers of two backends in one process. The disks are those of `cinder_disks.py`."""

import os
import sys
from pathlib import Path

import configuration
import turns
from stage import Stage, waits
from tokens import Tokens


def application(folder: Path, _urls: dict):
    # Threads instead of green ones, which gunicorn's threads would not let run.
    os.environ["OS_CINDER_DISABLE_EVENTLET_PATCHING"] = "yes"
    from cinder import monkey_patch

    monkey_patch.patch()
    tokens = Tokens()
    sys.argv = ["cinder", "--config-file", f"{folder}/cinder.conf"]
    from cinder.wsgi.api import application as cinder

    import cinder_disks as disks

    turns.begin()
    _start_managers()
    verbs = {
        "forget-tokens": tokens.forget,
        "pace": waits(disks.pace),
        "fate": waits(disks.fate),
        "vanish": vanish,
    }
    stage = Stage(cinder, verbs)
    stage.lock = turns.LOCK
    return stage


def _start_managers():
    from cinder import service
    from cinder.compute import nova
    from oslo_config import cfg

    # A server is not told that its disk has grown: there is no hypervisor that could look.
    nova.API.extend_volume = lambda *_arguments: True
    host = cfg.CONF.host
    # They tell the scheduler what they have, so it comes last.
    for backend in configuration.ZONES.values():
        service.Service.create(
            host=f"{host}@{backend}", service_name=backend, binary="cinder-volume", coordination=True
        ).start()
    service.Service.create(binary="cinder-scheduler").start()


def vanish(asked):
    """Deletes a `volume` (id) at once, whatever is attached to what."""
    from cinder import objects

    volume = objects.Volume.get_by_id(_admin(), asked["volume"])
    for attachment in volume.volume_attachment:
        attachment.destroy()
    volume.destroy()
    return {}


def _admin():
    from cinder import context

    return context.get_admin_context()
