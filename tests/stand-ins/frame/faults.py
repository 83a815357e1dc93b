"""Answers that tests order: refusals, lost answers, slow ones."""

import re
from dataclasses import dataclass, field


@dataclass
class Fault:
    """What happens to the next requests that fit."""

    path: str = ""
    """A regular expression that is searched in the path and the query."""
    method: str = ""
    """Any if empty."""
    body: str = ""
    """A regular expression that is searched in the body; any if empty."""
    status: int = 500
    """0: the connection ends without an answer."""
    value: object = None
    headers: dict = field(default_factory=dict)
    times: int = 1
    """How often; -1 is without end."""
    skip: int = 0
    """How many fitting requests pass before."""
    obey: bool = False
    """Whether the cloud does what is asked before the answer is replaced."""
    seconds: float = 0
    """How long the answer takes."""

    def fits(self, request):
        if self.times == 0 or (self.method and self.method != request.method):
            return False
        if not re.search(self.path, request.target):
            return False
        if self.body and not re.search(self.body, request.body.decode("utf-8", "replace")):
            return False
        if self.skip > 0:
            self.skip -= 1
            return False
        self.times -= 1 if self.times > 0 else 0
        return True
