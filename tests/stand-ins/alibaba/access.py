"""Who asks: access keys, those of the machine's role among them, and signatures computed anew by the signers of Alibaba Cloud's SDKs."""

import hashlib
import hmac
import re
import secrets
import time
from datetime import datetime, timezone
from types import SimpleNamespace
from urllib.parse import parse_qsl, urlsplit

from alibabacloud_tea_openapi.utils import Utils
from aliyunsdkcore.auth.composer import rpc_signature_composer

from alibaba.errors import refused
from frame import Answer, Refused

KEY = "LTAI5tCloudwitStandInKey1"
SECRET = "kq3vX1n8TzYb5WfRj0Lp7Gd2Ms9Hc4"
ROLE = "KubernetesMasterRole"
ACS3 = re.compile(r"ACS3-HMAC-SHA256 Credential=([^,]*),SignedHeaders=([^,]*),Signature=([0-9a-f]{64})")
CLOCK = 900
"""How far a clock may be away, in seconds."""


def stamp(seconds):
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def in_time(text, code):
    try:
        then = datetime.strptime(text or "", "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc).timestamp()
    except ValueError as error:
        raise refused(400, f"{code}.Format", "Specified time stamp or date value is not well formatted.") from error
    if abs(time.time() - then) > CLOCK:
        raise refused(400, f"{code}.Expired", "Specified time stamp or date value is expired.")


class Access:
    def __init__(self):
        self.keys = {KEY: (SECRET, None, None)}
        """Secret, security token and its end of each key."""
        self.nonces, self.sessions = set(), set()
        self.denied = set()
        """Actions that the user's policy does not allow."""
        self.role_seconds = 3600

    # Signatures.

    def check(self, request, parameters):
        """The action, and the version of the API."""
        if "authorization" in request.headers:
            action, version = self.check_acs3(request)
        else:
            action, version = self.check_rpc(request, parameters)
        if action in self.denied:
            raise refused(403, "Forbidden.RAM", "User not authorized to operate on the specified resource, or this API doesn't support RAM.")
        return action, version

    def key(self, id, token):
        if id not in self.keys:
            raise refused(404, "InvalidAccessKeyId.NotFound", "Specified access key is not found.")
        secret, own, until = self.keys[id]
        if own != token:
            raise refused(400, "InvalidSecurityToken.MismatchWithAccessKey", "Specified SecurityToken mismatch with the AccessKey.")
        if until is not None and until < time.time():
            raise refused(400, "InvalidSecurityToken.Expired", "Specified SecurityToken is expired.")
        return secret

    def once(self, nonce):
        if not nonce:
            raise refused(400, "MissingParameter.SignatureNonce", "SignatureNonce is mandatory for this action.")
        if nonce in self.nonces:
            raise refused(400, "SignatureNonceUsed", "Specified signature nonce was used already.")
        self.nonces.add(nonce)

    def check_acs3(self, request):
        found = ACS3.fullmatch(request.headers["authorization"])
        if not found:
            raise refused(400, "IncompleteSignature", "The request signature does not conform to Aliyun standards.")
        id, names, signature = found.groups()
        headers = request.headers
        secret = self.key(id, headers.get("x-acs-security-token"))
        signed = names.split(";")
        needed = {"host", "x-acs-action", "x-acs-version", "x-acs-date", "x-acs-signature-nonce", "x-acs-content-sha256"}
        needed |= {name for name in headers if name.startswith("x-acs-")}
        if not needed <= set(signed):
            raise refused(400, "IncompleteSignature", f"these headers have to be signed: {sorted(needed - set(signed))}")
        digest = hashlib.sha256(request.body).hexdigest()
        if headers["x-acs-content-sha256"] != digest:
            raise refused(400, "InvalidContentSha256", "Specified content hash does not match the body.")
        in_time(headers["x-acs-date"], "InvalidTimeStamp")
        query = dict(parse_qsl(urlsplit(request.target).query, keep_blank_values=True))
        request_again = SimpleNamespace(
            method=request.method, pathname=request.path, query=query, headers={name: headers.get(name, "") for name in signed},
        )
        again = Utils.get_authorization(request_again, "ACS3-HMAC-SHA256", digest, id, secret)
        if not hmac.compare_digest(again.rsplit("=", 1)[1], signature):
            raise refused(400, "SignatureDoesNotMatch", "Specified signature is not matched with our calculation.")
        self.once(headers["x-acs-signature-nonce"])
        return headers["x-acs-action"], headers["x-acs-version"]

    def check_rpc(self, request, parameters):
        signature = parameters.get("Signature")
        if not signature:
            raise refused(400, "MissingParameter.Signature", "Signature is mandatory for this action.")
        if (parameters.get("SignatureMethod"), parameters.get("SignatureVersion")) != ("HMAC-SHA1", "1.0"):
            raise refused(400, "IncompleteSignature", "The request signature does not conform to Aliyun standards.")
        secret = self.key(parameters.get("AccessKeyId"), parameters.get("SecurityToken"))
        in_time(parameters.get("Timestamp"), "InvalidTimeStamp")
        signed = {name: value for name, value in parameters.items() if name != "Signature"}
        composer = vars(rpc_signature_composer)
        text = composer["__compose_string_to_sign"](request.method, signed)
        if not hmac.compare_digest(composer["__get_signature"](text, secret), signature):
            raise refused(400, "SignatureDoesNotMatch", f"Specified signature is not matched with our calculation. server string to sign is:{text}")
        self.once(parameters.get("SignatureNonce"))
        return parameters.get("Action", ""), parameters.get("Version", "")

    # The metadata service of the machine.

    def metadata(self, request):
        if request.path == "/latest/api/token":
            if request.method != "PUT" or "x-aliyun-ecs-metadata-token-ttl-seconds" not in request.headers:
                raise Refused(400, "")
            session = secrets.token_urlsafe(24)
            self.sessions.add(session)
            return Answer(value=session)
        if request.headers.get("x-aliyun-ecs-metadata-token") not in self.sessions:
            raise Refused(403, "")
        what = request.path.removeprefix("/latest/meta-data/ram/security-credentials/")
        if what == "":
            return Answer(value=f"{ROLE}\n")
        if what != ROLE:
            raise Refused(404, "<html>404 - Not Found</html>")
        until = time.time() + self.role_seconds
        id, secret, token = f"STS.{secrets.token_hex(8)}", secrets.token_urlsafe(24), secrets.token_urlsafe(48)
        self.keys[id] = (secret, token, until)
        value = {"AccessKeyId": id, "AccessKeySecret": secret, "Expiration": stamp(until), "SecurityToken": token, "LastUpdated": stamp(time.time())}
        return Answer(value=value | {"Code": "Success"})
