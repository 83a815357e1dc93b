"""Route tables and their entries, which take time."""

import ipaddress

from alibaba.ecs import paged
from alibaba.errors import gone, wrong

MOST = 50


class Vpc:
    def __init__(self, operations, ecs):
        self.operations, self.ecs = operations, ecs
        self.tables, self.entries = {}, {}
        self.number = 0
        self.quota = 200

    def add_table(self, vpc, kind="System"):
        id = f"vtb-{len(self.tables) + 1}"
        self.tables[id] = {"RouteTableId": id, "RouteTableType": kind, "VpcId": vpc, "Status": "Available", "RouteTableName": ""}
        return id

    def describe_tables(self, RegionId, VpcId=None, PageNumber=1, PageSize=10):
        found = [one for one in self.tables.values() if VpcId in (None, one["VpcId"])]
        size = int(PageSize)
        if not 1 <= size <= 50:
            raise wrong("The page size is out of range.", "InvalidParameter.PageSize")
        start = (int(PageNumber) - 1) * size
        some = found[start : start + size]
        return {"RouterTableList": {"RouterTableListType": some}, "PageNumber": int(PageNumber), "PageSize": size, "TotalCount": len(found)}

    def table(self, id):
        if id not in self.tables:
            raise gone("InvalidRouteTableId.NotFound", id)

    def describe_entries(self, RegionId, RouteTableId, RouteEntryType=None, MaxResult=10, NextToken=None, DestinationCidrBlock=None):
        self.operations.settle()
        self.table(RouteTableId)
        found = [one for one in self.entries.values() if one["RouteTableId"] == RouteTableId]
        found = [one for one in found if RouteEntryType in (None, one["Type"]) and DestinationCidrBlock in (None, one["DestinationCidrBlock"])]
        some, token = paged(found, MaxResult, NextToken)
        return {"RouteEntrys": {"RouteEntry": some}, "NextToken": token or "", "TotalCount": len(found)}

    def put(self, table, destination, hop, hop_type="Instance", type="Custom"):
        self.number += 1
        id = f"rte-{self.number}"
        entry = self.entries[id] = {
            "RouteEntryId": id, "RouteTableId": table, "DestinationCidrBlock": destination, "Type": type, "Status": "Pending",
            "NextHops": {"NextHop": [{"NextHopId": hop, "NextHopType": hop_type, "Enabled": 1}]},
        }
        self.operations.begin(lambda: entry.update(Status="Available"))
        return id

    def create(self, RegionId, RouteEntries):
        self.operations.settle()
        return self.change(RouteEntries, self.create_one, "RouteEntryIds")

    def create_one(self, RouteTableId, DstCidrBlock, NextHop, NextHopType):
        if RouteTableId not in self.tables:
            return "InvalidRouteTableId.NotFound"
        if NextHopType != "Instance" or NextHop not in self.ecs.all:
            return "InvalidNextHop.NotFound"
        if ipaddress.ip_network(DstCidrBlock).version != 4:
            return "InvalidCidrBlock.Malformed"
        own = [one for one in self.entries.values() if one["RouteTableId"] == RouteTableId]
        if any(one["DestinationCidrBlock"] == DstCidrBlock for one in own):
            return "InvalidCIDRBlock.Duplicate"
        if len(own) >= self.quota:
            return "QuotaExceeded.RouteEntry"
        self.put(RouteTableId, DstCidrBlock, NextHop)
        return None

    def delete(self, RegionId, RouteEntries):
        self.operations.settle()
        return self.change(RouteEntries, self.delete_one, None)

    def delete_one(self, RouteTableId, DstCidrBlock, NextHop):
        for id, one in list(self.entries.items()):
            hop = one["NextHops"]["NextHop"][0]["NextHopId"]
            if (one["RouteTableId"], one["DestinationCidrBlock"], hop) == (RouteTableId, DstCidrBlock, NextHop):
                if one["Status"] != "Available":
                    return "IncorrectRouteEntryStatus"
                del self.entries[id]
                return None
        return "InvalidRouteEntry.NotFound"

    def change(self, entries, one, ids):
        if len(entries) > MOST:
            raise wrong(f"at most {MOST} entries at once")
        failed = []
        for entry in entries:
            code = one(**entry)
            if code:
                text = {"DstCidrBlock": entry["DstCidrBlock"], "NextHop": entry["NextHop"], "FailedCode": code, "FailedMessage": f"{code} of {entry}"}
                failed.append(text)
        answer = {"FailedCount": len(failed), "SuccessCount": len(entries) - len(failed), "FailedRouteEntries": failed}
        return answer | ({ids: []} if ids else {})
