"""What is there at the start, and what only administrators do: `POST /test/do/NAME`."""

import ipaddress

from gce.disks import let_go
from gce.errors import not_found, refused
from gce.rules import fingerprint

REGIONS = {"us-central1": "abcf", "europe-west1": "bcd"}


class World:
    def make_world(self):
        self.project, self.zone, self.network = "demo", "us-central1-a", "default"
        self.unreachable = set()
        self.quotas, self.full = {}, set()
        self.internal = (str(ip) for ip in ipaddress.ip_network("10.128.0.0/16").hosts())
        self.external = (str(ip) for ip in ipaddress.ip_network("34.72.0.0/16").hosts())
        self.machine = {"name": "cloudwit", "ip": "10.128.255.254", "kind": "e2-medium"}
        self.clusters = []
        for project in ("demo", "host"):
            self.do_add_project(project)

    def do_add_project(self, project):
        prefix = f"projects/{project}/"
        for region, letters in REGIONS.items():
            self.store.add(prefix + f"regions/{region}", {"name": region, "status": "UP"})
            for letter in letters:
                zone = f"{region}-{letter}"
                link = self.store.link(prefix + f"regions/{region}")
                self.store.add(prefix + f"zones/{zone}", {"name": zone, "status": "UP", "region": link})
            link = self.store.link(prefix + "global/networks/default")
            subnetwork = {"name": "default", "network": link, "ipCidrRange": "10.128.0.0/16"}
            self.store.add(prefix + f"regions/{region}/subnetworks/default", subnetwork)
        metadata = {"kind": "compute#metadata", "fingerprint": fingerprint(), "items": []}
        self.store.add(prefix.rstrip("/"), {"kind": "compute#project", "name": project, "commonInstanceMetadata": metadata})
        self.store.add(prefix + "global/networks/default", {"name": "default", "autoCreateSubnetworks": True})

    def scopes(self, project):
        scopes = []
        for region, letters in REGIONS.items():
            scopes += [f"regions/{region}", *(f"zones/{region}-{letter}" for letter in letters)]
        return scopes

    def insist_on_place(self, path, values):
        """Google names the first part of a path that does not exist."""
        project = f"projects/{values['project']}"
        if not any(known.startswith(project + "/") for known in self.store.resources):
            raise not_found(project)
        for kind in ("zone", "region"):
            if kind in values and f"{project}/{kind}s/{values[kind]}" not in self.store.resources:
                raise not_found(f"{project}/{kind}s/{values[kind]}")

    def insist_on_quota(self, path):
        collection = path.split("/")[-2]
        if collection in self.quotas:
            held = sum(known.split("/")[-2] == collection for known in self.store.resources)
            if held >= self.quotas[collection]:
                text = f"Quota '{collection.upper()}' exceeded. Limit: {self.quotas[collection]}.0 in region us-central1."
                raise refused(403, "quotaExceeded", text)

    def do_add_machine(self, name, zone="us-central1-a", project="demo", public=True, ipv6=None, tags=()):
        path = f"projects/{project}/zones/{zone}/instances/{name}"
        interface = {"name": "nic0", "networkIP": next(self.internal)}
        interface["network"] = self.store.link(f"projects/{project}/global/networks/default")
        if public:
            interface["accessConfigs"] = [{"type": "ONE_TO_ONE_NAT", "name": "External NAT", "natIP": next(self.external)}]
        if ipv6 == "internal":
            interface |= {"ipv6Address": "fd20::1", "ipv6AccessType": "INTERNAL", "stackType": "IPV4_IPV6"}
        if ipv6 == "external":
            config = {"type": "DIRECT_IPV6", "name": "External IPv6", "externalIpv6": "2600:1900::1", "externalIpv6PrefixLength": 96}
            interface |= {"ipv6AccessConfigs": [config], "ipv6AccessType": "EXTERNAL", "stackType": "IPV4_IPV6"}
        machine = {"name": name, "status": "RUNNING", "zone": self.store.link(f"projects/{project}/zones/{zone}")}
        machine["machineType"] = self.store.link(f"projects/{project}/zones/{zone}/machineTypes/e2-standard-2")
        machine |= {"networkInterfaces": [interface], "tags": {"items": list(tags), "fingerprint": "42WmSpB8rSM="}}
        return self.store.add(path, machine)

    def do_add_machines(self, prefix, count, zones=("us-central1-a", "us-central1-b"), tags=()):
        names = [f"{prefix}-{number}" for number in range(count)]
        for number, name in enumerate(names):
            self.do_add_machine(name, zones[number % len(zones)], tags=tags)
        return names

    def do_set_status(self, name, status, zone="us-central1-a"):
        self.store.get(f"projects/demo/zones/{zone}/instances/{name}")["status"] = status

    def do_delete(self, path):
        """Deletes something behind everybody's back."""
        self.store.resources.pop(path)
        let_go(self.store, path)

    def do_put(self, path, fields):
        """Makes or changes something by hand."""
        if path not in self.store.resources:
            self.store.add(path, fields | {"name": path.split("/")[-1]})
        self.store.resources[path] |= fields

    def do_resources(self, collection):
        """Paths and contents of what is in collections of this name."""
        resources = self.store.resources.items()
        return {path: resource for path, resource in resources if path.split("/")[-2] == collection}

    def do_operations_take(self, seconds):
        self.operations.seconds = float(seconds)

    def do_pages_of(self, items):
        self.page = int(items)

    def do_be(self, name, zone):
        """From now on the metadata server is that of this machine."""
        machine = self.store.get(f"projects/{self.project}/zones/{zone}/instances/{name}")
        self.zone = zone
        self.machine = {"name": name, "ip": machine["networkInterfaces"][0]["networkIP"], "kind": machine["machineType"].split("/")[-1]}

    def do_add_cluster(self, name, location, endpoint=""):
        """A cluster of Kubernetes Engine in the project `demo`."""
        self.clusters.append({"name": name, "location": location, "status": "RUNNING"} | ({"endpoint": endpoint} if endpoint else {}))

    def do_metadata(self, project="demo"):
        return self.store.get(f"projects/{project}")["commonInstanceMetadata"]

    def do_unreachable(self, scopes):
        self.unreachable = set(scopes)

    def do_snapshots_begin(self, status):
        """What the status of new snapshots is."""
        self.snapshots_begin = status

    def do_disks_most(self, count=None):
        """How many disks machines take, whatever their type."""
        self.disks_most = count

    def do_full(self, zones):
        """Zones without room for another disk."""
        self.full = set(zones)

    def do_quota(self, collection, limit=None):
        self.quotas.pop(collection, None)
        if limit is not None:
            self.quotas[collection] = int(limit)

    def do_deny(self, methods):
        self.access.denied = set(methods)

    def do_revoke_tokens(self):
        self.access.tokens.revoke_all()

    def do_tokens_issued(self):
        return self.access.tokens.issued
