"""Who asks: nobody, a principal, or a user or service account of DC/OS."""

import base64

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from frame import Answer, Refused, Tokens


class Access:
    def __init__(self):
        self.user, self.password = "cloudwit", "a secret-of 100%"
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.tokens = Tokens()

    def private_key(self):
        form = serialization.PrivateFormat.PKCS8
        return self.key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode()

    def login(self, body):
        wrong = {"title": "Unauthorized", "description": "Authentication failed: invalid credentials", "code": "ERR_INVALID_CREDENTIALS"}
        body = body or {}
        if body.get("uid") != self.user:
            raise Refused(401, wrong)
        if "token" in body:
            try:
                claims = jwt.decode(body["token"], self.key.public_key(), algorithms=["RS256"], options={"require": ["exp", "uid"]})
            except jwt.PyJWTError as error:
                raise Refused(401, wrong | {"description": f"Authentication failed: {error}"}) from error
            if claims["uid"] != self.user:
                raise Refused(401, wrong)
        elif body.get("password") != self.password:
            raise Refused(401, wrong)
        return Answer(value={"token": self.tokens.issue()})

    def check_token(self, header):
        kind, _, token = header.partition("=")
        if kind != "token" or not self.tokens.valid(token):
            raise Refused(401, "<html><body>401 Authorization Required</body></html>", {"Content-Type": "text/html", "WWW-Authenticate": "acsjwt"})

    def check_basic(self, header):
        if header != "Basic " + base64.b64encode(f"{self.user}:{self.password}".encode()).decode():
            raise Refused(401, "", {"WWW-Authenticate": 'Basic realm="mesos-master-readonly"'})
