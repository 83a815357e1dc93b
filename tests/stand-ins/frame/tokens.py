"""Access tokens: issued, checked, expired, revoked."""

import secrets
import time


class Tokens:
    def __init__(self, seconds=3600):
        self.seconds = seconds
        self.until = {}
        self.issued = 0

    def issue(self, prefix=""):
        token = prefix + secrets.token_urlsafe(24)
        self.until[token] = time.monotonic() + self.seconds
        self.issued += 1
        return token

    def valid(self, token):
        return self.until.get(token, 0) > time.monotonic()

    def revoke_all(self):
        self.until.clear()
