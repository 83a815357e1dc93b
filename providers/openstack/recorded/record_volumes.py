"""Records the answers in the folder volumes, as record.py does, which see: volumes, snapshots and attachments of two servers."""

import json
import time
import urllib.request
from pathlib import Path

import record

record.HERE = Path(__file__).parent / "volumes"
record.HOSTS[record.CLOUD["CINDER"].removeprefix("http://")] = "cinder.test"
CINDER = record.CLOUD["CINDER"] + "/v3"
NOVA = record.NOVA + "/v2.1"
VERSION = {"OpenStack-API-Version": "volume 3.42"}
MARKS = {"cinder.csi.openstack.org/cluster": "kubernetes", "csi.storage.k8s.io/pvc/name": "data"}
NOBODY = "00000000-0000-0000-0000-000000000000"


def stage(service, verb, document):
    request = urllib.request.Request(f"{record.CLOUD[service]}/_stage/{verb}", json.dumps(document).encode())
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def main():
    record.HERE.mkdir(exist_ok=True)
    name = "recorded-volumes"
    account = stage("KEYSTONE", "project", {"name": name})
    token, body = record.login(name, account["password"], name, "token-1")
    record.TOKENS[account["password"]] = "password"
    record.record("token", "POST", f"{record.KEYSTONE}/v3/auth/tokens", body)
    stage("NOVA", "flavor", {"name": "m1.small"})
    wanted = [{"name": f"node-{at}", "zone": "nova", "host": "compute"} for at in (1, 2)]
    asked = {"project": account["project"], "user": account["user"], "flavor": "m1.small", "servers": wanted}
    servers = stage("NOVA", "servers", asked)["servers"]

    def recorded(name, method, url, body=None):
        return record.record(name, method, url, body, token, VERSION)

    def status(kind, thing, wanted):
        while record.asked("GET", f"{CINDER}/{kind}s/{thing}", None, token)[kind]["status"] != wanted:
            time.sleep(0.05)

    def volume(name, recording=None, **more):
        new = {"volume": {"name": name, "size": 2, "availability_zone": "nova", "metadata": MARKS, **more}}
        if recording:
            return recorded(recording, "POST", f"{CINDER}/volumes", new)["volume"]["id"]
        return record.asked("POST", f"{CINDER}/volumes", new, token)["volume"]["id"]

    first = volume("pvc-1", "created")
    status("volume", first, "available")
    recorded("volume_free", "GET", f"{CINDER}/volumes/{first}")
    attachments = f"{NOVA}/servers/{servers[0]}/os-volume_attachments"
    attach = {"volumeAttachment": {"volumeId": first}}
    recorded("attached", "POST", attachments, attach)
    status("volume", first, "in-use")
    recorded("volume", "GET", f"{CINDER}/volumes/{first}")
    recorded("attached_already", "POST", attachments, attach)
    recorded("attached_to_no_server", "POST", f"{NOVA}/servers/{NOBODY}/os-volume_attachments", attach)
    recorded("detached_already", "DELETE", f"{NOVA}/servers/{servers[1]}/os-volume_attachments/{first}")
    recorded("volume_in_use", "DELETE", f"{CINDER}/volumes/{first}")
    copy = {"snapshot": {"name": "snapshot-1", "volume_id": first, "force": True, "metadata": MARKS}}
    copy = recorded("snapshot_created", "POST", f"{CINDER}/snapshots", copy)["snapshot"]["id"]
    status("snapshot", copy, "available")
    recorded("snapshot", "GET", f"{CINDER}/snapshots/{copy}")
    recorded("snapshots", "GET", f"{CINDER}/snapshots/detail?name=snapshot-1")
    second = volume("pvc-2", snapshot_id=copy)
    status("volume", second, "available")
    recorded("volumes", "GET", f"{CINDER}/volumes/detail?limit=1000")
    recorded("volumes_page", "GET", f"{CINDER}/volumes/detail?limit=1")
    recorded("volumes_named", "GET", f"{CINDER}/volumes/detail?name=pvc-1&limit=1000")
    recorded("volumes_none", "GET", f"{CINDER}/volumes/detail?name=pvc-9&limit=1000")
    recorded("volume_not_found", "GET", f"{CINDER}/volumes/{NOBODY}")
    recorded("marker_not_found", "GET", f"{CINDER}/volumes/detail?limit=1&marker={NOBODY}")
    new = {"volume": {"name": "pvc-9", "size": 2, "volume_type": "nothing"}}
    recorded("type_not_found", "POST", f"{CINDER}/volumes", new)
    recorded("zone_not_found", "POST", f"{CINDER}/volumes", {"volume": {"name": "pvc-9", "size": 2, "availability_zone": "nothing"}})
    recorded("quota", "POST", f"{CINDER}/volumes", {"volume": {"name": "pvc-9", "size": 2000}})
    stage("CINDER", "fate", {"project": account["project"], "times": 9})
    failed = volume("pvc-failed")
    status("volume", failed, "error")
    recorded("volumes_failed", "GET", f"{CINDER}/volumes/detail?name=pvc-failed&limit=1000")
    recorded("messages", "GET", f"{CINDER}/messages?resource_uuid={failed}")
    stage("CINDER", "fate", {"project": account["project"], "times": 0})


if __name__ == "__main__":
    main()
