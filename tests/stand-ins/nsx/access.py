"""Who asks: certificates of principal identities, sessions with their XSRF token, Basic and Remote headers, tokens of VMware Cloud."""

import base64
import binascii
import hmac
import ssl
from urllib.parse import quote

from frame import Answer, Tokens
from nsx.errors import refused

USER, PASSWORD = "k8s-lb", "s3<&\"+%'cret"
REMOTE_USER = "k8s@corp.example"
REFRESH_TOKEN = "rFr/eSh+tok&en=1"
MOST_FAILURES = 5
"""After so many failed logins an account is locked."""


class Access:
    def __init__(self):
        self.sessions, self.bearer = Tokens(seconds=1800), Tokens(seconds=1799)
        self.xsrf = {}
        self.failures = 0
        self.principals = set()
        """Certificates of principal identities."""
        self.denied = []
        """Pairs of a method and a part of a path that the user's role does not have."""

    def login(self, form):
        if self.failures >= MOST_FAILURES or not self.knows(form.get("j_username"), form.get("j_password")):
            self.failures += 1
            raise self.wrong()
        self.failures = 0
        session, token = self.sessions.issue("S"), Tokens().issue("X")
        self.xsrf[session] = token
        headers = {"Set-Cookie": f"JSESSIONID={session}; Path=/; Secure; HttpOnly; SameSite=Lax", "X-XSRF-TOKEN": token}
        return Answer(200, None, headers)

    def authorize(self, form):
        """The token service of VMware Cloud."""
        if form.get("refresh_token") != REFRESH_TOKEN:
            return Answer(400, {"message": "invalid_grant: Invalid refresh token", "statusCode": 400})
        value = {"access_token": self.bearer.issue("B"), "token_type": "bearer", "expires_in": 1799, "scope": "ALL", "id_token": "i", "refresh_token": "r"}
        return Answer(value=value)

    def knows(self, user, password):
        return hmac.compare_digest(f"{user}\0{password}", f"{USER}\0{PASSWORD}")

    def wrong(self):
        text = "The credentials were incorrect or the account specified has been locked."
        return refused(403, 403, text, "common-services")

    def check(self, request):
        self.identify(request)
        for method, part in self.denied:
            if method == request.method and part in request.path:
                text = f"Principal '{USER}' with role '[auditor]' attempts to delete or modify an object it doesn't own."
                raise refused(403, 289, text, "nsx-rbac")

    def register(self, certificates):
        """These, as PEM, are those of principal identities, and no others."""
        self.principals = {ssl.PEM_cert_to_DER_cert(one) for one in certificates}

    def identify(self, request):
        if request.peer is not None:
            # A certificate comes before all else; who has one sends nothing else here.
            if request.peer not in self.principals or not {"authorization", "cookie", "x-xsrf-token"}.isdisjoint(request.headers):
                raise self.wrong()
            return
        scheme, _, credentials = request.headers.get("authorization", "").partition(" ")
        match scheme:
            case "Bearer" if self.bearer.valid(credentials):
                return
            case "Basic" | "Remote":
                try:
                    user, _, password = base64.b64decode(credentials, validate=True).decode().partition(":")
                except (binascii.Error, UnicodeDecodeError) as error:
                    raise self.wrong() from error
                wanted = USER if scheme == "Basic" else REMOTE_USER
                if user == wanted and password == PASSWORD:
                    return
                raise self.wrong()
            case "":
                cookies = (one.strip().partition("=") for one in request.headers.get("cookie", "").split(";"))
                session = next((value for name, _, value in cookies if name == "JSESSIONID"), "")
                if not self.sessions.valid(session):
                    raise refused(401, 401, "The session does not exist or has expired.", "common-services")
                if not hmac.compare_digest(request.headers.get("x-xsrf-token", ""), self.xsrf[session]):
                    raise refused(403, 98, "Cannot perform the operation: the XSRF token is missing or wrong.", "common-services")
                return
        raise refused(401, 401, "Full authentication is required to access this resource.", "common-services")

    def account(self):
        return {"user": USER, "password": PASSWORD, "remote": REMOTE_USER, "refresh": REFRESH_TOKEN, "form": quote(PASSWORD, safe="")}
