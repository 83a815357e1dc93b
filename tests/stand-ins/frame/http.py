"""A request as a cloud sees it, and its answer."""

import json
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit


@dataclass
class Request:
    method: str
    target: str
    """The path and the query as they were sent; signatures cover these."""
    headers: dict
    """With names in small letters."""
    body: bytes
    peer: bytes | None = None
    """The certificate of the client, in DER, where the connection has shown one."""
    path: str = field(init=False)
    query: dict = field(init=False)
    """The first value of each name; `parse_qs(urlsplit(target).query)` has them all."""

    def __post_init__(self):
        parts = urlsplit(self.target)
        self.path = parts.path
        self.query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}

    def json(self):
        try:
            return json.loads(self.body or b"null")
        except ValueError as error:
            raise Refused(400, {"error": {"code": 400, "message": f"the body is no JSON: {error}"}}) from error

    def form(self):
        return {name: values[0] for name, values in parse_qs(self.body.decode(), keep_blank_values=True).items()}


@dataclass
class Answer:
    status: int = 200
    value: object = None
    """Written as JSON; text and bytes as they are; None is an empty body."""
    headers: dict = field(default_factory=dict)

    def body(self):
        if self.value is None:
            return b"", None
        if isinstance(self.value, bytes):
            return self.value, "application/octet-stream"
        if isinstance(self.value, str):
            return self.value.encode(), "text/plain"
        return json.dumps(self.value).encode(), "application/json"


class Refused(Exception):
    """What a cloud raises instead of an answer."""

    def __init__(self, status, value=None, headers=None):
        super().__init__(f"{status} {value}")
        self.answer = Answer(status, value, headers or {})
