"""The resources of all projects, by path: `projects/demo/zones/us-central1-a/instances/node-1`."""

import itertools

from gce.errors import in_use, not_found

LINKS = {
    # What a resource names by links, and so keeps from being deleted.
    "forwardingRules": ["target", "backendService"],
    "targetPools": ["healthChecks"],
    "backendServices": ["healthChecks", "backends"],
}


class Store:
    def __init__(self, base):
        self.base = base
        self.resources = {}
        self.numbers = itertools.count(4_000_000_000_000_000_001)
        self.coming = set()
        """Paths that a running operation makes."""

    def link(self, path):
        return self.base() + path

    def path(self, link):
        """Of a whole URL or a part of one."""
        at = link.find("projects/")
        return link[at:] if at >= 0 else link

    def add(self, path, body):
        resource = body | {"id": str(next(self.numbers)), "selfLink": self.link(path)}
        self.resources[path] = resource
        return resource

    def get(self, path):
        if path not in self.resources:
            raise not_found(path)
        return self.resources[path]

    def linked(self, link, project, scope=""):
        """The path of what a body links to; a link may be partial."""
        path = self.path(link)
        if not path.startswith("projects/"):
            path = f"projects/{project}/{path}"
        self.get(path)
        return path

    def users(self, path):
        """Paths of what links to it."""
        for other, resource in self.resources.items():
            for field in LINKS.get(other.split("/")[-2], []):
                values = resource.get(field) or []
                values = values if isinstance(values, list) else [values]
                links = [value["group"] if isinstance(value, dict) else value for value in values]
                if any(self.path(link) == path for link in links):
                    yield other

    def insist_unused(self, path):
        for user in self.users(path):
            raise in_use(path, user)

    def under(self, prefix):
        """Of one collection, in order."""
        found = [path for path in self.resources if path.startswith(prefix) and "/" not in path[len(prefix):]]
        return [self.resources[path] for path in sorted(found)]
