"""Which commands there are, which parameters each takes, and which of those it needs (CloudStack's API reference, 4.22)."""

LIST = "account domainid isrecursive keyword listall page pagesize projectid fordisplay tags"

# Needed parameters before the bar.
COMMANDS = {
    "listCapabilities": " | ",
    "listVirtualMachines": f" | {LIST} id ids name state zoneid networkid vpcid details",
    "listNetworks": f" | {LIST} id vpcid zoneid supportedservices networkfilter",
    "listPublicIpAddresses": f" | {LIST} id ipaddress allocatedonly associatednetworkid vpcid state forloadbalancing issourcenat isstaticnat forvirtualnetwork",
    "associateIpAddress": " | account domainid projectid ipaddress networkid vpcid zoneid isportable regionid fordisplay",
    "disassociateIpAddress": "id | ipaddress",
    "listLoadBalancerRules": f" | {LIST} id name publicipid networkid virtualmachineid zoneid",
    "createLoadBalancerRule": (
        "algorithm name privateport publicport | account domainid cidrlist description fordisplay networkid openfirewall protocol publicipid zoneid"
    ),
    "updateLoadBalancerRule": "id | algorithm cidrlist customid description fordisplay name protocol",
    "deleteLoadBalancerRule": "id | ",
    "listLoadBalancerRuleInstances": "id | applied keyword lbvmips page pagesize",
    "assignToLoadBalancerRule": "id | virtualmachineids vmidipmap",
    "removeFromLoadBalancerRule": "id | virtualmachineids vmidipmap",
    "listFirewallRules": f" | {LIST} id ipaddressid networkid",
    "createFirewallRule": "ipaddressid protocol | cidrlist startport endport fordisplay icmpcode icmptype type",
    "deleteFirewallRule": "id | ",
    # Asked for by Apache Libcloud beside machines.
    "listPortForwardingRules": f" | {LIST} id ipaddressid networkid",
    "listIpForwardingRules": f" | {LIST} id ipaddressid virtualmachineid",
    "listNetworkACLLists": f" | {LIST} id name networkid vpcid",
    "listNetworkACLs": f" | {LIST} id aclid action networkid protocol traffictype",
    "createNetworkACL": "protocol | aclid action cidrlist endport fordisplay icmpcode icmptype networkid number reason startport traffictype",
    "deleteNetworkACL": "id | ",
    "createTags": "resourceids resourcetype tags | customer",
    "queryAsyncJobResult": "jobid | resourceid resourcetype",
}

OF_ALL = {"command", "apikey", "response", "signature", "signatureversion", "expires"}


def known(command):
    """Needed parameters, and all."""
    needed, _, others = COMMANDS[command].partition("|")
    needed = set(needed.split())
    return needed, needed | set(others.split())
