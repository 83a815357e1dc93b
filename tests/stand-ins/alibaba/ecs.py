"""Instances."""

import fnmatch
import json

from alibaba.errors import gone, wrong
from frame import page

SIZE = 100


def paged(items, size, token, most=SIZE):
    size = int(size or 10)
    if not 1 <= size <= most:
        raise wrong(f"The page size {size} is out of range.", "InvalidParameter.MaxResults")
    try:
        return page(items, token, size)
    except ValueError as error:
        raise wrong(str(error), "InvalidParameter.NextToken") from error


class Ecs:
    def __init__(self):
        self.all = {}
        self.number = 0

    def add(self, name, region, zone, vpc, kind="ecs.g7.large", status="Running", eip="", public=(), ipv6=None, ip=None):
        self.number += 1
        id = f"i-bp1{self.number:017x}"
        ip = ip or f"10.{self.number >> 16}.{self.number >> 8 & 255}.{self.number & 255}"
        v6 = [{"Ipv6Address": ipv6}] if ipv6 else []
        self.all[id] = {
            "InstanceId": id, "InstanceName": name, "HostName": name, "Status": status, "InstanceType": kind, "ZoneId": zone, "RegionId": region,
            "InstanceNetworkType": "vpc", "PublicIpAddress": {"IpAddress": list(public)}, "InnerIpAddress": {"IpAddress": []},
            "EipAddress": {"IpAddress": eip, "AllocationId": "eip-1" if eip else ""},
            "VpcAttributes": {"VpcId": vpc, "VSwitchId": "vsw-1", "PrivateIpAddress": {"IpAddress": [ip]}, "NatIpAddress": ""},
            "NetworkInterfaces": {"NetworkInterface": [{"Type": "Primary", "NetworkInterfaceId": f"eni-{self.number}", "PrimaryIpAddress": ip,
                                                        "Ipv6Sets": {"Ipv6Set": v6}}]},
        }
        return {"id": id, "ip": ip}

    def get(self, id):
        if id not in self.all:
            raise gone("InvalidInstanceId.NotFound", id)
        return self.all[id]

    def describe(self, RegionId, InstanceIds=None, PrivateIpAddresses=None, InstanceNetworkType=None, VpcId=None, InstanceName=None, MaxResults=10,
                 NextToken=None, AdditionalAttributes=()):
        found = [one for one in self.all.values() if one["RegionId"] == RegionId]
        ips = lambda one: one["VpcAttributes"]["PrivateIpAddress"]["IpAddress"]
        for name, text in (("InstanceIds", InstanceIds), ("PrivateIpAddresses", PrivateIpAddresses)):
            if text is None:
                continue
            try:
                wanted = json.loads(text)
            except ValueError as error:
                raise wrong(f"The specified {name} are not valid.", f"Invalid{name}.Malformed") from error
            if not isinstance(wanted, list) or len(wanted) > SIZE:
                raise wrong(f"The specified {name} are more than {SIZE} or no list.", f"Invalid{name}.Malformed")
            by_id = name == "InstanceIds"
            found = [one for one in found if (one["InstanceId"] in wanted if by_id else set(ips(one)) & set(wanted))]
        if PrivateIpAddresses is not None and InstanceNetworkType != "vpc":
            raise wrong("private addresses are looked for in a VPC", "InvalidParameter.InstanceNetworkType")
        if VpcId is not None:
            found = [one for one in found if one["VpcAttributes"]["VpcId"] == VpcId]
        if InstanceName is not None:
            found = [one for one in found if fnmatch.fnmatchcase(one["InstanceName"], InstanceName)]
        some, token = paged(found, MaxResults, NextToken)
        eni = "NETWORK_PRIMARY_ENI_IP" in AdditionalAttributes
        shown = [one if eni else {key: value for key, value in one.items() if key != "NetworkInterfaces"} for one in some]
        return {"Instances": {"Instance": shown}, "NextToken": token or "", "PageNumber": 1, "PageSize": int(MaxResults), "TotalCount": len(found)}
