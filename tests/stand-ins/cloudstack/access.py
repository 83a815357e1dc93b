"""Who asks: API key, signature, and until when it is good."""

import base64
import hashlib
import hmac
from datetime import datetime, timezone
from urllib.parse import quote

from cloudstack.errors import ApiError

KEY = "Kq3vX1n-8TzYb5WfRj0Lp7Gd2Ms9Hc4Ua6Ex_Bo1Nw5Qy8Ik3Vt7Zr2Fp6Jl0Sg4Dm9Ch-Xe1Uo5Ab8Ty3Wn7"
SECRET = "hZ4mT8wQ2rK6xV0cB9nJ3pL7fD1sG5yA_uE2iO6tR0qW4eY8-kM3vN7bX1zC5lH9jF2gS6dP0aU4oI8hT3rE7w"


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
