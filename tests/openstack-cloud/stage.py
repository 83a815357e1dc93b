"""The stage on which a service plays: stands around its WSGI application.

One request after the other goes in, together with whatever the test does to the service's data, since SQLite has one writer. Two things
are reached below /_stage: the verbs of the service that set up and change what no API can (see *_stage.py), and the list of calls.
"""

import json
import threading
import time
import traceback
import urllib.request


class Stage:
    """`verbs` are functions from a JSON document to a JSON document, by name. `after` sees each request and its answer."""

    def __init__(self, application, verbs, after=None):
        self.application = application
        self.verbs = {**verbs, "calls": self.calls}
        self.after = after
        self.log = []
        self.lock = threading.Lock()

    def __call__(self, environ, start_response):
        path = environ["PATH_INFO"]
        if path.startswith("/_stage/"):
            return self._verb(path.removeprefix("/_stage/"), environ, start_response)
        with self.lock:
            answer = _answer(self.application, environ)
            if self.after:
                self.after(environ, answer)
            status, headers, body = answer
            # Before anybody can see what it has done.
            self._remember(environ, status)
        start_response(status, headers)
        return [body]

    def _remember(self, environ, status):
        if environ["PATH_INFO"].startswith("/inside/"):
            return
        query = environ.get("QUERY_STRING")
        self.log.append(
            {
                "method": environ["REQUEST_METHOD"],
                "target": environ["PATH_INFO"] + (f"?{query}" if query else ""),
                "status": int(status.split()[0]),
                # Put there by the service's own check of the token.
                "project": environ.get("HTTP_X_PROJECT_ID"),
                "at": time.time(),
            }
        )

    def calls(self, asked):
        """The calls of a project since `from` (a position; the answer's `next` is the one to ask from later)."""
        begin, project = asked.get("from", 0), asked.get("project")
        calls = [call for call in self.log[begin:] if project is None or call["project"] == project]
        return {"calls": calls, "next": len(self.log)}

    def _verb(self, name, environ, start_response):
        try:
            length = int(environ.get("CONTENT_LENGTH") or 0)
            asked = json.loads(environ["wsgi.input"].read(length) or b"{}")
            verb = self.verbs.get(name)
            if verb is None:
                raise KeyError(f"no verb {name}; there are {', '.join(sorted(self.verbs))}")
            if getattr(verb, "waits", False):
                answer = verb(asked)
            else:
                with self.lock:
                    answer = verb(asked)
            status = "200 OK"
        except Exception:
            status, answer = "500 Internal Server Error", {"error": traceback.format_exc()}
        body = json.dumps(answer or {}).encode()
        start_response(status, [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
        return [body]


def _answer(application, environ):
    """The whole answer, so that nothing of it is made after the lock is given back."""
    said = []
    pieces = application(environ, lambda status, headers, _error=None: said.append((status, headers)))
    try:
        body = b"".join(pieces)
    finally:
        if hasattr(pieces, "close"):
            pieces.close()
    status, headers = said[-1]
    return status, list(headers), body


def waits(verb):
    """Marks a verb that takes the lock by itself where it needs it."""
    verb.waits = True
    return verb


def ask(url, document):
    """Asks the stage of another service."""
    request = urllib.request.Request(url, json.dumps(document).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)
