"""Runs mimic, Rackspace's own simulator of its cloud, with what all stand-ins have for tests.

The cloud is mimic's; its control API makes servers stop and vanish and load balancers busy or broken, and `lacking.py` adds what its load balancers
lack. In front of it, under `/test/`: `calls` (GET, DELETE) and `faults` (POST, DELETE) as in `frame/server.py`. Mimic takes any credentials and any token, so
refusals are faults.

Says PORT= and READY.
"""

import json
import sys

from frame.faults import Fault
from frame.http import Request
from frame.server import OF_TESTS
from mimic.core import MimicCore
from mimic.resource import MimicRoot
from rackspace import lacking
from twisted.internet import reactor
from twisted.python import log
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Site


class Front(Resource):
    isLeaf = True

    def __init__(self, cloud):
        super().__init__()
        self.cloud = cloud
        self.calls = []
        self.faults = []

    def render(self, request):
        target = request.uri.decode()
        body = request.content.read()
        request.content.seek(0)
        headers = {name.decode().lower(): values[0].decode() for name, values in request.requestHeaders.getAllRawHeaders()}
        read = Request(request.method.decode(), target, headers, body)
        # The catalog names the host and port that were asked, also through a proxy.
        host, _, port = headers.get("host", "").partition(":")
        if port.isdigit():
            request.setHost(host.encode(), int(port))
        if read.path.startswith("/test/"):
            return self.control(request, read)
        if OF_TESTS in headers:
            return self.cloud.render(request)
        call = {
            "method": read.method,
            "target": target,
            "agent": headers.get("user-agent", ""),
            "status": 0,
            "name": f"{read.method} {self.name(read.path)}",
        }
        self.calls.append(call)
        request.notifyFinish().addBoth(lambda _: call.update(status=request.code))
        fault = next((fault for fault in self.faults if fault.fits(read)), None)
        if fault is None:
            return self.cloud.render(request)
        if fault.status == 0:
            request.transport.abortConnection()
            return NOT_DONE_YET
        for name, value in fault.headers.items():
            request.setHeader(name.encode(), str(value).encode())
        return self.written(request, fault.status, fault.value)

    @staticmethod
    def name(path):
        """`servers/detail` of `/mimicking/NovaApi-x/DFW/v2/1/servers/detail`."""
        parts = path.split("/")
        if "loadbalancers" in parts:
            rest = parts[parts.index("loadbalancers") :]
            return "/".join("ID" if part.isdigit() else part for part in rest)
        if "servers" not in parts:
            return path
        rest = parts[parts.index("servers") :]
        return "servers/ID" if len(rest) > 1 and rest[1] != "detail" else "/".join(rest)

    def control(self, request, read):
        match (read.method, read.path.removeprefix("/test/")):
            case ("GET", "calls"):
                return self.written(request, 200, self.calls)
            case ("DELETE", "calls"):
                self.calls = []
            case ("POST", "faults"):
                try:
                    self.faults += [Fault(**fault) for fault in json.loads(read.body)]
                except (TypeError, ValueError) as error:
                    return self.written(request, 400, {"message": str(error)})
            case ("DELETE", "faults"):
                self.faults = []
            case _:
                return self.written(request, 404, {"message": f"nothing for tests at {read.method} {read.path}"})
        return self.written(request, 200, {})

    @staticmethod
    def written(request, status, value):
        request.setResponseCode(status)
        if isinstance(value, str):
            return value.encode()
        request.setHeader(b"content-type", b"application/json")
        return b"" if value is None else json.dumps(value).encode()


def main():
    log.startLogging(sys.stderr, setStdout=False)
    lacking.install()
    core = MimicCore.fromPlugins(reactor)
    site = Site(Front(MimicRoot(core, reactor).app.resource()))
    port = reactor.listenTCP(0, site, interface="127.0.0.1")
    print(f"PORT={port.getHost().port}\nREADY", flush=True)
    reactor.run()


main()
