"""Runs moto, a third party's AWS, for tests (`tests/support/src/clouds/moto.rs`).

On one port: moto itself; `POST /test/call/SERVICE/METHOD` with arguments as JSON, which asks moto through boto3 as its administrator and gives the
answer as JSON; and `/test/calls`, what others than boto3 here have called so far (GET), or forget it (DELETE).

Signatures are checked unless `--unchecked` is given. Volumes are as EC2's (`moto_ebs.py`). With `--lifelike`, two things are as in AWS without which AWS's own controller cannot be run.
Says PORT=, ACCESS_KEY=, SECRET_KEY= and READY.
"""

import io
import json
import os
import sys
import threading
from urllib.parse import parse_qs

CHECKED = "--unchecked" not in sys.argv[1:]
LIFELIKE = "--lifelike" in sys.argv[1:]
# moto reads it when it is imported. The calls before the limit are the ones that make the administrator.
if CHECKED:
    os.environ["INITIAL_NO_AUTH_ACTION_COUNT"] = "3"
os.environ["AWS_EC2_METADATA_DISABLED"] = "true"

import boto3  # noqa: E402
from botocore.config import Config  # noqa: E402
from botocore.exceptions import BotoCoreError, ClientError  # noqa: E402
from moto.core.authorization import ActionAuthenticatorMixin  # noqa: E402
from moto.ec2.models.route_tables import Route  # noqa: E402
from moto.elb.models import FakeHealthCheck, LoadBalancer  # noqa: E402
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app  # noqa: E402
from moto.sts.responses import TokenResponse  # noqa: E402
from moto_ebs import be_like_ec2  # noqa: E402
from werkzeug.serving import make_server  # noqa: E402
from werkzeug.wrappers import Request, Response  # noqa: E402

REGION = "us-east-1"
# How AWS answers where there is none; moto fails with 500 and HTML, which AWS's controller asks three times for, with pauses, for each Node.
NO_TOPOLOGY = """<Response><Errors><Error><Code>UnsupportedOperation</Code><Message>No topology here.</Message></Error></Errors>\
<RequestID>0</RequestID></Response>"""
# Where the body as it was sent is kept in a request's environment.
BODY = "cloudwit.body"
# Stands in the user agent of the calls that tests make through us, so that they are not taken for the calls of who is tested.
OURS = "test-setup"
EVERYTHING = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}


class Bridge:
    """Asks moto through boto3."""

    def __init__(self, url):
        self.url = url
        self.keys = ("first", "calls")
        self.clients = {}
        self.lock = threading.Lock()

    def client(self, service):
        with self.lock:
            if service not in self.clients:
                self.clients[service] = boto3.client(
                    service,
                    region_name=REGION,
                    endpoint_url=self.url,
                    aws_access_key_id=self.keys[0],
                    aws_secret_access_key=self.keys[1],
                    # A thousand instances take moto more than a minute on a busy machine.
                    config=Config(
                        user_agent_extra=OURS,
                        retries={"total_max_attempts": 1},
                        max_pool_connections=32,
                        read_timeout=600,
                    ),
                )
            return self.clients[service]

    def call(self, service, method, arguments):
        answer = getattr(self.client(service), method)(**arguments)
        answer.pop("ResponseMetadata", None)
        return answer

    def make_administrator(self):
        name = "administrator"
        self.call("iam", "create_user", {"UserName": name})
        key = self.call("iam", "create_access_key", {"UserName": name})["AccessKey"]
        policy = {"UserName": name, "PolicyName": "everything", "PolicyDocument": json.dumps(EVERYTHING)}
        self.call("iam", "put_user_policy", policy)
        self.keys = (key["AccessKeyId"], key["SecretAccessKey"])
        with self.lock:
            self.clients.clear()


class Front:
    """What listens: answers tests, passes everything else to moto and remembers it."""

    def __init__(self, moto):
        self.moto = moto
        self.bridge = None
        self.calls = []
        # What moto keeps is not made for threads: one that lists something fails when another one adds to it meanwhile, and the token of a creation
        # (`moto_ebs.py`) would be that of another one.
        self.turn = threading.Lock()

    def __call__(self, environ, start_response):
        path = environ.get("PATH_INFO", "")
        if path.startswith("/test/"):
            return self.answer(Request(environ), path.split("/")[2:])(environ, start_response)
        call = remembered(environ)
        if environ["REQUEST_METHOD"] != "POST":
            # An instance's metadata, which stay as they are, and for which a machine that starts does not wait long.
            return self.moto(environ, start_response)
        if call is None:
            with self.turn:
                return self.moto(environ, start_response)
        self.calls.append(call)
        if LIFELIKE and call["action"] == "DescribeInstanceTopology":
            call["status"] = 400
            return Response(NO_TOPOLOGY, status=400, content_type="text/xml")(environ, start_response)

        def started(status, headers, *rest):
            call["status"] = int(status.split(" ")[0])
            return start_response(status, headers, *rest)

        with self.turn:
            return self.moto(environ, started)

    def answer(self, request, path):
        if path == ["calls"]:
            calls = list(self.calls)
            if request.method == "DELETE":
                self.calls.clear()
            return written(calls, 200)
        if len(path) != 3 or path[0] != "call":
            return written({"code": "NotFound", "message": request.path}, 404)
        try:
            return written(self.bridge.call(path[1], path[2], request.get_json()), 200)
        except ClientError as error:
            return written({"code": error.response["Error"]["Code"], "message": str(error)}, 400)
        except (AttributeError, BotoCoreError, TypeError) as error:
            return written({"code": "Arguments", "message": str(error)}, 400)


def remembered(environ):
    """What a request asks for; None for requests of our own and for ones that are no call."""
    agent = environ.get("HTTP_USER_AGENT", "")
    if environ["REQUEST_METHOD"] != "POST" or OURS in agent:
        return None
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    environ["wsgi.input"] = io.BytesIO(body)
    environ[BODY] = body
    fields = parse_qs(body.decode("utf-8", "replace"))
    # AWS4-HMAC-SHA256 Credential=KEY/DATE/REGION/SERVICE/aws4_request, ...
    scope = environ.get("HTTP_AUTHORIZATION", "").partition("Credential=")[2].partition(",")[0].split("/")
    return {
        "action": fields.get("Action", [""])[0],
        "service": scope[3] if len(scope) == 5 else "",
        "key": scope[0],
        "agent": agent,
        "status": 0,
    }


def written(value, status):
    return Response(json.dumps(value, default=str), status=status, content_type="application/json")


def check_the_body_that_was_sent():
    """A signature covers the bytes of the body. For forms moto checks it against a body that it writes anew in Python's spelling (`a+b`), and refuses
    what is signed in another one (`a%20b`), which AWS does not."""
    check = ActionAuthenticatorMixin._authenticate_and_authorize_action

    def checked(self, iam_request_cls, resource="*"):
        self.raw_body = self.normalized_request.environ.get(BODY, self.raw_body)
        check(self, iam_request_cls, resource)

    ActionAuthenticatorMixin._authenticate_and_authorize_action = checked


def blacken_routes():
    """In AWS a route turns into a black hole when the instance it leads to ends; in moto all are active for ever."""

    def state(route):
        gone = route.instance is not None and route.instance.instance_state.name == "terminated"
        return "blackhole" if gone else "active"

    Route.state = property(state)


def check_health_from_the_start():
    """A new classic load balancer has a health check by itself; without one, AWS's controller ends in a panic."""
    made = LoadBalancer.__init__

    def make(balancer, *arguments, **named):
        made(balancer, *arguments, **named)
        if balancer.health_check is None and balancer.listeners:
            target = f"TCP:{balancer.listeners[0].instance_port}"
            balancer.health_check = FakeHealthCheck("5", "10", "2", "30", target)

    LoadBalancer.__init__ = make


def allow_web_identity():
    """AWS takes AssumeRoleWithWebIdentity without a signature, since its caller has no key yet; moto stumbles over the missing header."""
    check = TokenResponse._authenticate_and_authorize_normal_action

    def checked(self, resource="*"):
        if self._get_action() != "AssumeRoleWithWebIdentity":
            check(self, resource)

    TokenResponse._authenticate_and_authorize_normal_action = checked


def main():
    allow_web_identity()
    check_the_body_that_was_sent()
    blacken_routes()
    be_like_ec2()
    if LIFELIKE:
        check_health_from_the_start()
    front = Front(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, front, threaded=True, request_handler=MotoRequestHandler)
    front.bridge = Bridge(f"http://127.0.0.1:{server.server_port}")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    front.bridge.make_administrator()
    access_key, secret_key = front.bridge.keys
    print(f"PORT={server.server_port}\nACCESS_KEY={access_key}\nSECRET_KEY={secret_key}\nREADY", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
