"""Who may call: an application with a secret, a certificate or a federated token; the identity of a machine; access tokens."""

import base64
import datetime
import hashlib

import jwt
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID
from frame import Answer, Refused, Tokens

from azure.errors import refused

TENANT = "72f988bf-0000-4000-8000-2d7cd011db47"
CLIENT = "11111111-2222-4333-8444-555555555555"
IDENTITY = "66666666-2222-4333-8444-555555555555"
SECRET = "s3cr3t&with=signs~"
FEDERATED = "eyJhbGciOi.x7Qp2mKd4Zr9TbWv.Hn3sLc8YfUe5"
RESOURCE = "https://management.azure.com"
DIRECTORY = "https://login.microsoftonline.com"
ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


def oauth(status, code, text):
    """Entra's errors have an own shape, and go on with ids that differ each time."""
    return Refused(status, {"error": code, "error_description": f"{text} Trace ID: 0 Correlation ID: 1 Timestamp: 2"})


class Access:
    def __init__(self):
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ).decode()
        self.public = key.public_key()
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "cloudwit")])
        now = datetime.datetime.now(datetime.timezone.utc)
        builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(self.public)
        builder = builder.serial_number(1).not_valid_before(now).not_valid_after(now + datetime.timedelta(days=1))
        der = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.DER)
        self.thumbprint = hashlib.sha1(der).hexdigest().upper()
        self.tokens = Tokens()
        self.seen = set()
        """Ids of assertions: none counts twice."""
        self.denied = []
        """Beginnings of paths, in small letters, that the identity may not touch."""

    def granted(self, text=False):
        seconds = int(self.tokens.seconds)
        token = self.tokens.issue("eyJ0.")
        return Answer(value={"access_token": token, "expires_in": str(seconds) if text else seconds, "token_type": "Bearer"})

    def token(self, request, tenant):
        """The token endpoint of Entra ID."""
        form = request.form()
        if tenant != TENANT:
            raise oauth(400, "invalid_request", f"AADSTS90002: Tenant '{tenant}' not found.")
        if form.get("grant_type") != "client_credentials":
            raise oauth(400, "unsupported_grant_type", "AADSTS70003: The app requested an unsupported grant type.")
        if form.get("scope") != f"{RESOURCE}/.default":
            raise oauth(400, "invalid_scope", "AADSTS70011: The provided value for scope is not valid.")
        if form.get("client_id") != CLIENT:
            raise oauth(400, "unauthorized_client", "AADSTS700016: Application was not found in the directory.")
        if "client_secret" in form:
            if form["client_secret"] != SECRET:
                raise oauth(401, "invalid_client", "AADSTS7000215: Invalid client secret provided.")
            return self.granted()
        if form.get("client_assertion_type") != ASSERTION:
            raise oauth(401, "invalid_client", "AADSTS7000218: The request body must contain 'client_assertion' or 'client_secret'.")
        if form["client_assertion"] != FEDERATED:
            self.assertion(form["client_assertion"], tenant)
        return self.granted()

    def assertion(self, text, tenant):
        """By a certificate, checked with a library that is not ours."""
        try:
            header = jwt.get_unverified_header(text)
            audience = f"{DIRECTORY}/{tenant}/oauth2/v2.0/token"
            needed = {"require": ["aud", "iss", "sub", "jti", "exp"], "verify_aud": False}
            claims = jwt.decode(text, self.public, algorithms=["RS256", "PS256"], options=needed)
        except jwt.PyJWTError as error:
            raise oauth(401, "invalid_client", f"AADSTS700027: The certificate's signature is not valid: {error}") from error
        # A proxy may stand before the endpoint, as this stand-in does.
        if not claims["aud"].endswith(audience.removeprefix(DIRECTORY)):
            raise oauth(401, "invalid_client", f"AADSTS700023: The audience {claims['aud']} is not {audience}.")
        x5t = base64.urlsafe_b64encode(bytes.fromhex(self.thumbprint)).decode().rstrip("=")
        if header.get("x5t", "").rstrip("=") != x5t:
            raise oauth(401, "invalid_client", "AADSTS700027: The certificate with that identifier is not registered.")
        if claims["iss"] != CLIENT or claims["sub"] != CLIENT:
            raise oauth(401, "invalid_client", "AADSTS700021: The issuer or subject is not the application.")
        if claims["jti"] in self.seen:
            raise oauth(401, "invalid_client", "AADSTS7000241: The assertion was used before.")
        self.seen.add(claims["jti"])

    def metadata(self, request):
        """The metadata service of a machine with an identity of its own."""
        if request.headers.get("metadata") != "true":
            raise Refused(400, {"error": "bad_request_102", "error_description": "Required metadata header not specified"})
        if request.query.get("api-version") != "2018-02-01" or request.query.get("resource") != f"{RESOURCE}/":
            raise Refused(400, {"error": "invalid_request", "error_description": "api-version or resource is wrong"})
        if request.query.get("client_id", IDENTITY) != IDENTITY:
            raise Refused(400, {"error": "invalid_request", "error_description": "Identity not found"})
        return self.granted(text=True)

    def check(self, request):
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind != "Bearer":
            raise refused(401, "AuthenticationFailed", "Authentication failed. The 'Authorization' header is missing.")
        if not self.tokens.valid(token):
            raise refused(401, "ExpiredAuthenticationToken", "The access token expiry is earlier than the current time.")
        if any(request.path.lower().startswith(path) for path in self.denied):
            text = f"The client '{CLIENT}' does not have authorization to perform action over scope '{request.path}'."
            raise refused(403, "AuthorizationFailed", text)
