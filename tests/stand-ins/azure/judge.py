"""Microsoft's own clients work against the stand-in: `python -m azure.judge URL`. Says as JSON what they saw."""

import json
import sys
import time
import urllib.parse
import urllib.request

from azure.core import MatchConditions
from azure.core.credentials import AccessToken
from azure.core.exceptions import HttpResponseError
from azure.mgmt.compute import ComputeManagementClient
from azure.mgmt.compute.models import (
    CreationData, DataDisk, Disk, DiskProperties, DiskSku, DiskUpdate, DiskUpdateProperties, ManagedDiskParameters, Snapshot, SnapshotProperties, StorageProfile,
    VirtualMachine, VirtualMachineProperties,
)
from azure.mgmt.network import NetworkManagementClient
from azure.mgmt.network.models import NetworkSecurityGroup, PublicIPAddress, Route, RouteTable, SecurityRule, SubResource
from azure.mgmt.network.models import (
    BackendAddressPool, FrontendIPConfiguration, LoadBalancer, LoadBalancerBackendAddress, LoadBalancerSku, LoadBalancingRule, PrivateLinkService,
    PrivateLinkServiceIpConfiguration, Probe, PublicIPAddressSku, Subnet,
)
from msal.oauth2cli import JwtAssertionCreator


def control(url, what, **arguments):
    request = urllib.request.Request(f"{url}/test/do/{what}", json.dumps(arguments).encode(), method="POST")
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["result"]


class Certificate:
    """Microsoft's login insists on TLS, so its assertion goes to the stand-in by hand."""

    def __init__(self, url, account):
        self.url, self.account = f"{url}/{account['tenant']}/oauth2/v2.0/token", account

    def get_token(self, *scopes, **_):
        account = self.account
        creator = JwtAssertionCreator(account["private_key"], algorithm="RS256", sha1_thumbprint=account["thumbprint"])
        assertion = creator.create_normal_assertion(audience=self.url, issuer=account["client"], subject=account["client"])
        form = {
            "grant_type": "client_credentials", "client_id": account["client"], "scope": scopes[0], "client_assertion": assertion,
            "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
        }
        with urllib.request.urlopen(self.url, urllib.parse.urlencode(form).encode()) as answer:
            said = json.load(answer)
        return AccessToken(said["access_token"], int(time.time()) + int(said["expires_in"]))


def refused(call):
    try:
        call()
    except HttpResponseError as error:
        return [error.status_code, error.error.code]
    return None


def machines(url, compute, network):
    control(url, "add_scale_set", name="uniform")
    flexible = control(url, "add_scale_set", name="flexible", flexible=True)
    for number in range(3):
        control(url, "add_machine", name=f"judge-{number}", public=number == 0)
        control(url, "add_uniform", scale_set="uniform", number=number, computer=f"uniform00000{number}")
    control(url, "add_machine", name="flexible_1", computer="flexible000001", scale_set=flexible)
    plain = {"enforce_https": False}
    one = compute.virtual_machines.get("demo", "judge-0", expand="instanceView", **plain)
    interface = network.network_interfaces.get("demo", "judge-0-nic", **plain)
    interfaces = network.network_interfaces.list_virtual_machine_scale_set_network_interfaces("demo", "uniform", **plain)
    statuses = compute.virtual_machines.list_all(status_only="true", **plain)
    return {
        "names": [machine.name for machine in compute.virtual_machines.list("demo", **plain)],
        "uniform": [machine.os_profile.computer_name for machine in compute.virtual_machine_scale_set_vms.list("demo", "uniform", **plain)],
        "sets": {one.name: one.orchestration_mode for one in compute.virtual_machine_scale_sets.list("demo", **plain)},
        "size": one.hardware_profile.vm_size,
        "power": [status.code for status in one.instance_view.statuses],
        "public": interface.ip_configurations[0].public_ip_address.id.rsplit("/", 1)[1],
        "interfaces": len(list(interfaces)),
        "statuses": len([machine for machine in statuses if machine.instance_view]),
        "missing": refused(lambda: compute.virtual_machines.get("demo", "nobody", **plain)),
        "group": refused(lambda: compute.virtual_machines.get("elsewhere", "nobody", **plain)),
    }


def routes(url, network):
    plain = {"enforce_https": False, "polling_interval": 0}
    tables = network.route_tables
    # Nothing is done before the second request was refused.
    control(url, "operations_take", seconds=3600)
    body = RouteTable(location="westeurope", routes=[])
    poller = tables.begin_create_or_update("demo", "judged", body, **plain)
    busy = refused(lambda: tables.begin_create_or_update("demo", "judged", body, **plain))
    control(url, "operations_take", seconds=0.1)
    control(url, "finish")
    made = poller.result()
    hop = Route(name="one", address_prefix="10.244.0.0/24", next_hop_type="VirtualAppliance", next_hop_ip_address="10.0.0.4")
    made.routes = [hop]
    kept = tables.begin_create_or_update("demo", "judged", made, headers={"If-Match": made.etag}, **plain).result()
    stale = refused(lambda: tables.begin_create_or_update("demo", "judged", made, headers={"If-Match": made.etag}, **plain))
    wrong = RouteTable(location="westeurope", routes=[Route(name="odd", address_prefix="10.0.0.0/8", next_hop_type="Nowhere")])
    wrong = refused(lambda: tables.begin_create_or_update("demo", "judged", wrong, **plain))
    unknown = refused(lambda: tables.begin_create_or_update("demo", "judged", {"location": "westeurope", "odd": 1}, **plain))
    seen = [route.name for route in kept.routes]
    return {"state": made.provisioning_state, "busy": busy, "stale": stale, "wrong": wrong, "unknown": unknown, "seen": seen}


def balancers(url, network):
    """A load balancer from its address to its last rule, read, and deleted in the one order that Azure takes."""
    plain = {"enforce_https": False, "polling_interval": 0}
    control(url, "operations_take", seconds=0.1)
    body = PublicIPAddress(location="westeurope", sku=PublicIPAddressSku(name="Standard"), public_ip_allocation_method="Static")
    address = network.public_ip_addresses.begin_create_or_update("demo", "judged", body, **plain).result()
    base = address.id.replace("publicIPAddresses", "loadBalancers")
    vnet = base.replace("loadBalancers/judged", "virtualNetworks/vnet")
    front = FrontendIPConfiguration(name="front", public_ip_address=SubResource(id=address.id))
    behind = LoadBalancerBackendAddress(name="one", ip_address="10.0.0.4", virtual_network=SubResource(id=vnet))
    pool = BackendAddressPool(name="pool", load_balancer_backend_addresses=[behind])
    probe = Probe(name="probe", protocol="Tcp", port=30080, interval_in_seconds=5, probe_threshold=2)

    def rule(name, front):
        return LoadBalancingRule(
            name=name, protocol="Tcp", frontend_port=80, backend_port=80, enable_floating_ip=True, probe=SubResource(id=f"{base}/probes/probe"),
            frontend_ip_configuration=SubResource(id=f"{base}/frontendIPConfigurations/{front}"),
            backend_address_pool=SubResource(id=f"{base}/backendAddressPools/pool"),
        )

    def make(rules, name="judged"):
        body = LoadBalancer(
            location="westeurope", sku=LoadBalancerSku(name="Standard"), frontend_ip_configurations=[front], backend_address_pools=[pool],
            probes=[probe], load_balancing_rules=rules,
        )
        return network.load_balancers.begin_create_or_update("demo", name, body, **plain).result()

    nowhere, clash = refused(lambda: make([rule("a", "nowhere")])), refused(lambda: make([rule("a", "front"), rule("b", "front")]))
    made = make([rule("a", "front")])
    read = network.load_balancers.get("demo", "judged", enforce_https=False)
    in_use = refused(lambda: network.public_ip_addresses.begin_delete("demo", "judged", **plain))
    group = NetworkSecurityGroup(location="westeurope", security_rules=[
        SecurityRule(name=name, protocol="Tcp", access="Allow", direction="Inbound", priority=500, source_address_prefix="Internet",
                     source_port_range="*", destination_port_ranges=["80"], destination_address_prefixes=[address.ip_address])
        for name in ("one", "two")
    ])
    twice = refused(lambda: network.network_security_groups.begin_create_or_update("demo", "judged", group, **plain))
    network.load_balancers.begin_delete("demo", "judged", **plain).result()
    network.public_ip_addresses.begin_delete("demo", "judged", **plain).result()
    gone = refused(lambda: network.load_balancers.get("demo", "judged", enforce_https=False))
    return {
        "ip": address.ip_address, "state": made.provisioning_state, "rules": [one.name for one in read.load_balancing_rules],
        "behind": [one.ip_address for one in read.backend_address_pools[0].load_balancer_backend_addresses],
        "nowhere": nowhere, "clash": clash, "in_use": in_use, "twice": twice, "gone": gone,
    }


def disks(url, compute):
    """A disk from its creation over a machine and a snapshot to its end."""
    plain, at_once = {"enforce_https": False, "polling_interval": 0}, {"enforce_https": False}
    control(url, "operations_take", seconds=0.1)
    control(url, "add_machine", name="holder")
    control(url, "add_scale_set", name="holders")
    control(url, "add_uniform", scale_set="holders", number=0, computer="holders000000", zone="1")

    def make(name, size=4, zones=("1",), sku="Premium_LRS", **creation):
        creation = CreationData(**({"create_option": "Empty"} | creation))
        body = Disk(location="westeurope", zones=list(zones), sku=DiskSku(name=sku), properties=DiskProperties(creation_data=creation, disk_size_gb=size))
        return compute.disks.begin_create_or_update("demo", name, body, **plain).result()

    def hold(machine, *names, write=None):
        items = [DataDisk(lun=lun, create_option="Attach", caching="None", managed_disk=ManagedDiskParameters(id=disk.id)) for lun, disk in enumerate(names)]
        body = VirtualMachine(location="westeurope", properties=VirtualMachineProperties(storage_profile=StorageProfile(data_disks=items)))
        condition = {"etag": machine.etag, "match_condition": MatchConditions.IfNotModified}
        return compute.virtual_machines.begin_create_or_update("demo", machine.name, body, **condition, **plain).result()

    one, other, far = make("one"), make("other"), make("far", zones=("2",))
    machine = compute.virtual_machines.get("demo", "holder", **at_once)
    held = hold(machine, one)
    stale, apart = refused(lambda: hold(machine, one, other)), refused(lambda: hold(held, one, far))
    control(url, "disks", most=1)
    full = refused(lambda: hold(held, one, other))
    control(url, "disks", most=None)
    grown = compute.disks.begin_update("demo", "one", DiskUpdate(properties=DiskUpdateProperties(disk_size_gb=8)), **plain).result()
    shrunk = refused(lambda: compute.disks.begin_update("demo", "one", DiskUpdate(properties=DiskUpdateProperties(disk_size_gb=1)), **plain))
    attached = compute.disks.get("demo", "one", **at_once)
    in_use = refused(lambda: compute.disks.begin_delete("demo", "one", **plain))
    vm = compute.virtual_machine_scale_set_vms.get("demo", "holders", "0", **at_once)
    vm.storage_profile.data_disks = [DataDisk(lun=3, create_option="Attach", managed_disk=ManagedDiskParameters(id=other.id))]
    body = {"location": "westeurope", "properties": {"storageProfile": {"dataDisks": [item.as_dict() for item in vm.storage_profile.data_disks]}}}
    of_set = compute.virtual_machine_scale_set_vms.begin_update("demo", "holders", "0", body, etag=vm.etag, match_condition=MatchConditions.IfNotModified, **plain).result()
    source = CreationData(create_option="Copy", source_resource_id=one.id)
    body = Snapshot(location="westeurope", properties=SnapshotProperties(creation_data=source, incremental=True))
    snapshot = compute.snapshots.begin_create_or_update("demo", "snap", body, **plain).result()
    copy = make("copy", 8, create_option="Copy", source_resource_id=snapshot.id)
    small = refused(lambda: make("small", 1, create_option="Copy", source_resource_id=snapshot.id))
    unknown = refused(lambda: compute.disks.begin_create_or_update("demo", "odd", {"location": "westeurope", "properties": {"diskSizeInGB": 1}}, **plain))
    control(url, "disks", full=["westeurope-3"])
    no_room = refused(lambda: make("nowhere", zones=("3",)))
    failed = compute.disks.get("demo", "nowhere", **at_once).provisioning_state
    seen = [disk.name for disk in compute.disks.list_by_resource_group("demo", **at_once)]
    hold(compute.virtual_machines.get("demo", "holder", **at_once))
    compute.disks.begin_delete("demo", "one", **plain).result()
    gone = refused(lambda: compute.disks.get("demo", "one", **at_once))
    sizes = {size.name: size.max_data_disk_count for size in compute.virtual_machine_sizes.list("westeurope", **at_once)}
    return {
        "state": one.provisioning_state, "held": [disk.lun for disk in held.storage_profile.data_disks], "holder": attached.managed_by.rsplit("/", 1)[1],
        "of_set": [disk.lun for disk in of_set.storage_profile.data_disks], "size": [grown.disk_size_gb, snapshot.disk_size_gb, copy.disk_size_gb],
        "stale": stale, "apart": apart, "full": full, "shrunk": shrunk, "in_use": in_use, "small": small, "unknown": unknown, "no_room": no_room,
        "failed": failed, "seen": seen, "gone": gone, "most": sizes["Standard_D2s_v3"],
    }


def links(url, network):
    """A private link service at an internal frontend of two families, and rules as Azure takes them there."""
    plain = {"enforce_https": False, "polling_interval": 0}
    subnet = network.subnets.get("demo", "vnet", "subnet", enforce_https=False)
    base = subnet.id.replace("virtualNetworks/vnet/subnets/subnet", "loadBalancers/linked")

    def rule(name, front, pool, port, protocol="Tcp", floating=True, behind=None):
        return LoadBalancingRule(
            name=name, protocol=protocol, frontend_port=port, backend_port=port if behind is None else behind, enable_floating_ip=floating,
            frontend_ip_configuration=SubResource(id=f"{base}/frontendIPConfigurations/{front}"),
            backend_address_pool=SubResource(id=f"{base}/backendAddressPools/{pool}"),
        )

    def make(rules, fronts=("IPv4", "IPv6")):
        pools = [("IPv4", "10.0.0.4"), ("IPv6", "fd00::4")]
        network_id = SubResource(id=subnet.id.split("/subnets/")[0])
        body = LoadBalancer(
            location="westeurope", sku=LoadBalancerSku(name="Standard"), load_balancing_rules=rules,
            frontend_ip_configurations=[
                FrontendIPConfiguration(name=one, subnet=Subnet(id=subnet.id), private_ip_allocation_method="Dynamic", private_ip_address_version=one)
                for one in fronts
            ],
            backend_address_pools=[
                BackendAddressPool(name=one, load_balancer_backend_addresses=[LoadBalancerBackendAddress(name=ip, ip_address=ip, virtual_network=network_id)])
                for one, ip in pools
            ],
        )
        return network.load_balancers.begin_create_or_update("demo", "linked", body, **plain).result()

    wrong = [
        [rule("a", "IPv6", "IPv4", 80)],
        [rule("a", "IPv4", "IPv4", 80, behind=30080)],
        [rule("a", "IPv4", "IPv4", 80, floating=False, behind=81), rule("b", "IPv4", "IPv4", 81, floating=False)],
        [rule("a", "IPv4", "IPv4", 80, protocol="All")],
        [rule("a", "IPv4", "IPv4", 0, protocol="All"), rule("b", "IPv4", "IPv4", 80)],
    ]
    refusals = [refused(lambda rules=rules: make(rules))[1] for rules in wrong]
    made = make([rule("a", "IPv4", "IPv4", 0, protocol="All"), rule("b", "IPv6", "IPv6", 80, floating=False, behind=30080)])
    fronts = made.frontend_ip_configurations
    service = PrivateLinkService(
        location="westeurope", load_balancer_frontend_ip_configurations=[FrontendIPConfiguration(id=fronts[0].id)],
        ip_configurations=[PrivateLinkServiceIpConfiguration(name="one", subnet=Subnet(id=subnet.id), primary=True, private_ip_allocation_method="Dynamic")],
    )
    services = network.private_link_services
    closed = refused(lambda: services.begin_create_or_update("demo", "judged", service, **plain))
    subnet.private_link_service_network_policies = "Disabled"
    network.subnets.begin_create_or_update("demo", "vnet", "subnet", subnet, **plain).result()
    linked = services.begin_create_or_update("demo", "judged", service, **plain).result()
    in_use = refused(lambda: make([], fronts=["IPv6"]))
    control(url, "connect", path=linked.id, name="endpoint")
    connected = services.get("demo", "judged", enforce_https=False).private_endpoint_connections
    kept = refused(lambda: services.begin_delete("demo", "judged", **plain))
    services.begin_delete_private_endpoint_connection("demo", "judged", connected[0].name, **plain).result()
    services.begin_delete("demo", "judged", **plain).result()
    network.load_balancers.begin_delete("demo", "linked", **plain).result()
    return {
        "families": [front.private_ip_address[:5] for front in fronts], "wrong": refusals, "closed": closed, "in_use": in_use, "kept": kept,
        "alias": linked.alias.split(".")[0], "connected": [one.name for one in connected], "left": len(list(services.list("demo", enforce_https=False))),
    }


def shown(url, network):
    """What there is, as Microsoft's client reads it."""
    all = network.load_balancers.list("demo", enforce_https=False)
    return {one.name: sorted(rule.name for rule in one.load_balancing_rules or []) for one in all}


def main(url, what="all"):
    account = control(url, "account")
    options = {
        "base_url": url, "credential_scopes": ["https://management.azure.com/.default"], "retry_total": 0,
        "subscription_id": account["subscription"], "credential": Certificate(url, account),
    }
    compute, network = ComputeManagementClient(**options), NetworkManagementClient(**options)
    if what == "shown":
        print(json.dumps(shown(url, network)))
        return
    seen = {
        "balancers": balancers(url, network), "machines": machines(url, compute, network), "routes": routes(url, network),
        "disks": disks(url, compute), "links": links(url, network),
    }
    control(url, "revoke_tokens")
    seen["token"] = refused(lambda: compute.virtual_machines.get("demo", "judge-0", enforce_https=False))
    print(json.dumps(seen))


main(*sys.argv[1:])
