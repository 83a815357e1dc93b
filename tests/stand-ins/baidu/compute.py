"""Machines, and the route table of the VPC."""

import ipaddress
import itertools

from baidu.errors import fields, missing, quota, refused, wrong

VPC = "vpc-8a3f1c2b9d4e"
SUBNET = "sbn-2f7c9a1b3d5e"
LETTERS = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"


class Ids:
    """Ids as Baidu gives them: a prefix and eight letters."""

    def __init__(self):
        self.numbers = itertools.count(1)

    def new(self, prefix):
        number, text = next(self.numbers) * 2_654_435_761 % len(LETTERS) ** 8, ""
        for _ in range(8):
            number, at = divmod(number, len(LETTERS))
            text += LETTERS[at]
        return f"{prefix}-{text}"


class Compute:
    def __init__(self, ids):
        self.ids = ids
        self.machines, self.rules = {}, {}
        self.numbers = itertools.count(1)
        self.table = "rt-5d1e7f3a9b2c"
        self.limit = None
        local = {"sourceAddress": "0.0.0.0/0", "destinationAddress": "10.0.0.0/8", "nexthopId": "", "nexthopType": "sys", "description": ""}
        self.add_rule(local)

    def add(self, name, hostname=None, status="Running", zone="cn-bj-a", spec="bcc.g5.c2m8", vpc=VPC, subnet=SUBNET, publicip="", ipv6="", ip=None):
        number = next(self.numbers)
        id = self.ids.new("i")
        self.machines[id] = {
            "id": id, "name": name, "hostname": name if hostname is None else hostname, "status": status, "zoneName": zone, "spec": spec,
            "instanceType": "N5", "internalIp": ip or f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", "publicIp": publicip, "ipv6": ipv6, "vpcId": vpc,
            "subnetId": subnet, "paymentTiming": "Postpaid", "cpuCount": 2, "memoryCapacityInGB": 8, "tags": None, "createTime": "2026-01-01T00:00:00Z",
        }
        return self.machines[id]

    def machine(self, id):
        if id not in self.machines:
            raise missing("instance", id)
        return {"instance": self.machines[id]}

    # Routes.

    def add_rule(self, rule):
        id = self.ids.new("rr")
        self.rules[id] = {"routeRuleId": id, "routeTableId": self.table, "pathType": "normal", **rule}
        return id

    def route_table(self, query):
        if query.get("vpcId") != VPC and query.get("routeTableId") != self.table:
            raise missing("vpc", query.get("vpcId"))
        return {"routeTableId": self.table, "vpcId": VPC, "name": "default", "routeRules": list(self.rules.values())}

    def create_rule(self, body):
        needed = "routeTableId sourceAddress destinationAddress nexthopType"
        rule = fields(body, needed, "nexthopId description")
        if rule["routeTableId"] != self.table:
            raise missing("route table", rule["routeTableId"])
        try:
            for name in ("sourceAddress", "destinationAddress"):
                ipaddress.IPv4Network(rule[name])
        except ValueError as error:
            raise wrong(str(error)) from error
        if rule["nexthopType"] == "custom" and rule.get("nexthopId") not in self.machines:
            raise missing("instance", rule.get("nexthopId"))
        same = lambda one: all(one[name] == rule[name] for name in ("sourceAddress", "destinationAddress"))
        if any(same(one) for one in self.rules.values()):
            raise refused(409, "RouteRuleConflict", "The route rule conflicts with another one.")
        if self.limit is not None and len(self.rules) >= self.limit:
            raise quota("RouteRule")
        return {"routeRuleId": self.add_rule({"description": "", "nexthopId": "", **rule})}

    def delete_rule(self, id):
        if self.rules.pop(id, None) is None:
            raise missing("route rule", id)
