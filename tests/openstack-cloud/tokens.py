"""What a service knows of the tokens it was shown: as its own cache keeps it, but Keystone can make it forget.

Without a cache every call would cost another two to Keystone; with the usual one a revoked token would be good for minutes.
"""

from stage import waits


class Tokens:
    """Put this in place before the service makes its pipeline."""

    def __init__(self):
        self.known = {}
        self._keep()

    @waits
    def forget(self, _asked):
        # Without the lock: Keystone may call from a request on which another one of ours waits.
        self.known.clear()
        return {}

    def _keep(self):
        from keystonemiddleware.auth_token import AuthProtocol

        check = AuthProtocol.fetch_token

        def fetch_token(protocol, token, **others):
            key = (token, tuple(others.items()))
            if key not in self.known:
                self.known[key] = check(protocol, token, **others)
            return self.known[key]

        AuthProtocol.fetch_token = fetch_token
