"""Servers in thousands: Nova's objects make one, whose rows are then copied for the others."""

import json
import uuid

from mac import mac_of
from nova_objects import admin, cell, instance_of, register, save_network


def servers(asked):
    """As the verb `servers`, for `servers` of name, zone and `address` in one `network` (`network_name`); gives ids and ports."""
    from nova import context, objects
    from nova.db.api import api as api_database
    from nova.db.api import models as api_models
    from nova.db.main import api as database
    from nova.db.main import models

    if not asked["servers"]:
        return {"servers": []}
    place = cell()
    made = [{"id": str(uuid.uuid4()), "port": str(uuid.uuid4())} for _ in asked["servers"]]
    first = {**asked["servers"][0], "id": made[0]["id"]}
    network = _network(asked, first, made[0]["port"])
    with context.target_cell(admin(), place) as there:
        shape = objects.Flavor.get_by_name(admin(), asked["flavor"])
        instance = instance_of(there, asked, first, shape)
        instance.create()
        save_network(instance, [network])
        with database.get_context_manager(there).writer.using(there) as session:
            known = _row(session, models.InstanceInfoCache, "instance_uuid", made[0]["id"])["network_info"]
            rest = list(zip(made[1:], asked["servers"][1:]))
            _copy(session, models.Instance, "uuid", made, [_changes(wanted) for _, wanted in rest])
            _copy(session, models.InstanceExtra, "instance_uuid", made, [{} for _ in rest])
            caches = [{"network_info": _others(known, made[0], first, ids, wanted)} for ids, wanted in rest]
            _copy(session, models.InstanceInfoCache, "instance_uuid", made, caches)
    register(made[0]["id"], asked, place, shape)
    with api_database.context_manager.writer.using(admin()) as session:
        _copy(session, api_models.InstanceMapping, "instance_uuid", made, [{} for _ in rest])
        spec = _row(session, api_models.RequestSpec, "instance_uuid", made[0]["id"])["spec"]
        specs = [{"spec": spec.replace(made[0]["id"], ids["id"])} for ids, _ in rest]
        _copy(session, api_models.RequestSpec, "instance_uuid", made, specs)
    return {"servers": made}


def _network(asked, wanted, port):
    return {
        "port": port,
        "mac": mac_of(port),
        "network": asked["network"],
        "name": asked["network_name"],
        "addresses": [wanted["address"]],
    }


def _others(known, first_ids, first, ids, wanted):
    """The network of another server, in Nova's JSON, made from that of the first."""
    for old, new in (
        (first_ids["port"], ids["port"]),
        (mac_of(first_ids["port"]), mac_of(ids["port"])),
        (first["address"], wanted["address"]),
    ):
        known = known.replace(json.dumps(old), json.dumps(new))
    return known


def _changes(wanted):
    name = wanted["name"]
    return {"display_name": name, "hostname": name.split(".")[0], "availability_zone": wanted["zone"]}


def _row(session, model, key, value):
    import sqlalchemy

    table = model.__table__
    return session.execute(sqlalchemy.select(table).where(table.c[key] == value)).mappings().one()


def _copy(session, model, key, made, changes):
    """Copies the row of the first of those made for each of the others, with changes."""
    row = dict(_row(session, model, key, made[0]["id"]))
    row.pop("id")
    rows = [{**row, key: ids["id"], **change} for ids, change in zip(made[1:], changes)]
    if rows:
        session.execute(model.__table__.insert(), rows)
