"""Who asks: API key, signature, and until when it is good."""

import base64
import hashlib
import hmac
from datetime import datetime, timezone
from urllib.parse import quote

from cloudstack.errors import ApiError

KEY = "api-key-of-the-stand-in_LIN6rqXuaJwMPfGYFh13qDwYz5VNNz1J2J6qIOWcd3oLQOq0WtD4CwRundBL6rzXToa3lQOC_vKjI3nkHtiD8Q"
SECRET = "secret-key-of-the-stand-in_VDaACYb0LV9eNjTetIOElcVQkvJck_J_QljX_FcHRj87ZKiy0z0ty0ZsYBkoXkY9b7eq1EhwJaw7FF3akA3KBQ"


def encode(value):
    """As Java's URLEncoder does, with %20 for a blank (ApiServer.verifyRequest)."""
    return quote(value, safe="*").replace("~", "%7E")


def signature(parameters, secret=SECRET):
    pairs = sorted((name.lower(), encode(value).lower()) for name, value in parameters.items() if name.lower() != "signature")
    text = "&".join(f"{name}={value}" for name, value in pairs)
    return base64.b64encode(hmac.new(secret.encode(), text.encode(), hashlib.sha1).digest()).decode()


class Access:
    def __init__(self):
        self.key, self.secret = KEY, SECRET
        self.denied = set()
        """Commands that the user's role does not have."""

    def check(self, parameters):
        unverified = ApiError(401, "unable to verify user credentials and/or request signature")
        lower = {name.lower(): value for name, value in parameters.items()}
        if lower.get("apikey") != self.key or "signature" not in lower:
            raise unverified
        if lower.get("signatureversion") == "3":
            try:
                expires = datetime.strptime(lower["expires"], "%Y-%m-%dT%H:%M:%S%z")
            except (KeyError, ValueError) as error:
                raise unverified from error
            if expires < datetime.now(timezone.utc):
                raise ApiError(401, "unable to verify user credentials and/or request signature: the request expired")
        if not hmac.compare_digest(signature(parameters, self.secret), lower["signature"]):
            raise unverified
