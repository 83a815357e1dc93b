"""Neutron and what a test does to it. No agent runs, so ports become ACTIVE here, and ports in thousands come by another way than the API."""

import json
import os
import sys
from pathlib import Path

from mac import mac_of
from stage import Stage
from tokens import Tokens


def application(folder: Path, _urls: dict):
    os.environ["OS_NEUTRON_CONFIG_DIR"] = str(folder)
    os.environ["OS_NEUTRON_CONFIG_FILES"] = "neutron.conf"
    tokens = Tokens()
    sys.argv = ["neutron"]
    from neutron.wsgi.api import application as neutron
    from sqlalchemy import orm

    # Usually done by the first query, but a list of ports needs it and may be the first.
    orm.configure_mappers()

    verbs = {"forget-tokens": tokens.forget, "ports": ports, "port-status": port_status}
    return Stage(neutron, verbs, activate)


def activate(environ, answer):
    """What an agent would do: the ports just made work."""
    status, _, body = answer
    if not status.startswith("20") or environ["REQUEST_METHOD"] not in ("POST", "PUT"):
        return
    if environ["PATH_INFO"].endswith("/ports"):
        made = json.loads(body)
        ids = [port["id"] for port in made.get("ports", [made.get("port")])]
    elif environ["PATH_INFO"].endswith("/add_router_interface"):
        ids = [json.loads(body)["port_id"]]
    else:
        return
    _set_status(ids, "ACTIVE")


def port_status(asked):
    """Sets `ports` (ids) to a `status`."""
    _set_status(asked["ports"], asked["status"])
    return {}


def ports(asked):
    """Ports of servers, straight into the tables: a `project`, a `network`, a `subnet`, and `ports` of id, server, zone, name and address."""
    from neutron.db import models_v2
    from neutron.plugins.ml2 import models as ml2
    from neutron_lib.db import api as db

    with db.CONTEXT_WRITER.using(_context()) as session:
        for wanted in asked["ports"]:
            session.add(_port(models_v2, asked, wanted))
            session.add(ml2.PortBinding(port_id=wanted["id"], host="", vif_type="unbound", vnic_type="normal"))
        session.flush()
        for wanted in asked["ports"]:
            place = {"subnet_id": asked["subnet"], "network_id": asked["network"], "ip_address": wanted["address"]}
            session.add(models_v2.IPAllocation(port_id=wanted["id"], **place))
    return {}


def _port(models, asked, wanted):
    return models.Port(
        id=wanted["id"],
        project_id=asked["project"],
        name=wanted["name"],
        network_id=asked["network"],
        mac_address=mac_of(wanted["id"]),
        admin_state_up=True,
        status="ACTIVE",
        device_id=wanted["server"],
        device_owner=f"compute:{wanted['zone']}",
    )


def _set_status(ids, status):
    from neutron.db import models_v2
    from neutron_lib.db import api as db

    with db.CONTEXT_WRITER.using(_context()) as session:
        for port in session.query(models_v2.Port).filter(models_v2.Port.id.in_(ids)):
            port.status = status


def _context():
    from neutron_lib import context

    return context.get_admin_context()
