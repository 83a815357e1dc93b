"""Baidu's own SDK works against the stand-in. `python -m baidu.judge URL` says as JSON what it saw."""

import json
import sys
import urllib.request

from baidubce.auth.bce_credentials import BceCredentials
from baidubce.bce_client_configuration import BceClientConfiguration
from baidubce.exception import BceError, BceHttpClientError
from baidubce.retry.retry_policy import NoRetryPolicy
from baidubce.services.bcc.bcc_client import BccClient
from baidubce.services.blb.blb_client import BlbClient
from baidubce.services.eip.eip_client import EipClient
from baidubce.services.eip.model import Billing
from baidubce.services.route.route_client import RouteClient


def control(url, what, **arguments):
    request = urllib.request.Request(f"{url}/test/{what}", json.dumps(arguments.pop("body", arguments)).encode(), method="POST")
    with urllib.request.urlopen(request) as answer:
        return json.load(answer).get("result")


def client(kind, url, account, **more):
    keys = {"key": account["key"], "secret": account["secret"]} | more
    credentials = BceCredentials(keys["key"], keys["secret"])
    return kind(BceClientConfiguration(credentials=credentials, endpoint=url, retry_policy=NoRetryPolicy()))


def refused(call):
    """Status and code of a refusal."""
    try:
        call()
    except BceHttpClientError as error:
        cause = error.last_error
        return [cause.status_code, cause.code]
    except BceError as error:
        return [type(error).__name__, str(error)]
    return None


def machines(url, account):
    control(url, "do/add_machines", prefix="judged", count=1100)
    bcc, marker, ids = client(BccClient, url, account), None, []
    pages = 0
    while True:
        page = bcc.list_instances(marker=marker, max_keys=500)
        pages += 1
        ids += [one.id for one in page.instances]
        if not page.is_truncated:
            break
        marker = page.next_marker
    one = bcc.get_instance(ids[7]).instance
    return ids, {
        "pages": pages, "machines": len(set(ids)), "one": [one.name, one.status, one.zone_name, one.spec, one.vpc_id == account["vpc"]],
        "missing": refused(lambda: bcc.get_instance("i-nothere1")), "size": refused(lambda: bcc.list_instances(max_keys=1001)),
    }


def balancers(url, account, ids):
    # Nothing is done before the test says so.
    control(url, "do/operations_take", seconds=3600)
    done = lambda: control(url, "do/finish")
    blb, eip = client(BlbClient, url, account), client(EipClient, url, account)
    made = blb.create_loadbalancer(vpc_id=account["vpc"], subnet_id=account["subnet"], name="CCE/SVC/judged", desc="a b/c*", client_token="t-1")
    id = made.blb_id
    status = lambda: blb.describe_loadbalancers(blb_id=id, exactly_match="true").blb_list[0].status
    first = status()
    early = refused(lambda: blb.create_tcp_listener(id, 80, 30080, "RoundRobin"))
    done()
    then = status()
    blb.create_tcp_listener(id, 80, 30080, "RoundRobin")
    during, unseen = status(), len(blb.describe_tcp_listener(id).listener_list)
    done()
    blb.create_udp_listener(id, 53, 30053, "Hash", health_check_string="HealthCheck")
    done()
    again = refused(lambda: blb.create_tcp_listener(id, 80, 30081, "RoundRobin"))
    odd = refused(lambda: blb.create_tcp_listener(id, 81, 30081, "Fair"))
    blb.update_tcp_listener(id, 80, backend_port=30090, health_threshold=5)
    done()
    tcp, udp = blb.describe_tcp_listener(id).listener_list[0], blb.describe_udp_listener(id).listener_list[0]
    blb.add_backend_servers(id, [{"instanceId": one, "weight": 100} for one in ids[:3]])
    done()
    twice = refused(lambda: blb.add_backend_servers(id, [{"instanceId": ids[0], "weight": 100}]))
    nobody = refused(lambda: blb.add_backend_servers(id, [{"instanceId": "i-nothere1", "weight": 100}]))
    many = refused(lambda: blb.add_backend_servers(id, [{"instanceId": one, "weight": 100} for one in ids[3:60]]))
    blb.remove_backend_servers(id, [ids[2]])
    done()
    behind = len(blb.describe_backend_servers(id).backend_server_list)
    ip = eip.create_eip(10, name="judged", billing=Billing("Postpaid", "ByTraffic")).eip
    shown = lambda: eip.list_eips(eip=ip).eip_list[0]
    creating = shown().status
    soon = refused(lambda: eip.bind_eip(ip, "BLB", id))
    done()
    eip.bind_eip(ip, "BLB", id)
    binding = shown().status
    done()
    public = blb.describe_loadbalancer_detail(id).public_ip == ip
    eip.resize_eip(ip, 20)
    done()
    bandwidth, held = shown().bandwidth_in_mbps, refused(lambda: eip.release_eip(ip))
    bound = refused(lambda: blb.delete_loadbalancer(id))
    eip.unbind_eip(ip)
    done()
    eip.release_eip(ip)
    blb.delete_listeners(id, port_type_list=[{"port": 53, "type": "UDP"}])
    done()
    left = [len(blb.describe_tcp_listener(id).listener_list), len(blb.describe_udp_listener(id).listener_list)]
    blb.delete_loadbalancer(id)
    done()
    return {
        "states": [first, then, during, unseen, creating, binding], "early": early, "again": again, "odd": odd,
        "tcp": [tcp.listener_port, tcp.backend_port, tcp.scheduler, tcp.healthy_threshold, tcp.unhealthy_threshold],
        "udp": [udp.listener_port, udp.scheduler, udp.health_check_string], "twice": twice, "nobody": nobody, "many": many, "behind": behind, "soon": soon,
        "public": public, "bandwidth": bandwidth, "held": held, "bound": bound, "left": left, "gone": refused(lambda: blb.describe_tcp_listener(id)),
    }


def routes(url, account, ids):
    api = client(RouteClient, url, account)
    table = api.get_route(vpc_id=account["vpc"]).route_table_id
    rule = {"route_table_id": table, "source_address": "0.0.0.0/0", "destination_address": "172.16.0.0/24", "description": "judged"}
    made = api.create_route(next_hop_type="custom", next_hop_id=ids[0], **rule).route_rule_id
    conflict = refused(lambda: api.create_route(next_hop_type="custom", next_hop_id=ids[1], **rule))
    hops = [one.nexthop_id for one in api.get_route(route_table_id=table).route_rules if one.description == "judged"]
    api.delete_route(made)
    return {"hops": hops == [ids[0]], "conflict": conflict, "gone": refused(lambda: api.delete_route(made))}


def refusals(url, account):
    listing = lambda **more: refused(lambda: client(BccClient, url, account, **more).list_instances())
    throttled = {"requestId": "r", "code": "RequestLimitExceeded", "message": "slow down"}
    control(url, "faults", body=[{"path": "maxKeys=3", "status": 429, "value": throttled}])
    control(url, "do/deny", calls=["ListEip"])
    denied = refused(lambda: client(EipClient, url, account).list_eips())
    control(url, "do/deny", calls=[])
    return {
        "secret": listing(secret="wrong"), "key": listing(key="nobody"), "denied": denied,
        "throttled": refused(lambda: client(BccClient, url, account).list_instances(max_keys=3)),
    }


def main(url):
    account = control(url, "do/account")
    ids, seen = machines(url, account)
    print(json.dumps({
        "machines": seen, "balancers": balancers(url, account, ids), "routes": routes(url, account, ids), "refusals": refusals(url, account),
    }))


if __name__ == "__main__":
    main(*sys.argv[1:])
