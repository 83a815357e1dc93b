"""What the services' own tools do not prepare, for one service in a process of its own (they share the names of their settings).

Keystone: the account of the services, the roles Octavia asks for, the catalog. Neutron and Octavia: the tables, from the packages' models.
"""

import sys
import uuid
from pathlib import Path

import configuration


def keystone(folder: Path) -> None:
    from keystone.common import provider_api
    from keystone.server import configure, setup_backends

    import template

    sys.argv = ["keystone"]
    configure(config_files=[f"{folder}/keystone.conf"])
    setup_backends()
    api = provider_api.ProviderAPIs
    user = api.identity_api.create_user(
        {"name": "services", "password": configuration.SERVICE_PASSWORD, "domain_id": "default", "enabled": True}
    )
    project = {"id": uuid.uuid4().hex, "name": "service", "domain_id": "default", "enabled": True}
    api.resource_api.create_project(project["id"], project)
    for name in ("load-balancer_member", "load-balancer_admin"):
        role = {"id": name, "name": name}
        api.role_api.create_role(role["id"], role)
    roles = {role["name"]: role["id"] for role in api.role_api.list_roles()}
    for role in ("admin", "service"):
        api.assignment_api.add_role_to_user_and_project(user["id"], project["id"], roles[role])
    for name, (kind, path) in template.CATALOG.items():
        if name == "keystone":
            continue
        api.catalog_api.create_service(name, {"id": name, "type": kind, "name": name, "enabled": True})
        for interface in ("public", "internal", "admin"):
            endpoint = {
                "id": f"{name}-{interface}",
                "service_id": name,
                "interface": interface,
                "region_id": configuration.REGION,
                "url": template.NOWHERE[name] + path,
                "enabled": True,
            }
            api.catalog_api.create_endpoint(endpoint["id"], endpoint)


def neutron(folder: Path) -> None:
    import sqlalchemy
    from neutron.db.migration.models import head

    engine = sqlalchemy.create_engine(configuration.database(folder, "neutron"))
    head.get_metadata().create_all(engine)


def octavia(folder: Path) -> None:
    import sqlalchemy
    from octavia.db import base_models
    from octavia.tests.functional.db.base import OctaviaDBTestBase
    from sqlalchemy import orm

    engine = sqlalchemy.create_engine(configuration.database(folder, "octavia"))
    base_models.BASE.metadata.create_all(engine)
    with orm.Session(engine) as session, session.begin():
        # Its test base class knows the words in the lookup tables, and is the only one that does.
        OctaviaDBTestBase._seed_lookup_tables(_Seeds(), session)


class _Seeds:
    def __getattr__(self, _name):
        from octavia.tests.functional.db.base import OctaviaDBTestBase

        return lambda *arguments: OctaviaDBTestBase._seed_lookup_table(self, *arguments)


if __name__ == "__main__":
    {"keystone": keystone, "neutron": neutron, "octavia": octavia}[sys.argv[2]](Path(sys.argv[1]))
