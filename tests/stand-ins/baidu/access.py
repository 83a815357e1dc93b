"""Who asks: the access key, and the signature computed anew by Baidu's own signer."""

import hmac
from datetime import datetime, timezone
from urllib.parse import parse_qsl, urlsplit

from baidubce.auth import bce_v1_signer
from baidubce.auth.bce_credentials import BceCredentials

from baidu.errors import refused

KEY = "4f8b2c1d9e7a4035b6c8d0e1f2a3b4c5"
SECRET = "9d3e7f1a5b2c4860a1b2c3d4e5f60718"
CLOCK = 900
"""How far a clock may be ahead, in seconds."""


class Access:
    def __init__(self):
        self.key, self.secret = KEY, SECRET
        self.denied = set()
        """Calls that the user may not make."""

    def check(self, request, name):
        header = request.headers.get("authorization", "")
        parts = header.split("/")
        if len(parts) != 6 or parts[0] != "bce-auth-v1":
            raise refused(400, "InvalidHTTPAuthHeader", "The HTTP authorization header is invalid. Consult the service documentation for details.")
        _, key, time, seconds, signed, signature = parts
        if key != self.key:
            raise refused(403, "InvalidAccessKeyId", "The Access Key ID you provided does not exist in our records.")
        try:
            since = datetime.strptime(time, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc).timestamp()
        except ValueError as error:
            raise refused(400, "InvalidHTTPAuthHeader", str(error)) from error
        now = datetime.now(timezone.utc).timestamp()
        if not since - CLOCK <= now <= since + int(seconds):
            raise refused(403, "RequestExpired", "Request has expired. Timestamp date is out of range.")
        names = [one.encode() for one in signed.split(";") if one]
        if names and b"host" not in names:
            raise refused(400, "InvalidHTTPAuthHeader", "host has to be signed")
        bytes_of = lambda pairs: {name.encode(): value.encode() for name, value in pairs}
        # Baidu's signer takes all headers that begin with x-bce-, named or not.
        headers = {name: value for name, value in bytes_of(request.headers.items()).items() if not names or name in names}
        target = urlsplit(request.target)
        params = bytes_of(parse_qsl(target.query, keep_blank_values=True))
        again = bce_v1_signer.sign(
            BceCredentials(self.key, self.secret), request.method.encode(), target.path.encode(), headers, params, int(since), int(seconds), names,
        )
        if not hmac.compare_digest(again.decode().rsplit("/", 1)[1], signature):
            text = "The request signature we calculated does not match the signature you provided. Check your Secret Access Key and signing method."
            raise refused(403, "SignatureDoesNotMatch", text)
        if name in self.denied:
            raise refused(403, "AccessDenied", "Access denied.")
