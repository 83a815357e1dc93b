"""Refusals in Alibaba Cloud's words: a code in the body, and a status of 4xx or 5xx."""

import uuid

from frame import Refused


def refused(status, code, message):
    id = str(uuid.uuid4()).upper()
    value = {"RequestId": id, "HostId": "alibaba.test", "Code": code, "Message": message, "Recommend": f"https://api.aliyun.com/troubleshoot?q={code}"}
    return Refused(status, value)


def wrong(message, code="InvalidParameter"):
    return refused(400, code, message)


def missing(name):
    return refused(400, f"MissingParameter.{name}", f"The parameter {name} is mandatory for this action.")


def gone(code, id):
    return refused(404, code, f"The specified resource {id} does not exist.")


def busy(code="OperationDenied.ServiceIsConfiguring"):
    return refused(400, code, "The operation is not permitted when the service is configuring.")
