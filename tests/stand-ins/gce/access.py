"""Who may call: a service account's key by a signed assertion, the metadata server of a machine, access tokens."""

import time

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from frame import Answer, Refused, Tokens
from gce.errors import refused
from google.auth import jwt

EMAIL = "cloudwit@demo.iam.gserviceaccount.com"
KEY_ID = "0123456789abcdef0123456789abcdef01234567"
AUDIENCE = "https://oauth2.googleapis.com/token"
PLATFORM = "https://www.googleapis.com/auth/cloud-platform"
SCOPES = {"https://www.googleapis.com/auth/compute", PLATFORM}
GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"


class Access:
    def __init__(self):
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ).decode()
        self.public = key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        self.tokens = Tokens()
        self.scopes = {}
        self.denied = set()
        """Methods, such as `compute.firewalls.insert`, that the account may not call."""

    def token(self, request):
        """The token endpoint. Google's own library checks the signature."""
        form = request.form()
        if form.get("grant_type") != GRANT:
            raise Refused(400, {"error": "unsupported_grant_type", "error_description": "Invalid grant_type"})
        try:
            claims = jwt.decode(form["assertion"], certs={KEY_ID: self.public}, audience=AUDIENCE)
        except (ValueError, KeyError) as error:
            raise Refused(400, {"error": "invalid_grant", "error_description": f"Invalid JWT Signature: {error}"}) from error
        if claims["iss"] != EMAIL:
            raise Refused(400, {"error": "invalid_grant", "error_description": "Invalid grant: account not found"})
        if not set(claims.get("scope", "").split()) & SCOPES:
            raise Refused(400, {"error": "invalid_scope", "error_description": "Invalid OAuth scope"})
        if claims["exp"] - claims["iat"] > 3600 or claims["exp"] < time.time():
            raise Refused(400, {"error": "invalid_grant", "error_description": "Invalid JWT: must be short-lived"})
        return self.granted(claims["scope"].split())

    def granted(self, scopes):
        token = self.tokens.issue("ya29.")
        self.scopes[token] = set(scopes)
        return Answer(value={"access_token": token, "expires_in": int(self.tokens.seconds), "token_type": "Bearer"})

    def metadata(self, request, project, zone, network, machine):
        if request.headers.get("metadata-flavor") != "Google":
            raise Refused(403, "Forbidden: the header Metadata-Flavor is missing")
        path = request.path.removeprefix("/computeMetadata/v1/")
        texts = {
            "project/project-id": project,
            "instance/zone": f"projects/123456789/zones/{zone}",
            "instance/network-interfaces/0/network": f"projects/123456789/networks/{network}",
            "instance/name": machine["name"],
            "instance/machine-type": f"projects/123456789/machineTypes/{machine['kind']}",
        }
        if path == "instance/service-accounts/default/token":
            answer = self.granted(SCOPES)
        elif path == "instance/network-interfaces/" and request.query.get("recursive") == "true":
            # As documented: what a machine does not have is an empty text.
            configs = [{"externalIp": "", "type": "ONE_TO_ONE_NAT"}]
            answer = Answer(value=[{"ip": machine["ip"], "accessConfigs": configs, "mac": "42:01:0a:80:00:02", "mtu": 1460}])
        elif path in texts:
            answer = Answer(value=texts[path])
        else:
            raise Refused(404, "not found")
        answer.headers["Metadata-Flavor"] = "Google"
        return answer

    def check(self, request, method):
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind != "Bearer" or not self.tokens.valid(token):
            text = "Request had invalid authentication credentials. Expected OAuth 2 access token."
            raise refused(401, "authError", text)
        if method["id"].startswith("container.") and PLATFORM not in self.scopes[token]:
            raise refused(403, "insufficientPermissions", "Request had insufficient authentication scopes.")
        if method["id"] in self.denied or method["id"].rsplit(".", 1)[0] + ".*" in self.denied:
            permission = method["id"].replace(".insert", ".create")
            raise refused(403, "forbidden", f"Required '{permission}' permission for the resource")
