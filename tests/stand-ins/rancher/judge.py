"""Rancher's own client for Python, `cattle`, works against the stand-in: it knows no resource by itself, and finds all methods, lists, links and actions in the schema
documents. `python -m rancher.judge URL` says as JSON what it saw; with `shown`, the load balancers that there are."""

import json
import sys
import urllib.request

import cattle
from cattle import ApiError, ClientApiError

STACK = {"name": "kubernetes-loadbalancers", "externalId": "kubernetes-loadbalancers://"}


def control(url, what, **arguments):
    request = urllib.request.Request(f"{url}/test/do/{what}", json.dumps(arguments).encode(), method="POST")
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["result"]


def client(url, path="/v2-beta/projects/1a5", **more):
    account = control(url, "account")
    options = {"access_key": account["user"], "secret_key": account["password"], "strict": True} | more
    return cattle.Client(url=f"{url}{path}", headers={"Accept": "application/json", "User-Agent": "cattle"}, **options)


def refused(call):
    try:
        call()
    except ApiError as error:
        return [error.error.status, error.error.code, getattr(error.error, "fieldName", None)]
    except ClientApiError as error:
        return str(error)
    return None


def hosts(url, api):
    """By pages, filters, links and actions."""
    control(url, "add_machines", prefix="judged", count=120)
    made = control(url, "add_machine", name="two.example.com", ips=["10.7.7.7", "10.7.7.8"], labels={"io.rancher.host.zone": "z"})
    page, names = api.list_host(removed_null=1, limit=50), []
    sizes = []
    while True:
        sizes.append(len(page.data))
        names += [host.hostname for host in page.data]
        if page.pagination.next is None:
            break
        page = page.next()
    one = api.list_host(uuid=made["id"], include="ipAddresses").data[0]
    included, linked = [ip.address for ip in one.ipAddresses], [ip.address for ip in api.by_id_host(one.id).ipAddresses().data]
    one = api.wait_success(one.deactivate())
    state, actions = one.state, sorted(vars(one.actions))
    api.wait_success(api.delete(one))
    return {
        "pages": sizes, "different": len(set(names)), "included": included, "linked": linked,
        "zone": vars(one.labels)["io.rancher.host.zone"], "off": [state, "remove" in actions, "deactivate" in actions],
        "left": len(api.list_host(uuid=made["id"]).data), "removed": api.by_id_host(one.id).state, "missing": api.by_id_host("1h99999"),
    }


def balancer(url, api):
    """A stack, an external service and a load balancer from their beginning to their end."""
    control(url, "operations_take", seconds=0.1)
    stack = api.wait_success(api.create_stack(**STACK))
    named = {"stackId": stack.id, "removed_null": 1}
    outside = api.create_externalService(name="node-1", stackId=stack.id, externalIpAddresses=["10.6.0.1"], metadata={"cloudwit": "node"})
    early = outside.state
    outside = api.wait_success(api.wait_success(outside).activate())
    rule = {"sourcePort": 80, "targetPort": 30080, "serviceId": outside.id, "protocol": "tcp"}
    launch = {"ports": ["80:80/tcp"], "imageUuid": f"docker:{api.list_setting(name='lb.instance.image').data[0].value}"}
    made = {"name": "lb-judged", "stackId": stack.id, "launchConfig": launch}
    balancer = api.wait_success(api.create_loadBalancerService(**made, lbConfig={"portRules": [rule]}))
    switched_off = [balancer.state, balancer.publicEndpoints, balancer.transitioning]
    balancer = api.wait_success(balancer.activate())
    again = refused(lambda: api.action(balancer, "setservicelinks", serviceLinks=[{"serviceId": outside.id}, {"serviceId": outside.id}]))
    changed = api.wait_success(api.update(balancer, lbConfig={"portRules": [rule | {"targetPort": 30081}]}))
    behind = [[one.name for one in balancer.consumedservices().data], [one.name for one in outside.consumedbyservices().data]]
    twice = refused(lambda: api.create_loadBalancerService(**made, lbConfig={"portRules": []}))
    odd = lambda **fields: refused(lambda: api.create_loadBalancerService(**(made | {"name": "odd"}) | fields))
    refusals = {
        "rules": odd(), "stack": odd(lbConfig={}, stackId="1st999"), "reserved": odd(lbConfig={"portRules": [rule | {"sourcePort": 42}]}),
        "service": odd(lbConfig={"portRules": [rule | {"serviceId": "1s999"}]}), "port": odd(lbConfig={"portRules": [rule | {"sourcePort": 70000}]}),
        "name": odd(lbConfig={}, name="a.b"), "field": odd(lbConfig={}, nmae="x"), "kind": odd(lbConfig=[]), "state": odd(lbConfig={}, state="active"),
    }
    api.wait_success(api.delete(outside))
    unlinked = len(balancer.consumedservices().data)
    api.wait_success(api.delete(changed))
    return {
        "early": early, "off": switched_off, "on": [balancer.state, [[point.ipAddress, point.port] for point in balancer.publicEndpoints]],
        "again": again, "changed": changed.lbConfig.portRules[0].targetPort, "behind": behind, "twice": twice, "refusals": refusals, "unlinked": unlinked,
        "left": [len(api.list_loadBalancerService(**named).data), len(api.list_externalService(**named).data), len(api.list_stack(name=STACK["name"]).data)],
    }


def main(url, what="all"):
    api = client(url)
    if what == "shown":
        named = {one.id: [one.name, one.externalIpAddresses] for one in api.list_externalService(removed_null=1).data}
        rule = lambda one: [one.sourcePort, one.targetPort, *named[one.serviceId]]
        shown = {one.name: [one.launchConfig.ports, sorted(rule(of) for of in one.lbConfig.portRules), one.state] for one in api.list_loadBalancerService(removed_null=1).data}
        print(json.dumps(shown))
        return
    seen = {"types": len(api.schema.types), "hosts": hosts(url, api), "balancer": balancer(url, api)}
    seen["refused"] = {
        "secret": refused(lambda: client(url, secret_key="wrong")), "project": refused(lambda: client(url, "/v2-beta/projects/1a99")),
        "filter": refused(lambda: api.list_host(nmae="x")), "empty": len(client(url, "/v2-beta/projects/1a7").list_host().data),
        "delete": hasattr(api, "create_setting"),
    }
    print(json.dumps(seen))


if __name__ == "__main__":
    main(*sys.argv[1:])
