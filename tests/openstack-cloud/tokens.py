"""What a service knows of the tokens it was shown: as its own cache keeps it, but Keystone can make it forget.

Without a cache every call would cost another two to Keystone; with the usual one a revoked token would be good for minutes.
"""

from stage import ask


class Tokens:
    """Put this in place before the service makes its pipeline."""

    def __init__(self, urls):
        self.urls = urls
        self.known = {}
        self.owners = {}
        self._keep()

    def forget(self, _asked):
        self.known.clear()
        return {}

    def owner(self, environ, _body):
        """The project of a request's token, or none."""
        token = environ.get("HTTP_X_AUTH_TOKEN")
        if token is not None and token not in self.owners:
            self.owners[token] = ask(f"{self.urls['keystone']}/_stage/owner", {"token": token})["project"]
        return self.owners.get(token)

    def _keep(self):
        from keystonemiddleware.auth_token import AuthProtocol

        check = AuthProtocol.fetch_token

        def fetch_token(protocol, token, **others):
            key = (token, tuple(others.items()))
            if key not in self.known:
                self.known[key] = check(protocol, token, **others)
            return self.known[key]

        AuthProtocol.fetch_token = fetch_token
