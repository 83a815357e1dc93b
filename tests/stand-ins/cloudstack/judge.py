"""Two clients of others work against the stand-in, each with its own signer: cs, and Apache Libcloud. `python -m cloudstack.judge URL` says as JSON what
they saw."""

import json
import sys
import urllib.request
from datetime import timedelta

from cs import CloudStack, CloudStackApiException
from libcloud.common.types import InvalidCredsError, ProviderError
from libcloud.compute.drivers.cloudstack import CloudStackNodeDriver
from libcloud.loadbalancer.drivers.cloudstack import CloudStackLBDriver

TOO_MANY = "The given user has reached his/her account api limit, please retry after 1500 ms."


def control(url, what, **arguments):
    request = urllib.request.Request(f"{url}/test/{what}", json.dumps(arguments.pop("body", arguments)).encode(), method="POST")
    with urllib.request.urlopen(request) as answer:
        return json.load(answer).get("result")


def refused(call):
    try:
        call()
    except CloudStackApiException as error:
        return [error.response.status_code, error.error["errorcode"], error.error["errortext"][:40]]
    return None


def client(url, account, **more):
    options = {"key": account["key"], "secret": account["secret"], "poll_interval": 0.05, "headers": {"user-agent": "cs"}} | more
    return CloudStack(endpoint=f"{url}/client/api", **options)


def by_cs(url, account):
    """An address, a rule with machines, what lets traffic in; and all of it deleted again."""
    api, post = client(url, account), client(url, account, method="post")
    project, network = account["project"], account["network"]
    control(url, "do/operations_take", seconds=0.2)
    control(url, "do/add_machines", prefix="judged", count=1100)
    machines = api.listVirtualMachines(projectid=project, details=["min", "nics", "servoff"], fetch_list=True)
    named = api.listVirtualMachines(projectid=project, name="judged-109")["virtualmachine"]
    address = post.associateIpAddress(networkid=network, projectid=project, fetch_result=True)["ipaddress"]
    post.createTags(resourceids=[address["id"]], resourcetype="PublicIpAddress", tags={"key": "who", "value": "a b/c*"}, fetch_result=True)
    tagged = api.listPublicIpAddresses(projectid=project, tags={"key": "who", "value": "a b/c*"})["publicipaddress"]
    rule = {"name": "judged", "algorithm": "roundrobin", "privateport": 30080, "publicport": 80, "publicipid": address["id"], "networkid": network}
    # The job is not done before it was looked at.
    control(url, "do/operations_take", seconds=3600)
    made = post.createLoadBalancerRule(**rule, protocol="tcp-proxy", cidrlist=["10.0.0.0/8", "192.0.2.0/24"], openfirewall=False)
    during = api.queryAsyncJobResult(jobid=made["jobid"])["jobstatus"]
    control(url, "do/operations_take", seconds=0.2)
    control(url, "do/finish")
    clash = refused(lambda: post.createLoadBalancerRule(**rule, protocol="tcp"))
    post.assignToLoadBalancerRule(id=made["id"], virtualmachineids=[machines[0]["id"], machines[1]["id"]], fetch_result=True)
    again = refused(lambda: post.assignToLoadBalancerRule(id=made["id"], virtualmachineids=[machines[0]["id"]], fetch_result=True))
    shown = api.listLoadBalancerRules(projectid=project, keyword="JUDGE")["loadbalancerrule"][0]
    behind = api.listLoadBalancerRuleInstances(id=made["id"])["loadbalancerruleinstance"]
    wall = {"ipaddressid": address["id"], "protocol": "tcp", "startport": 80, "endport": 80}
    opened = post.createFirewallRule(**wall, cidrlist="10.0.0.0/8", fetch_result=True)["firewallrule"]
    overlaps = refused(lambda: post.createFirewallRule(**wall, cidrlist="10.1.0.0/16"))
    control(url, "do/fail_jobs", command="deleteLoadBalancerRule", code=530, text="the router is away")
    failed = refused(lambda: post.deleteLoadBalancerRule(id=made["id"], fetch_result=True))
    wanted = refused(lambda: api.deleteLoadBalancerRule(id="nothing"))
    post.disassociateIpAddress(id=address["id"], fetch_result=True)
    return {
        "machines": len(machines), "details": [machines[0]["serviceofferingname"], machines[0]["nic"][0]["networkid"] == network], "named": len(named),
        "state": address["state"], "tagged": len(tagged), "during": during, "clash": clash, "again": again,
        "shown": [shown["state"], shown["protocol"], shown["cidrlist"]], "behind": len(behind), "opened": opened["state"], "overlaps": overlaps,
        "failed": failed, "missing": wanted, "after": api.listLoadBalancerRules(projectid=project, keyword="judged"),
    }


def refusals(url, account):
    api, wrong = client(url, account), client(url, account, secret="wrong")
    machines = lambda api, **more: refused(lambda: api.listVirtualMachines(**more))
    control(url, "faults", body=[{"body": "listZones", "status": 429, "value": {"listzonesresponse": {"errorcode": 429, "errortext": TOO_MANY}}}])
    return {
        "secret": machines(wrong), "key": machines(client(url, account, key="nobody")),
        "expired": machines(api, expires="2020-01-01T00:00:00+0000", signatureVersion="3"),
        "unsigned_end": machines(client(url, account, expiration=timedelta(seconds=-1)), page=1),
        "unknown_id": machines(api, id="0b3a6a5c-5f0e-4c3e-9d5f-1a2b3c4d5e6f"), "page": machines(api, page=1, pagesize=501),
        "command": refused(lambda: api.listNothing()), "parameter": machines(api, nmae="x"),
        "throttled": refused(lambda: client(url, account, method="post").listZones()),
        "missing": refused(lambda: api.createFirewallRule(protocol="tcp")),
    }


def by_libcloud(url, account):
    """The account beside the project. Libcloud signs without an end, and asks by GET."""
    host, port = url.removeprefix("http://").split(":")
    where = {"secure": False, "host": host, "port": int(port), "path": "/client/api"}
    control(url, "do/add_machine", name="other", project="none")
    nodes = CloudStackNodeDriver(account["key"], account["secret"], **where).list_nodes()
    api = client(url, account)
    address = api.associateIpAddress(networkid=account["network"], fetch_result=True)["ipaddress"]
    api.createLoadBalancerRule(
        name="libcloud", algorithm="roundrobin", privateport=30080, publicport=80, publicipid=address["id"], networkid=account["network"], fetch_result=True,
    )
    balancers = CloudStackLBDriver(account["key"], account["secret"], **where)
    balancers.connection.poll_interval = 0.05
    balancer = balancers.list_balancers()[0]
    balancers.balancer_attach_member(balancer, type("Member", (), {"id": nodes[0].id}))
    members = [member.ip for member in balancers.balancer_list_members(balancer)]
    opened = len(api.listFirewallRules(ipaddressid=address["id"])["firewallrule"])
    balancers.destroy_balancer(balancer)
    try:
        CloudStackLBDriver(account["key"], "wrong", **where).list_balancers()
        credentials = "taken"
    except (InvalidCredsError, ProviderError) as error:
        credentials = type(error).__name__
    return {
        "nodes": [[node.name, node.state, node.private_ips] for node in nodes], "balancer": [balancer.name, balancer.ip == address["ipaddress"], balancer.port],
        "members": members, "opened": opened, "left": len(balancers.list_balancers()), "credentials": credentials,
    }


def shown(url, account):
    """The load balancer rules that there are, as cs reads them."""
    api = client(url, account)
    rules = api.listLoadBalancerRules(projectid=account["project"], fetch_list=True)
    behind = lambda rule: api.listLoadBalancerRuleInstances(id=rule["id"]).get("loadbalancerruleinstance", [])
    return {
        rule["name"]: [rule["protocol"], rule["publicport"], rule["privateport"], rule["publicip"], sorted(one["name"] for one in behind(rule))]
        for rule in rules
    }


def main(url, what="all"):
    account = control(url, "do/account")
    if what == "shown":
        print(json.dumps(shown(url, account)))
        return
    print(json.dumps({"cs": by_cs(url, account), "refusals": refusals(url, account), "libcloud": by_libcloud(url, account)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
