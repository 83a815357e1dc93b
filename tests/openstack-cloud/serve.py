"""Runs one service on sockets that are open already: serve.py NAME FOLDER FD URLS."""

import importlib
import json
import sys
from pathlib import Path

from gunicorn.app.base import BaseApplication


class Server(BaseApplication):
    def __init__(self, name, folder, fd, urls):
        self.service, self.folder, self.fd, self.urls = name, folder, fd, urls
        super().__init__()

    def load_config(self):
        for key, value in {
            "bind": f"fd://{self.fd}",
            "workers": 1,
            # Threads keep connections and wait for their turn, see stage.py.
            "worker_class": "gthread",
            "threads": 16,
            "keepalive": 60,
            # Nova asks Neutron for the ports of a page of servers in pieces of 8 KiB, as usual servers take them.
            "limit_request_line": 16384,
            "timeout": 0,
            "graceful_timeout": 1,
            "control_socket_disable": True,
            "proc_name": f"cloudwit-{self.service}",
            "errorlog": f"{self.folder}/{self.service}-gunicorn.log",
        }.items():
            if key in self.cfg.settings:
                self.cfg.set(key, value)

    def load(self):
        return importlib.import_module(f"{self.service}_stage").application(self.folder, self.urls)


if __name__ == "__main__":
    name, folder, fd, urls = sys.argv[1:]
    sys.argv = [name]
    Server(name, Path(folder), int(fd), json.loads(urls)).run()
