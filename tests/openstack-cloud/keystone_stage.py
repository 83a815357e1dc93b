"""Keystone and what a test does to it: projects with an account each, tokens that end early."""

import datetime
import os
import time
import uuid
from pathlib import Path

from stage import Stage, ask, waits

# What a tenant has in a cloud with Octavia.
ROLES = ("member", "reader", "load-balancer_member")


def application(folder: Path, urls: dict):
    os.environ["OS_KEYSTONE_CONFIG_FILES"] = f"{folder}/keystone.conf"
    from keystone.wsgi.api import application as keystone

    verbs = _Verbs(urls)
    stage = Stage(keystone, verbs.table(), verbs.after)
    verbs.lock = stage.lock
    return stage


class _Verbs:
    def __init__(self, urls):
        from keystone.common.provider_api import ProviderAPIs

        self.api = ProviderAPIs
        self.urls = urls
        self.others = [url for name, url in urls.items() if name != "keystone"]
        self.lock = None
        self.lifetimes = {}
        self._shorten_tokens()

    def table(self):
        return {
            "project": self.project,
            "credential": self.credential,
            "revoke": self.revoke,
            "lifetime": self.lifetime,
            "region": self.region,
        }

    def project(self, asked):
        """A project `name` with a user of the same name."""
        name, password = asked["name"], uuid.uuid4().hex
        project = {"id": uuid.uuid4().hex, "name": name, "domain_id": "default", "enabled": True}
        self.api.resource_api.create_project(project["id"], project)
        user = {"name": name, "password": password, "domain_id": "default", "enabled": True}
        user = self.api.identity_api.create_user(user)
        roles = {role["name"]: role["id"] for role in self.api.role_api.list_roles()}
        for role in ROLES:
            self.api.assignment_api.add_role_to_user_and_project(user["id"], project["id"], roles[role])
        return {"project": project["id"], "user": user["id"], "name": name, "password": password}

    def credential(self, asked):
        """An application credential of a `user` in a `project`."""
        roles = self.api.assignment_api.get_roles_for_user_and_project(asked["user"], asked["project"])
        credential = {
            "id": uuid.uuid4().hex,
            "name": asked["name"],
            "secret": uuid.uuid4().hex,
            "user_id": asked["user"],
            "project_id": asked["project"],
            "roles": [{"id": role} for role in roles],
            "unrestricted": False,
            "description": "",
        }
        self.api.application_credential_api.create_application_credential(credential)
        return {"id": credential["id"], "name": credential["name"], "secret": credential["secret"]}

    @waits
    def revoke(self, asked):
        """Ends all tokens a `user` has. Keystone compares whole seconds: waits for a new one, so that the next token is not ended too."""
        from keystone.models.revoke_model import RevokeEvent

        time.sleep(1 - time.time() % 1)
        now = datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None, microsecond=0)
        before = now - datetime.timedelta(seconds=1)
        with self.lock:
            self.api.revoke_api.revoke(RevokeEvent(user_id=asked["user"], issued_before=before))
        self._forget_tokens()
        return {}

    def after(self, environ, _answer):
        """Changed accounts and deleted credentials end tokens."""
        if environ["REQUEST_METHOD"] in ("PATCH", "DELETE"):
            self._forget_tokens()

    def _forget_tokens(self):
        for url in self.others:
            try:
                ask(f"{url}/_stage/forget-tokens", {})
            except OSError:
                # Not part of this cloud, or not up yet.
                continue

    def lifetime(self, asked):
        """From now on, tokens of a `user` live so many `seconds`."""
        self.lifetimes[asked["user"]] = asked["seconds"]
        return {}

    def region(self, asked):
        """A further region `name` whose services are at these `urls` (by name; the others are where they are)."""
        from template import CATALOG

        self.api.catalog_api.create_region({"id": asked["name"], "description": "", "parent_region_id": None})
        for name, (_, path) in CATALOG.items():
            service = next(known for known in self.api.catalog_api.list_services() if known["name"] == name)
            for interface in ("public", "internal", "admin"):
                endpoint = {
                    "id": uuid.uuid4().hex,
                    "service_id": service["id"],
                    "interface": interface,
                    "region_id": asked["name"],
                    "url": asked["urls"].get(name, self.urls[name]) + path,
                    "enabled": True,
                }
                self.api.catalog_api.create_endpoint(endpoint["id"], endpoint)
        return {}

    def _shorten_tokens(self):
        provider = self.api.token_provider_api
        issue = provider.issue_token

        def issue_token(user_id, method_names, expires_at=None, **others):
            seconds = self.lifetimes.get(user_id)
            if seconds is not None:
                end = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
                expires_at = end.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            return issue(user_id, method_names, expires_at=expires_at, **others)

        provider.issue_token = issue_token
