"""Alibaba Cloud's two SDKs on the stand-in: the older one signs RPC calls by HMAC-SHA1, the newer one requests by ACS3-HMAC-SHA256."""

import json
import sys
import time
import urllib.request

from alibabacloud_ecs20140526 import models as ecs
from alibabacloud_ecs20140526.client import Client as Ecs
from alibabacloud_nlb20220430 import models as nlb
from alibabacloud_nlb20220430.client import Client as Nlb
from alibabacloud_slb20140515 import models as slb
from alibabacloud_slb20140515.client import Client as Slb
from alibabacloud_tea_openapi.utils_models import Config
from alibabacloud_vpc20160428 import models as vpc
from alibabacloud_vpc20160428.client import Client as Vpc
from aliyunsdkcore.acs_exception.exceptions import ServerException
from aliyunsdkcore.client import AcsClient
from aliyunsdkcore.request import CommonRequest
from aliyunsdkecs.request.v20140526.DescribeInstancesRequest import DescribeInstancesRequest

REGION = "cn-hangzhou"


def control(url, what, method="POST", body=None):
    request = urllib.request.Request(f"{url}/test/{what}", json.dumps(body or {}).encode() if method != "GET" else None, {"x-of-tests": "1"}, method=method)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer).get("result")


def newer(kind, url, account, secret=None, key=None, token=None):
    host = url.removeprefix("http://")
    config = Config(access_key_id=key or account["key"], access_key_secret=secret or account["secret"], endpoint=host, protocol="http", region_id=REGION)
    config.security_token = token
    return kind(config)


def refused(call):
    try:
        call()
        return None
    except Exception as error:
        return getattr(error, "code", None) or type(error).__name__


def by_the_older(url, account):
    def client(secret=account["secret"], key=account["key"]):
        made = AcsClient(key, secret, REGION, auto_retry=False)
        return made

    def sent(request, client):
        request.set_endpoint(url.removeprefix("http://"))
        request.set_protocol_type("http")
        return json.loads(client.do_action_with_exception(request))

    def common(version, action, **parameters):
        request = CommonRequest()
        request.set_domain(url.removeprefix("http://"))
        request.set_protocol_type("http")
        request.set_version(version)
        request.set_action_name(action)
        request.set_method("POST")
        for name, value in parameters.items():
            request.add_query_param(name, value)
        return json.loads(client().do_action_with_exception(request))

    def code(call):
        try:
            call()
            return None
        except ServerException as error:
            return [error.get_http_status(), error.get_error_code()]

    page, seen = DescribeInstancesRequest(), 0
    page.set_MaxResults(100)
    while True:
        answer = sent(page, client())
        seen += len(answer["Instances"]["Instance"])
        if not answer["NextToken"]:
            break
        page = DescribeInstancesRequest()
        page.set_MaxResults(100)
        page.set_NextToken(answer["NextToken"])
    made = common("2014-05-15", "CreateLoadBalancer", RegionId=REGION, LoadBalancerName="by the older one *~", AddressType="internet")
    found = common("2014-05-15", "DescribeLoadBalancers", RegionId=REGION, LoadBalancerName="by the older one *~")
    common("2014-05-15", "DeleteLoadBalancer", RegionId=REGION, LoadBalancerId=made["LoadBalancerId"])
    control(url, "faults", body=[{"status": 400, "value": {"Code": "Throttling.User", "Message": "Request was denied due to user flow control."}}])
    return {
        "machines": seen, "found": found["TotalCount"], "throttled": code(lambda: sent(DescribeInstancesRequest(), client())),
        "secret": code(lambda: sent(DescribeInstancesRequest(), client(secret="wrong"))), "key": code(lambda: sent(DescribeInstancesRequest(), client(key="nobody"))),
        "action": code(lambda: common("2014-05-26", "DescribeNothing")), "parameter": code(lambda: common("2014-05-26", "DescribeInstances", Nmae="x")),
    }


def waited(client, job):
    for _ in range(200):
        status = client.get_job_status(nlb.GetJobStatusRequest(job_id=job)).body.status
        if status != "processing":
            return status
        time.sleep(0.02)
    return "never"


def by_the_newer(url, account, machines):
    ecs_client, slb_client, vpc_client = (newer(kind, url, account) for kind in (Ecs, Slb, Vpc))
    by_id = ecs_client.describe_instances(ecs.DescribeInstancesRequest(region_id=REGION, instance_ids=json.dumps([machines[0], "i-none"]), max_results=100)).body
    made = slb_client.create_load_balancer(slb.CreateLoadBalancerRequest(
        region_id=REGION, load_balancer_name="judged", address_type="internet", instance_charge_type="PayByCLCU", client_token="1",
        tag=[slb.CreateLoadBalancerRequestTag(key="who", value="a b/c*")],
    )).body
    id = made.load_balancer_id
    again = slb_client.create_load_balancer(slb.CreateLoadBalancerRequest(region_id=REGION, client_token="1")).body.load_balancer_id
    tags = [slb.DescribeLoadBalancersRequestTag(key="who", value="a b/c*")]
    tagged = slb_client.describe_load_balancers(slb.DescribeLoadBalancersRequest(region_id=REGION, tag=tags)).body
    servers = json.dumps([{"ServerId": machine, "Port": "30080", "Weight": "100", "Type": "ecs"} for machine in machines[:2]])
    group = slb_client.create_vserver_group(slb.CreateVServerGroupRequest(
        region_id=REGION, load_balancer_id=id, vserver_group_name="g", backend_servers=servers,
    )).body.vserver_group_id
    slb_client.create_load_balancer_tcplistener(slb.CreateLoadBalancerTCPListenerRequest(
        region_id=REGION, load_balancer_id=id, listener_port=80, bandwidth=-1, vserver_group_id=group, health_check_interval=7, scheduler="rr",
    ))
    slb_client.start_load_balancer_listener(slb.StartLoadBalancerListenerRequest(
        region_id=REGION, load_balancer_id=id, listener_port=80, listener_protocol="tcp",
    ))
    listeners = slb_client.describe_load_balancer_listeners(slb.DescribeLoadBalancerListenersRequest(region_id=REGION, load_balancer_id=[id])).body
    shown = listeners.listeners[0]
    clash = refused(lambda: slb_client.create_load_balancer_httplistener(slb.CreateLoadBalancerHTTPListenerRequest(
        region_id=REGION, load_balancer_id=id, listener_port=80, sticky_session="off", health_check="off", vserver_group_id=group,
    )))
    in_use = refused(lambda: slb_client.delete_vserver_group(slb.DeleteVServerGroupRequest(region_id=REGION, vserver_group_id=group)))
    slb_client.delete_load_balancer(slb.DeleteLoadBalancerRequest(region_id=REGION, load_balancer_id=id))
    gone = refused(lambda: slb_client.delete_load_balancer(slb.DeleteLoadBalancerRequest(region_id=REGION, load_balancer_id=id)))

    table = vpc_client.describe_route_table_list(vpc.DescribeRouteTableListRequest(region_id=REGION, vpc_id=account["vpc"])).body
    table = table.router_table_list.router_table_list_type[0].route_table_id
    entry = lambda hop: vpc.CreateRouteEntriesRequestRouteEntries(dst_cidr_block="10.9.0.0/24", next_hop=hop, next_hop_type="Instance", route_table_id=table)
    created = vpc_client.create_route_entries(vpc.CreateRouteEntriesRequest(region_id=REGION, route_entries=[entry(machines[0]), entry(machines[1])])).body
    routes = vpc_client.describe_route_entry_list(vpc.DescribeRouteEntryListRequest(region_id=REGION, route_table_id=table, max_result=100)).body
    hop = routes.route_entrys.route_entry[0].next_hops.next_hop[0].next_hop_id
    old = vpc.DeleteRouteEntriesRequestRouteEntries(dst_cidr_block="10.9.0.0/24", next_hop=machines[0], route_table_id=table)
    deleted = vpc_client.delete_route_entries(vpc.DeleteRouteEntriesRequest(region_id=REGION, route_entries=[old])).body
    return {
        "by_id": by_id.total_count, "name": by_id.instances.instance[0].instance_name, "again": again == id, "tagged": tagged.total_count,
        "charge": tagged.load_balancers.load_balancer[0].internet_charge_type_alias, "status": shown.status,
        "interval": shown.tcplistener_config.health_check_interval, "clash": clash, "in_use": in_use, "gone": gone,
        "routes": [created.success_count, created.failed_route_entries[0].failed_code, hop == machines[0], deleted.success_count],
    }


def network_balancers(url, account, machines):
    # Nothing is done before the test says so.
    control(url, "do/operations_take", body={"seconds": 3600})
    done = lambda: control(url, "do/finish")
    client = newer(Nlb, url, account)
    zones = [nlb.CreateLoadBalancerRequestZoneMappings(zone_id=f"{REGION}-{zone}", v_switch_id=f"vsw-{zone}") for zone in "gh"]
    id = client.create_load_balancer(nlb.CreateLoadBalancerRequest(
        region_id=REGION, address_type="Internet", vpc_id=account["vpc"], zone_mappings=zones, load_balancer_name="judged",
        tag=[nlb.CreateLoadBalancerRequestTag(key="who", value="judge")],
    )).body.loadbalancer_id
    listed = lambda: client.list_load_balancers(nlb.ListLoadBalancersRequest(region_id=REGION, tag=[nlb.ListLoadBalancersRequestTag(key="who", value="judge")])).body
    first = listed().load_balancers[0].load_balancer_status
    done()
    group = client.create_server_group(nlb.CreateServerGroupRequest(
        region_id=REGION, server_group_name="g", vpc_id=account["vpc"], health_check_config=nlb.CreateServerGroupRequestHealthCheckConfig(health_check_interval=7),
    )).body
    done()
    waits = [waited(client, group.job_id)]
    server = nlb.AddServersToServerGroupRequestServers(server_id=machines[0], server_type="Ecs", port=30080, weight=100)
    added = client.add_servers_to_server_group(nlb.AddServersToServerGroupRequest(region_id=REGION, server_group_id=group.server_group_id, servers=[server])).body
    adding = client.list_server_group_servers(nlb.ListServerGroupServersRequest(region_id=REGION, server_group_id=group.server_group_id)).body.servers[0].status
    locked = refused(lambda: client.update_server_group_attribute(nlb.UpdateServerGroupAttributeRequest(
        region_id=REGION, server_group_id=group.server_group_id, scheduler="rr",
    )))
    done()
    waits.append(waited(client, added.job_id))
    listener = client.create_listener(nlb.CreateListenerRequest(
        region_id=REGION, load_balancer_id=id, listener_port=80, listener_protocol="TCP", server_group_id=group.server_group_id,
    )).body
    done()
    waits.append(waited(client, listener.job_id))
    status = client.list_listeners(nlb.ListListenersRequest(region_id=REGION, load_balancer_ids=[id])).body.listeners[0].listener_status
    check = client.list_server_groups(nlb.ListServerGroupsRequest(region_id=REGION)).body.server_groups[0].health_check.health_check_interval
    in_use = refused(lambda: client.delete_server_group(nlb.DeleteServerGroupRequest(region_id=REGION, server_group_id=group.server_group_id)))
    control(url, "do/fail_jobs", body={"action": "DeleteLoadBalancer"})
    ends = []
    for _ in range(2):
        job = client.delete_load_balancer(nlb.DeleteLoadBalancerRequest(region_id=REGION, load_balancer_id=id)).body.job_id
        done()
        ends.append(waited(client, job))
    control(url, "do/operations_take", body={"seconds": 0})
    return {
        "first": first, "waits": waits, "adding": adding, "locked": locked, "status": status, "check": check, "in_use": in_use, "ends": ends,
        "left": listed().total_count,
    }


def refusals(url, account):
    machines = lambda **how: refused(lambda: newer(Ecs, url, account, **how).describe_instances(ecs.DescribeInstancesRequest(region_id=REGION)))
    size = refused(lambda: newer(Ecs, url, account).describe_instances(ecs.DescribeInstancesRequest(region_id=REGION, max_results=101)))
    return {"secret": machines(secret="wrong"), "key": machines(key="nobody"), "token": machines(token="of somebody"), "size": size}


def main(url):
    account = control(url, "do/account")
    machines = control(url, "do/add_machines", body={"prefix": "judged", "count": 250})
    print(json.dumps({
        "older": by_the_older(url, account), "newer": by_the_newer(url, account, machines), "network": network_balancers(url, account, machines),
        "refusals": refusals(url, account),
    }))


if __name__ == "__main__":
    main(*sys.argv[1:])
