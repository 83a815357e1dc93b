"""OpenStack's own SDK at work on a cloud of cloud.py: what it finds strange, a provider must not be tested with.

    python sdk_walk.py AUTH_URL REGION NAME PASSWORD PUBLIC_NETWORK SERVER ROUTER

NAME is a user and a project; there are a server and a router. Prints WALKED at the end; an assertion or an error of the SDK ends it before.
"""

import sys

import openstack
from keystoneauth1 import exceptions as client_exceptions
from openstack import exceptions


def main(auth_url, region, name, password, public, server, router):
    place = {"auth_url": auth_url, "region_name": region}
    domain = {"user_domain_name": "Default", "project_domain_name": "Default"}
    cloud = openstack.connect(**place, **domain, username=name, password=password, project_name=name)
    identity(cloud, place, domain, name)
    compute(cloud, server)
    subnet = network(cloud, router)
    balancer(cloud, subnet, public)
    volume(cloud, server)
    print("WALKED", flush=True)


def identity(cloud, place, domain, name):
    wrong = openstack.connect(**place, **domain, username=name, password="wrong", project_name=name)
    refused(401, wrong.session.get_token)
    made = cloud.identity.create_application_credential(cloud.current_user_id, "walk")
    by_credential = openstack.connect(
        **place,
        auth_type="v3applicationcredential",
        application_credential_id=made.id,
        application_credential_secret=made.secret,
    )
    assert by_credential.current_project_id == cloud.current_project_id
    cloud.identity.delete_application_credential(cloud.current_user_id, made)
    # Neutron says 401, the SDK asks Keystone for another token, and Keystone knows no such credential.
    refused(404, by_credential.network.get, "/networks")


def compute(cloud, server):
    # The SDK asks in the newest version it knows, and Nova holds its answer against its schema.
    seen = cloud.compute.get_server(server)
    assert [found.id for found in cloud.compute.servers(name=f"^{seen.name}$")] == [server]
    assert (seen.status, seen.flavor.original_name) == ("ACTIVE", "m1.small"), seen
    ports = list(cloud.network.ports(device_id=server))
    assert [port.status for port in ports] == ["ACTIVE"]
    shown = [(at["addr"], at["OS-EXT-IPS-MAC:mac_addr"]) for net in seen.addresses.values() for at in net]
    assert shown == [(ports[0].fixed_ips[0]["ip_address"], ports[0].mac_address)], shown
    refused(404, cloud.compute.get_server, "00000000-0000-0000-0000-000000000000")


def network(cloud, router):
    made = cloud.network.create_network(name="walk")
    subnet = cloud.network.create_subnet(network_id=made.id, name="walk", cidr="10.77.0.0/24", ip_version=4)
    cloud.network.add_interface_to_router(router, subnet_id=subnet.id)
    port = cloud.network.create_port(network_id=made.id, allowed_address_pairs=[{"ip_address": "10.200.0.0/24"}])
    refused(412, cloud.network.update_port, port, name="old", if_revision=port.revision_number + 7)
    hop = port.fixed_ips[0]["ip_address"]
    routes = [{"destination": "10.200.0.0/24", "nexthop": hop}]
    assert cloud.network.find_extension("extraroute-atomic")
    seen = cloud.network.add_extra_routes_to_router(router, {"router": {"routes": routes}})
    assert routes[0] in seen.routes, seen.routes
    seen = cloud.network.remove_extra_routes_from_router(router, {"router": {"routes": routes}})
    assert routes[0] not in seen.routes, seen.routes
    group = cloud.network.create_security_group(name="walk")
    rule = {"security_group_id": group.id, "direction": "ingress", "protocol": "tcp", "remote_ip_prefix": "10.0.0.0/8"}
    cloud.network.create_security_group_rule(**rule, port_range_min=30000, port_range_max=30000)
    refused(409, cloud.network.create_security_group_rule, **rule, port_range_min=30000, port_range_max=30000)
    return subnet.id


def balancer(cloud, subnet, public):
    octavia = cloud.load_balancer
    member = {"name": "node-1", "address": "10.77.0.5", "protocol_port": 30000, "subnet_id": subnet}
    pool = {"name": "pool", "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN", "members": [member]}
    listener = {"name": "listener", "protocol": "TCP", "protocol_port": 80, "default_pool": pool}
    made = octavia.create_load_balancer(name="walk", vip_subnet_id=subnet, listeners=[listener])
    assert made.provisioning_status == "PENDING_CREATE"
    made = octavia.wait_for_load_balancer(made.id, interval=0.1, wait=120)
    assert made.operating_status == "ONLINE"
    pool = next(octavia.pools(loadbalancer_id=made.id))
    assert [found.provisioning_status for found in octavia.members(pool)] == ["ACTIVE"]
    other = {"name": "node-2", "address": "10.77.0.6", "protocol_port": 30000}
    assert octavia.put(f"/lbaas/pools/{pool.id}/members", json={"members": [other]}).status_code == 202
    octavia.wait_for_load_balancer(made.id, interval=0.1, wait=120)
    assert [found.name for found in octavia.members(pool)] == ["node-2"]
    floating = cloud.network.create_ip(floating_network_id=public, port_id=made.vip_port_id)
    assert floating.fixed_ip_address == made.vip_address
    refused(400, octavia.create_load_balancer, name="x", vip_subnet_id="00000000-0000-0000-0000-000000000000")
    octavia.delete_load_balancer(made, cascade=True)
    octavia.wait_for_delete(made, interval=0.1, wait=120)
    assert not list(octavia.pools()) and not list(octavia.listeners())
    assert cloud.network.get_ip(floating.id).port_id is None, "the port of the VIP is gone"


def volume(cloud, server):
    cinder = cloud.block_storage
    made = cinder.create_volume(name="walk", size=1, availability_zone="nova", metadata={"of": "walk"})
    assert made.status == "creating"
    made = cinder.wait_for_status(made, status="available", interval=0.1, wait=120)
    assert [found.id for found in cinder.volumes(name="walk")] == [made.id]
    cloud.compute.create_volume_attachment(server, volume_id=made.id)
    made = cinder.wait_for_status(made, status="in-use", interval=0.1, wait=120)
    assert [at["server_id"] for at in made.attachments] == [server]
    refused(400, cloud.compute.create_volume_attachment, server, volume_id=made.id)
    refused(400, cinder.delete_volume, made)
    copy = cinder.create_snapshot(volume_id=made.id, name="walk", is_forced=True)
    copy = cinder.wait_for_status(copy, status="available", interval=0.1, wait=120)
    cloud.compute.delete_volume_attachment(server, made)
    made = cinder.wait_for_status(made, status="available", interval=0.1, wait=120)
    cinder.extend_volume(made, 2)
    made = cinder.wait_for_status(cinder.get_volume(made.id), status="available", interval=0.1, wait=120)
    assert made.size == 2
    cinder.delete_snapshot(copy)
    cinder.wait_for_delete(copy, interval=0.1, wait=120)
    cinder.delete_volume(made)
    cinder.wait_for_delete(made, interval=0.1, wait=120)
    refused(404, cinder.get_volume, made.id)
    refused(413, cinder.create_volume, name="walk", size=1001)


def refused(status, call, *arguments, **named):
    try:
        answer = call(*arguments, **named)
        assert getattr(answer, "status_code", None) == status, answer
    except exceptions.HttpException as error:
        assert error.status_code == status, error
    except client_exceptions.HttpError as error:
        # Of the part of the SDK that gets tokens.
        assert error.http_status == status, error


if __name__ == "__main__":
    main(*sys.argv[1:])
