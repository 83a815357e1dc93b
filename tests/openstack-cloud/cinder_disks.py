"""Disks of Cinder's backends that hold nothing, after Cinder's own driver for its tests. What is done to them takes a moment, or fails, as a test says."""

import threading
import time

import turns
from cinder.tests.fake_driver import FakeLoggingVolumeDriver

# How long a change takes unless a test says otherwise, in seconds: long enough to be seen.
PACE = 0.2

_paces = {}
_fates = {}
_changed = threading.Condition()


def pace(asked):
    """Changes of disks of a `project` take so many `seconds`; null: they never end."""
    with _changed:
        _paces[asked["project"]] = asked["seconds"]
        _changed.notify_all()
    return {}


def fate(asked):
    """The next `times` changes of disks of a `project` fail in the backend."""
    with _changed:
        _fates[asked["project"]] = asked.get("times", 1)
    return {}


def work(project):
    """Takes the time of a change; gives whether it comes to a good end."""
    begun = time.monotonic()
    with turns.pause(), _changed:
        while True:
            seconds = _paces.get(project, PACE)
            left = None if seconds is None else begun + seconds - time.monotonic()
            if left is not None and left <= 0:
                break
            _changed.wait(left)
        fails = _fates.get(project, 0)
        if fails > 0:
            _fates[project] = fails - 1
        return fails <= 0


def _slow(name):
    usual = getattr(FakeLoggingVolumeDriver, name)

    def change(self, thing, *others):
        if not work(thing.project_id):
            raise RuntimeError(f"the backend failed in {name}, as the test wanted")
        return usual(self, thing, *others)

    return change


class Disks(FakeLoggingVolumeDriver):
    """The driver of each backend."""

    create_volume = _slow("create_volume")
    create_volume_from_snapshot = _slow("create_volume_from_snapshot")
    create_cloned_volume = _slow("create_cloned_volume")
    delete_volume = _slow("delete_volume")
    extend_volume = _slow("extend_volume")
    create_snapshot = _slow("create_snapshot")
    delete_snapshot = _slow("delete_snapshot")

    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.backend_name = self.configuration.safe_get("volume_backend_name")

    def _update_volume_stats(self):
        super()._update_volume_stats()
        for pool in self._stats["pools"]:
            # Cinder keeps back the whole of it otherwise.
            pool.update(multiattach=True, reserved_percentage=0)
