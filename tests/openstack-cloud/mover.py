"""What Octavia's controller does to the database, without machines: PENDING_* becomes ACTIVE, what is PENDING_DELETE goes, after a while.

How long, and whether it ends in ERROR, can be set for each project, since tests share a cloud.
"""

import logging
import threading
import time

LOG = logging.getLogger(__name__)

# How long a change takes unless a test says otherwise, in seconds: long enough to be seen.
PACE = 0.3

# How often the mover looks while something is pending.
PAUSE = 0.05


class Mover:
    def __init__(self):
        self.since = {}
        self.paces = {}
        self.fates = {}
        self.lock = None
        self.changed = threading.Event()

    def start(self, lock):
        self.lock = lock
        threading.Thread(target=self._run, name="mover", daemon=True).start()

    def after(self, environ, _answer):
        """Something may be pending now."""
        if environ["REQUEST_METHOD"] != "GET":
            self.changed.set()

    def pace(self, asked):
        """Changes of a `project` take so many `seconds`; null: they never end."""
        self.paces[asked["project"]] = asked["seconds"]
        self.changed.set()
        return {}

    def fate(self, asked):
        """The next `times` changes of load balancers of a `project` end in ERROR."""
        self.fates[asked["project"]] = asked.get("times", 1)
        return {}

    def set_status(self, asked):
        """Sets a `balancer` (id) to a provisioning status, or to an operating status, or both."""
        from octavia.db import models

        with _session() as session:
            balancer = session.get(models.LoadBalancer, asked["balancer"])
            balancer.provisioning_status = asked.get("provisioning", balancer.provisioning_status)
            balancer.operating_status = asked.get("operating", balancer.operating_status)
        self.changed.set()
        return {}

    def vanish(self, asked):
        """Deletes a `balancer` (id) and all below it at once, as somebody else did who had waited."""
        from octavia.db import models

        with _session() as session:
            _remove(session, session.get(models.LoadBalancer, asked["balancer"]))
        return {}

    def _run(self):
        while True:
            self.changed.wait()
            self.changed.clear()
            time.sleep(PAUSE)
            try:
                with self.lock:
                    self._move()
            except Exception:
                LOG.exception("moving load balancers")
                self.changed.set()

    def _move(self):
        from octavia.db import models

        with _session() as session:
            pending = models.LoadBalancer.provisioning_status.like("PENDING_%")
            found = session.query(models.LoadBalancer).filter(pending).all()
            self.since = {key: at for key, at in self.since.items() if key in {balancer.id for balancer in found}}
            for balancer in found:
                pace = self.paces.get(balancer.project_id, PACE)
                since = self.since.setdefault(balancer.id, time.monotonic())
                if pace is None:
                    continue
                if time.monotonic() - since >= pace:
                    self._finish(session, balancer)
                else:
                    self.changed.set()

    def _finish(self, session, balancer):
        del self.since[balancer.id]
        left = self.fates.get(balancer.project_id, 0)
        if left > 0:
            self.fates[balancer.project_id] = left - 1
            balancer.provisioning_status = "ERROR"
            for child in _children(balancer):
                if child.provisioning_status.startswith("PENDING_"):
                    child.provisioning_status = "ERROR"
        elif balancer.provisioning_status == "PENDING_DELETE":
            _remove(session, balancer)
        else:
            for child in _children(balancer):
                _settle(session, child)
            balancer.provisioning_status = "ACTIVE"
            balancer.operating_status = "ONLINE"


def _session():
    """A session in a transaction."""
    from octavia.db import api

    return api.session().begin()


def _children(balancer):
    """All below a load balancer, leaves first."""
    for pool in balancer.pools:
        yield from pool.members
        if pool.health_monitor:
            yield pool.health_monitor
    for listener in balancer.listeners:
        for policy in listener.l7policies:
            yield from policy.l7rules
            yield policy
    yield from balancer.listeners
    yield from balancer.pools


def _settle(session, child):
    if child.provisioning_status == "PENDING_DELETE":
        _delete(session, child)
    elif child.provisioning_status.startswith("PENDING_"):
        child.provisioning_status = "ACTIVE"
        child.operating_status = "ONLINE"


def _delete(session, child):
    _give_back_quota(session, child)
    session.delete(child)


def _remove(session, balancer):
    """As the controller does: the VIP's port goes, the children too, and the row stays under the status DELETED, which the API hides."""
    from octavia.common import utils

    try:
        utils.get_network_driver().deallocate_vip(balancer.vip.to_data_model())
    except Exception:
        LOG.exception("deleting the port of the load balancer %s", balancer.id)
    for child in list(_children(balancer)):
        _delete(session, child)
    _give_back_quota(session, balancer)
    balancer.provisioning_status = "DELETED"


def _give_back_quota(session, row):
    from octavia.db.repositories import Repositories

    kind = row.__data_model__
    Repositories().decrement_quota(session, kind, row.project_id)
