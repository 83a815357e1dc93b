"""oVirt's own SDK works against the stand-in, by XML. `python -m ovirt.judge URL` says as JSON what it saw."""

import json
import sys
import urllib.request

from ovirtsdk4 import AuthError, Connection, Error, NotFoundError


def control(url, what, **arguments):
    request = urllib.request.Request(f"{url}/test/do/{what}", json.dumps(arguments).encode(), method="POST")
    with urllib.request.urlopen(request) as answer:
        return json.load(answer).get("result")


def refused(call):
    try:
        call()
    except Error as error:
        return [type(error).__name__, error.code, error.fault.reason if error.fault else None]
    return None


def connect(url, account, **more):
    options = {"username": account["user"], "password": account["password"]} | more
    return Connection(url=f"{url}/ovirt-engine/api", **options)


def main(url):
    account = control(url, "account")
    made = control(url, "add_machine", name="judged", fqdn="Judged.Example", cluster="Racks", cores=4, labels=["zone-a"], tags=["k8s"])
    control(url, "add_machines", prefix="many", count=120)
    connection = connect(url, account)
    vms = connection.system_service().vms_service()
    pages = [vms.list(search=f"sortby name page {page}", max=50, follow="nics.reporteddevices") for page in (1, 2, 3, 4)]
    by_name = vms.list(search="fqdn=judged.example and tag=k8s", case_sensitive=False, follow="nics.reporteddevices,affinitylabels")[0]
    by_id = vms.vm_service(made["id"]).get()
    nic = vms.vm_service(made["id"]).nics_service().list(follow="reporteddevices")[0]
    clusters = {one.id: [one.name, one.data_center.id] for one in connection.system_service().clusters_service().list()}
    centers = {one.id: one.name for one in connection.system_service().data_centers_service().list()}
    cluster, center = clusters[by_name.cluster.id]
    control(url, "power", id=made["id"], on=False)
    down = vms.vm_service(made["id"]).get(follow="nics.reporteddevices")
    control(url, "expire")
    renewed = len(vms.list())
    ips = lambda nic: [[ip.address, ip.version.value] for device in nic.reported_devices for ip in device.ips]
    print(json.dumps({
        "pages": [len(page) for page in pages], "different": len({vm.id for page in pages for vm in page}),
        "machine": [by_name.id == made["id"], by_name.fqdn, by_name.status.value, by_name.cpu.topology.cores, by_name.memory >> 30],
        "ips": ips(by_name.nics[0]) == ips(nic) == [["fe80::1", "v6"], [made["ip"], "v4"]], "labels": [label.name for label in by_name.affinity_labels],
        "unfollowed": by_id.nics.href is not None, "cluster": [cluster, centers[center]],
        "down": [down.status.value, down.fqdn, len(down.nics[0].reported_devices or [])], "renewed": renewed,
        "missing": isinstance_of(NotFoundError, lambda: vms.vm_service("0b3a6a5c-5f0e-4c3e-9d5f-1a2b3c4d5e6f").get()),
        "search": refused(lambda: vms.list(search="nonsense")), "follow": refused(lambda: vms.list(follow="nothing")),
        "password": isinstance_of(AuthError, lambda: connect(url, account, password="wrong").authenticate()),
    }))


def isinstance_of(kind, call):
    try:
        call()
    except kind:
        return True
    return False


if __name__ == "__main__":
    main(*sys.argv[1:])
