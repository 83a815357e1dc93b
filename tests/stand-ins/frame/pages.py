"""Lists in pages."""

import base64


def page(items, token, size):
    """The items after `token` (nothing: the first ones) and the token of the next page, or None. A token is not to be guessed from the items.

    Raises ValueError for a token that this function did not make.
    """
    start = 0
    if token:
        start = int(base64.urlsafe_b64decode(token.encode()).decode().removeprefix("after:"))
        if not 0 < start <= len(items):
            raise ValueError(f"the token {token!r} is none of ours")
    end = start + size
    following = base64.urlsafe_b64encode(f"after:{end}".encode()).decode() if end < len(items) else None
    return items[start:end], following
