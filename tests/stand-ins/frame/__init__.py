"""What all stand-ins share: an HTTP server, a list of calls, faults, latency, pages, tokens and operations that take time.

A stand-in is a package beside this one with a class that has `answer(request)` (see `frame.server.Cloud`) and a `__main__` that calls `frame.serve`.
"""

from frame.faults import Fault
from frame.http import Answer, Refused, Request
from frame.operations import Operations
from frame.pages import page
from frame.server import Cloud, serve
from frame.tokens import Tokens

__all__ = ["Answer", "Cloud", "Fault", "Operations", "Refused", "Request", "Tokens", "page", "serve"]
