"""Elastic IPs with their states."""

import itertools

from baidu.errors import fields, missing, quota, unfit, wrong

BANDWIDTHS = {("Postpaid", "ByTraffic"): 1000, ("Postpaid", "ByBandwidth"): 200, ("Prepaid", "ByBandwidth"): 200}


class Addresses:
    def __init__(self, operations, blbs):
        self.operations, self.blbs = operations, blbs
        self.all = {}
        self.numbers = itertools.count(10)
        self.limit = None

    def list(self, query):
        self.operations.settle()
        found = list(self.all.values())
        if ("instanceId" in query) != ("instanceType" in query):
            raise wrong("instanceId and instanceType go together")
        for name in ("eip", "name", "instanceId", "instanceType", "status"):
            found = [one for one in found if query.get(name) in (None, one[name])]
        return found

    def get(self, ip):
        self.operations.settle()
        if ip not in self.all:
            raise missing("eip", ip)
        return self.all[ip]

    def standing(self, ip, *status):
        eip = self.get(ip)
        if eip["status"] not in status:
            raise unfit(f"The status of {ip} is {eip['status']}.")
        return eip

    def create(self, body):
        body = fields(body, "bandwidthInMbps billing", "name tags")
        billing = body["billing"]
        payment = billing.get("paymentTiming")
        method = billing.get("billingMethod") or ("ByBandwidth" if payment == "Prepaid" else None)
        months = (billing.get("reservation") or {}).get("reservationLength")
        if (payment, method) not in BANDWIDTHS or (payment == "Prepaid") != bool(months):
            raise wrong(f"there is no such billing: {billing}")
        if not 1 <= body["bandwidthInMbps"] <= BANDWIDTHS[payment, method] or len(body.get("name", "").encode()) > 65:
            raise wrong("the bandwidth or the name is out of range")
        if self.limit is not None and len(self.all) >= self.limit:
            raise quota("Eip")
        ip = f"180.76.0.{next(self.numbers)}"
        eip = self.all[ip] = {
            "eip": ip, "eipId": f"ip-{ip.replace('.', '')}", "name": body.get("name", ip), "status": "creating", "instanceType": None, "instanceId": None,
            "bandwidthInMbps": body["bandwidthInMbps"], "paymentTiming": payment, "billingMethod": method, "tags": body.get("tags"), "region": "bj",
            "createTime": "2026-01-01T00:00:00Z", "expireTime": None, "routeType": "BGP",
        }
        self.operations.begin(lambda: eip.update(status="available"))
        return {"eip": ip}

    def bind(self, ip, body):
        body = fields(body, "instanceType instanceId")
        eip = self.standing(ip, "available")
        if body["instanceType"] != "BLB":
            raise wrong(f"the stand-in binds to BLB alone: {body['instanceType']}")
        blb = self.blbs.get(body["instanceId"])
        if any(one["instanceId"] == blb["blbId"] for one in self.all.values()):
            raise unfit(f"{blb['blbId']} has an EIP already.")
        eip |= {"status": "binding", "instanceType": "BLB", "instanceId": blb["blbId"]}
        self.operations.begin(lambda: (eip.update(status="binded"), blb.update(publicIp=ip)))

    def unbind(self, ip):
        eip = self.standing(ip, "binded")
        eip["status"] = "unbinding"
        blb = self.blbs.all.get(eip["instanceId"], {})

        def finish():
            eip.update(status="available", instanceType=None, instanceId=None)
            blb.update(publicIp="")

        self.operations.begin(finish)

    def resize(self, ip, body):
        eip, body = self.standing(ip, "available", "binded"), fields(body, "newBandwidthInMbps")
        if not 1 <= body["newBandwidthInMbps"] <= BANDWIDTHS[eip["paymentTiming"], eip["billingMethod"]]:
            raise wrong("the bandwidth is out of range")
        before, eip["status"] = eip["status"], "updating"
        self.operations.begin(lambda: eip.update(status=before, bandwidthInMbps=body["newBandwidthInMbps"]))

    def release(self, ip):
        eip = self.standing(ip, "available")
        if eip["paymentTiming"] == "Prepaid":
            raise unfit("A prepaid EIP cannot be released before it expires.")
        del self.all[ip]
