"""The server of a stand-in.

On one port: the cloud itself; and for tests, under `/test/`:

| request | what it does |
| ------- | ------------ |
| `GET /test/calls` | what was called so far, `[{method, target, status, name, agent}]` |
| `DELETE /test/calls` | forgets it |
| `POST /test/faults` | adds faults, a list of objects with the fields of `frame.Fault` |
| `DELETE /test/faults` | removes them all |
| `PUT /test/latency` | `{"seconds": 0.02}`: how long each answer takes |
| `POST /test/tls` | `{"certificate", "key", "authority"}`, files: opens another port, over TLS, for clients with a certificate of this authority and no others; `{"result": PORT}` |
| `POST /test/do/NAME` | calls the cloud's `do_NAME` with the body's fields, answers with what it returns |

Says PORT= and READY.
"""

import re
import ssl
import sys
import threading
import time
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from frame.faults import Fault
from frame.http import Answer, Refused, Request

MOST_BODY = 32 << 20
# Requests with this header are those of a test that looks or sets something up: no fault meets them, and nobody counts them.
OF_TESTS = "x-of-tests"
MOST_CALLS = 200_000


class Cloud:
    """Base of the clouds. One request is answered at a time, so a cloud needs no lock."""

    def answer(self, request):
        """An `Answer`, or raises `Refused`."""
        raise NotImplementedError

    def call_name(self, request):
        """What counters call this request: by default the method and the path with numbers and UUIDs replaced."""
        path = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "{uuid}", request.path)
        return f"{request.method} {path}"


class State:
    def __init__(self, cloud):
        self.cloud = cloud
        self.lock = threading.Lock()
        self.calls = []
        self.faults = []
        self.latency = 0.0

    def handle(self, request):
        """The answer, or None when the connection shall end without one."""
        with self.lock:
            if OF_TESTS in request.headers:
                return self.cloud_answer(request)
            call = {
                "method": request.method,
                "target": request.target,
                "agent": request.headers.get("user-agent", ""),
                "status": 0,
                "name": self.cloud.call_name(request),
            }
            if len(self.calls) < MOST_CALLS:
                self.calls.append(call)
            fault = next((fault for fault in self.faults if fault.fits(request)), None)
            pause = self.latency + (fault.seconds if fault else 0)
            answer = self.cloud_answer(request) if fault is None or fault.obey else None
        if fault is not None:
            answer = Answer(fault.status, fault.value, dict(fault.headers)) if fault.status else None
        if pause:
            time.sleep(pause)
        call["status"] = answer.status if answer else 0
        return answer

    def cloud_answer(self, request):
        try:
            return self.cloud.answer(request)
        except Refused as refused:
            return refused.answer
        except Exception:
            # A mistake of the stand-in: seen in its log, and by the test as a status that no fault orders.
            traceback.print_exc()
            return Answer(599, {"error": {"code": 599, "message": traceback.format_exc()}})

    def control(self, request):
        what = request.path.removeprefix("/test/")
        with self.lock:
            match (request.method, what):
                case ("GET", "calls"):
                    return Answer(value=self.calls)
                case ("DELETE", "calls"):
                    self.calls = []
                case ("POST", "faults"):
                    self.faults += [Fault(**fault) for fault in request.json()]
                case ("DELETE", "faults"):
                    self.faults = []
                case ("PUT", "latency"):
                    self.latency = float(request.json()["seconds"])
                case ("POST", "tls"):
                    return Answer(value={"result": serve_tls(self, **request.json())})
                case ("POST", _) if what.startswith("do/"):
                    method = getattr(self.cloud, "do_" + what.removeprefix("do/"), None)
                    if method is None:
                        return Answer(404, {"message": f"the cloud has no {what}"})
                    return Answer(value={"result": method(**(request.json() or {}))})
                case _:
                    return Answer(404, {"message": f"nothing for tests at {request.method} {what}"})
        return Answer(value={})


def handler(state):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Without it each answer waits for the peer's delayed acknowledgement.
        disable_nagle_algorithm = True

        def any(self):
            length = int(self.headers.get("content-length") or 0)
            if length > MOST_BODY:
                return self.write(Answer(413, {"message": "the body is too long"}), close=True)
            headers = {name.lower(): value for name, value in self.headers.items()}
            peer = self.connection.getpeercert(binary_form=True) if isinstance(self.connection, ssl.SSLSocket) else None
            request = Request(self.command, self.path, headers, self.rfile.read(length), peer)
            if request.path.startswith("/test/"):
                try:
                    answer = state.control(request)
                except (Refused, KeyError, TypeError, ValueError) as error:
                    answer = Answer(400, {"message": f"{type(error).__name__}: {error}"})
            else:
                answer = state.handle(request)
            if answer is None:
                self.close_connection = True
                return None
            return self.write(answer)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = any

        def write(self, answer, close=False):
            body, kind = answer.body()
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            if kind and not any(name.lower() == "content-type" for name in answer.headers):
                self.send_header("Content-Type", kind)
            if answer.status not in (204, 304):
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD" and answer.status not in (204, 304):
                self.wfile.write(body)
            self.close_connection = self.close_connection or close

        def log_message(self, form, *arguments):
            print(form % arguments, flush=True)

    return Handler


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


class TlsServer(Server):
    def handle_error(self, request, client_address):
        """A client without a certificate ends here."""
        print(f"connection of {client_address} ended: {sys.exception()}", flush=True)


def serve_tls(state, certificate, key, authority):
    """Another port, which demands a certificate of each client."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.load_verify_locations(authority)
    context.verify_mode = ssl.CERT_REQUIRED
    server = TlsServer(("127.0.0.1", 0), handler(state))
    # The handshake is done by the thread of the connection.
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port


def serve(cloud):
    """Serves until the process ends."""
    server = Server(("127.0.0.1", 0), handler(State(cloud)))
    print(f"PORT={server.server_port}\nREADY", flush=True)
    server.serve_forever()


