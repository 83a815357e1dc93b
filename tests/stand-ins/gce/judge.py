"""Google's own client works against the stand-in: `python -m gce.judge URL`. Says as JSON what it saw.

`stateful` (the second argument `balancer`) makes what upstream's controller leaves behind for a Service.
"""

import json
import sys
import urllib.request

import google_auth_httplib2
import httplib2
from google.oauth2 import service_account
from googleapiclient.discovery import build
from googleapiclient.errors import HttpError

PROJECT, ZONE, REGION = "demo", "us-central1-a", "us-central1"


def control(url, what, **arguments):
    request = urllib.request.Request(f"{url}/test/do/{what}", json.dumps(arguments).encode(), method="POST")
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["result"]


def client(url, service="compute", endpoint=None, scopes=("https://www.googleapis.com/auth/compute",)):
    key = control(url, "key") | {"token_uri": f"{url}/token", "type": "service_account"}
    credentials = service_account.Credentials.from_service_account_info(key, scopes=scopes)
    http = google_auth_httplib2.AuthorizedHttp(credentials, http=httplib2.Http(timeout=30))
    options = {"api_endpoint": endpoint or f"{url}/compute/v1/"}
    return build(service, "v1", http=http, static_discovery=True, client_options=options)


class Judge:
    def __init__(self, url):
        self.url, self.compute = url, client(url)

    def done(self, operation):
        """Waits as Google's samples do."""
        scopes = {
            "zones": lambda: self.compute.zoneOperations().wait(project=PROJECT, zone=ZONE, operation=operation["name"]),
            "regions": lambda: self.compute.regionOperations().wait(project=PROJECT, region=REGION, operation=operation["name"]),
            "global": lambda: self.compute.globalOperations().wait(project=PROJECT, operation=operation["name"]),
        }
        kind = operation["selfLink"].split("/operations/")[0].split(f"projects/{PROJECT}/")[1].split("/")[0]
        while operation["status"] != "DONE":
            operation = scopes[kind]().execute()
        if "error" in operation:
            raise RuntimeError(operation["error"]["errors"][0]["code"])
        return operation

    def refused(self, request):
        try:
            request.execute()
        except HttpError as error:
            return [error.resp.status, error.error_details[0]["reason"]]
        return None

    def machines(self):
        instances, names = self.compute.instances(), []
        request = instances.aggregatedList(project=PROJECT, maxResults=2, filter='name eq "judge-.*"')
        pages = 0
        while request is not None:
            page = request.execute()
            pages += 1
            for scope in page["items"].values():
                names += [instance["name"] for instance in scope.get("instances", [])]
            request = instances.aggregatedList_next(request, page)
        part = instances.get(project=PROJECT, zone=ZONE, instance="judge-0", fields="name,networkInterfaces(networkIP)").execute()
        missing = self.refused(instances.get(project=PROJECT, zone=ZONE, instance="nobody"))
        return {"names": sorted(names), "pages": pages, "part": sorted(part), "missing": missing}

    def route(self):
        routes = self.compute.routes()
        body = {
            "name": "judge-route", "destRange": "10.9.0.0/24", "priority": 1000, "description": "k8s-node-route",
            "network": f"projects/{PROJECT}/global/networks/default",
            "nextHopInstance": f"projects/{PROJECT}/zones/{ZONE}/instances/judge-0",
        }
        self.done(routes.insert(project=PROJECT, body=body).execute())
        again = self.refused(routes.insert(project=PROJECT, body=body))
        wrong = self.refused(routes.insert(project=PROJECT, body=body | {"name": "Wrong_Name"}))
        unknown = self.refused(routes.insert(project=PROJECT, body=body | {"name": "other", "colour": "red"}))
        seen = routes.list(project=PROJECT, filter="description eq k8s-node-route").execute()["items"]
        self.done(routes.delete(project=PROJECT, route="judge-route").execute())
        return {"again": again, "wrong": wrong, "unknown": unknown, "seen": [route["name"] for route in seen]}

    def balancer(self, name, node_port_pool=("judge-0", "judge-1")):
        """The parts of an external load balancer, in the order of upstream's controller."""
        compute, region = self.compute, {"project": PROJECT, "region": REGION}
        self.done(compute.addresses().insert(**region, body={"name": name}).execute())
        address = compute.addresses().get(**region, address=name).execute()["address"]
        check = {
            "name": name, "port": 30001, "requestPath": "/healthz", "checkIntervalSec": 8, "timeoutSec": 1,
            "healthyThreshold": 1, "unhealthyThreshold": 3,
        }
        self.done(compute.httpHealthChecks().insert(project=PROJECT, body=check).execute())
        zones = {"judge-0": "us-central1-a", "judge-1": "us-central1-b"}
        pool = {
            "name": name, "healthChecks": [f"projects/{PROJECT}/global/httpHealthChecks/{name}"], "sessionAffinity": "NONE",
            "instances": [f"projects/{PROJECT}/zones/{zones[node]}/instances/{node}" for node in node_port_pool],
        }
        self.done(compute.targetPools().insert(**region, body=pool).execute())
        rule = {
            "name": name, "IPAddress": address, "IPProtocol": "TCP", "portRange": "80-80", "networkTier": "PREMIUM",
            "target": f"projects/{PROJECT}/regions/{REGION}/targetPools/{name}",
        }
        self.done(compute.forwardingRules().insert(**region, body=rule).execute())
        used = self.refused(compute.targetPools().delete(**region, targetPool=name))
        self.done(compute.addresses().delete(**region, address=name).execute())
        return {"address": address, "used": used}

    def remove(self, name):
        region = {"project": PROJECT, "region": REGION}
        self.done(self.compute.forwardingRules().delete(**region, forwardingRule=name).execute())
        self.done(self.compute.targetPools().delete(**region, targetPool=name).execute())
        self.done(self.compute.httpHealthChecks().delete(project=PROJECT, httpHealthCheck=name).execute())

    def disk(self):
        """A disk comes to a machine, grows, leaves a snapshot; while it is in use it stays."""
        compute, place = self.compute, {"project": PROJECT, "zone": ZONE}
        body = {"name": "judge-disk", "sizeGb": "10", "type": f"projects/{PROJECT}/zones/{ZONE}/diskTypes/pd-balanced"}
        self.done(compute.disks().insert(**place, body=body).execute())
        attach = {"source": f"projects/{PROJECT}/zones/{ZONE}/disks/judge-disk", "deviceName": "judge", "mode": "READ_WRITE"}
        self.done(compute.instances().attachDisk(**place, instance="judge-0", body=attach).execute())
        used = self.refused(compute.disks().delete(**place, disk="judge-disk"))
        twice = self.refused(compute.instances().attachDisk(**place, instance="judge-0", body=attach | {"deviceName": "other"}))
        self.done(compute.disks().resize(**place, disk="judge-disk", body={"sizeGb": "12"}).execute())
        smaller = self.refused(compute.disks().resize(**place, disk="judge-disk", body={"sizeGb": "11"}))
        self.done(compute.disks().createSnapshot(**place, disk="judge-disk", body={"name": "judge-snapshot"}).execute())
        snapshot = compute.snapshots().get(project=PROJECT, snapshot="judge-snapshot").execute()
        self.done(compute.instances().detachDisk(**place, instance="judge-0", deviceName="judge").execute())
        self.done(compute.disks().delete(**place, disk="judge-disk").execute())
        self.done(compute.snapshots().delete(project=PROJECT, snapshot="judge-snapshot").execute())
        return {"used": used, "twice": twice, "smaller": smaller, "snapshot": snapshot["diskSizeGb"]}

    def metadata(self):
        """A key for all machines, as Google's documents have it; a stale fingerprint is refused."""
        projects = self.compute.projects()
        seen = projects.get(project=PROJECT, fields="commonInstanceMetadata(fingerprint,items)").execute()["commonInstanceMetadata"]
        body = {"fingerprint": seen["fingerprint"], "items": seen.get("items", []) + [{"key": "judge", "value": "1"}]}
        self.done(projects.setCommonInstanceMetadata(project=PROJECT, body=body).execute())
        late = self.refused(projects.setCommonInstanceMetadata(project=PROJECT, body=body))
        seen = projects.get(project=PROJECT).execute()["commonInstanceMetadata"]
        return {"items": [item["key"] for item in seen["items"]], "late": late}

    def clusters(self):
        control(self.url, "add_cluster", name="judge", location="us-central1", endpoint="203.0.113.7")
        scopes = ["https://www.googleapis.com/auth/cloud-platform"]
        container = client(self.url, "container", f"{self.url}/", scopes)
        clusters = container.projects().locations().clusters()
        found = clusters.list(parent=f"projects/{PROJECT}/locations/-").execute()["clusters"]
        narrow = client(self.url, "container", f"{self.url}/").projects().locations().clusters()
        return {"found": [[one["name"], one["endpoint"]] for one in found], "narrow": self.refused(narrow.list(parent=f"projects/{PROJECT}/locations/-"))}

    def fingerprint(self):
        """A lost update is refused."""
        region = {"project": PROJECT, "region": REGION}
        check = {"name": "judge-hc", "type": "HTTP", "httpHealthCheck": {"port": 10256, "requestPath": "/healthz"}}
        self.done(self.compute.healthChecks().insert(project=PROJECT, body=check).execute())
        body = {
            "name": "judge-bs", "protocol": "TCP", "loadBalancingScheme": "INTERNAL",
            "healthChecks": [f"projects/{PROJECT}/global/healthChecks/judge-hc"],
        }
        services = self.compute.regionBackendServices()
        self.done(services.insert(**region, body=body).execute())
        seen = services.get(**region, backendService="judge-bs").execute()
        self.done(services.update(**region, backendService="judge-bs", body=seen | {"sessionAffinity": "CLIENT_IP"}).execute())
        late = self.refused(services.update(**region, backendService="judge-bs", body=seen))
        self.done(services.delete(**region, backendService="judge-bs").execute())
        self.done(self.compute.healthChecks().delete(project=PROJECT, healthCheck="judge-hc").execute())
        return late


def main():
    url, what = sys.argv[1], sys.argv[2:]
    judge = Judge(url)
    if what[:1] == ["balancer"]:
        print(json.dumps(judge.balancer(what[1])))
        return
    control(url, "add_machine", name="judge-0", zone="us-central1-a")
    control(url, "add_machine", name="judge-1", zone="us-central1-b")
    control(url, "add_machine", name="judge-2", zone="us-central1-c")
    seen = {"machines": judge.machines(), "route": judge.route(), "balancer": judge.balancer("judge-lb")}
    judge.remove("judge-lb")
    seen["fingerprint"] = judge.fingerprint()
    seen |= {"disk": judge.disk(), "metadata": judge.metadata(), "clusters": judge.clusters()}
    print(json.dumps(seen))


main()
