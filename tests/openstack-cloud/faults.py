"""Faults a service does not have by itself: answers with another status, cut in the middle, late, or lost after the call had its effect.

A fault is a JSON document. Which requests: `project` (an id), `method`, `path` (a part of path and query), `body` (a part of it);
all that are given must fit. How often: `times`, else until `no-faults`. What: `status`, `headers`, `answer` (a body), `cut` (so many bytes of
the real body are sent, under the length of the whole), `short` (the same under the length of what is sent), `seconds` (the answer is late).
With `after` the request has its effect first, which cut and short need.
"""

import io
import threading
import time
from http import HTTPStatus


class Faults:
    def __init__(self):
        self.armed = []
        self.lock = threading.Lock()

    def add(self, fault):
        if "cut" in fault or "short" in fault:
            fault = {**fault, "after": True}
        with self.lock:
            self.armed.append(dict(fault))

    def remove(self, project):
        with self.lock:
            self.armed = [fault for fault in self.armed if project is not None and fault.get("project") != project]

    def take(self, environ, token_owner):
        """The first fault that fits, one time less left of it."""
        if not self.armed:
            return None
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(body)
        owner = None
        if any("project" in fault for fault in self.armed):
            owner = token_owner(environ, body)
        with self.lock:
            for fault in self.armed:
                if not _fits(fault, environ, body, owner):
                    continue
                if "times" in fault:
                    fault["times"] -= 1
                    if fault["times"] == 0:
                        self.armed.remove(fault)
                return fault
        return None

    def answer(self, fault, real):
        """What is said instead of the real answer (None: the request did not get to the service)."""
        time.sleep(fault.get("seconds", 0))
        status, headers, body = real or ("200 OK", [("Content-Type", "application/json")], b"")
        if "status" in fault:
            status = f"{fault['status']} {HTTPStatus(fault['status']).phrase}"
            body = fault.get("answer", "").encode()
            headers = [("Content-Type", "application/json")]
        elif "answer" in fault:
            body = fault["answer"].encode()
        length = len(body)
        if "cut" in fault:
            body = body[: fault["cut"]]
        if "short" in fault:
            body = body[: fault["short"]]
            length = len(body)
        headers = [(name, value) for name, value in headers if name.lower() != "content-length"]
        headers += [*fault.get("headers", {}).items(), ("Content-Length", str(length))]
        return status, headers, body


def _fits(fault, environ, body, owner):
    target = environ["PATH_INFO"] + "?" + environ.get("QUERY_STRING", "")
    return (
        fault.get("project") in (None, owner)
        and fault.get("method") in (None, environ["REQUEST_METHOD"])
        and fault.get("path", "") in target
        and fault.get("body", "").encode() in body
        and not environ["PATH_INFO"].startswith("/inside/")
    )
