"""Starts an OpenStack cloud on loopback: the real Keystone, Nova, Neutron, Octavia and Cinder, without hypervisors and agents.

    python cloud.py [--cache FOLDER] [--folder FOLDER] [--port N] [--without octavia] [--prepare]

Cinder starts when something connects to it for the first time: most tests have no volumes. Prints NAME=VALUE lines, then READY, and runs until its standard input or it is told to end. With --prepare only the databases are prepared.
"""

import argparse
import ctypes
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

import configuration
import template

# Started by the first connection.
LATE = ("cinder",)

# How long the services may take to start on a busy machine, in seconds.
PATIENCE = 300


def main() -> None:
    options = _options()
    prepared = template.ready(options.cache, lambda text: print(f"PROGRESS={text}", file=sys.stderr, flush=True))
    if options.prepare:
        return
    folder = options.folder or Path(tempfile.mkdtemp(prefix="openstack-cloud-"))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.signal(signal.SIGINT, lambda *_: sys.exit(0))
    processes = {}
    try:
        names = [name for name in configuration.SERVICES if name not in options.without]
        sockets = _listen(options.port)
        urls = {name: f"http://127.0.0.1:{sockets[name].getsockname()[1]}" for name in configuration.SERVICES}
        template.place(prepared, folder, urls)
        at_once = [name for name in names if name not in LATE]
        for name in at_once:
            processes[name] = _start(name, folder, sockets[name], urls)
        for name in at_once:
            _await(name, urls[name], processes[name], folder)
        _tell(folder, urls, names)
        late = {name: sockets[name] for name in names if name in LATE}
        _attend(processes, folder, late, urls)
    finally:
        _end(processes)
        if options.folder is None:
            shutil.rmtree(folder, ignore_errors=True)


def _options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    cache = Path.home() / ".cache/cloudwit/openstack-cloud"
    parser.add_argument("--cache", type=Path, default=cache, help="keeps the prepared databases")
    parser.add_argument("--folder", type=Path, help="databases and logs of this cloud; by default one that is removed at the end")
    parser.add_argument("--port", type=int, default=0, help="the first of five ports; 0 takes free ones")
    parser.add_argument("--without", action="append", default=[], choices=configuration.SERVICES[1:])
    parser.add_argument("--prepare", action="store_true", help="only prepares the databases")
    return parser.parse_args()


def _listen(first: int) -> dict:
    """The sockets of all services. They stay open from here to the end, so nobody can come between."""
    sockets = {}
    for offset, name in enumerate(configuration.SERVICES):
        listening = socket.socket()
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind(("127.0.0.1", first + offset if first else 0))
        except OSError as error:
            raise SystemExit(f"port {first + offset} for {name} is not free: {error.strerror}") from None
        listening.listen(128)
        sockets[name] = listening
    return sockets


def _start(name, folder, listening, urls):
    command = [sys.executable, str(Path(__file__).parent / "serve.py"), name, str(folder)]
    command += [str(listening.fileno()), json.dumps(urls)]
    (folder / f"{name}-state").mkdir(exist_ok=True)
    with open(folder / f"{name}.out", "w") as out:
        process = subprocess.Popen(
            command,
            pass_fds=[listening.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            preexec_fn=_end_with_us,
            env={**os.environ, "PYTHONWARNINGS": "ignore"},
        )
    # Only its service holds it now, so that a dead one refuses connections.
    listening.close()
    return process


def _end_with_us():
    # PR_SET_PDEATHSIG of linux/prctl.h: whichever way this process ends, the services do too.
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)


def _await(name, url, process, folder):
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        try:
            urllib.request.urlopen(f"{url}/_stage/calls", data=b"{}", timeout=PATIENCE).close()
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise SystemExit(f"{name} does not start; the end of its output:\n{_log_end(name, folder)}")


def _log_end(name, folder):
    lines = []
    for kind in (".out", "-gunicorn.log", ".log"):
        file = folder / f"{name}{kind}"
        if file.exists():
            lines += file.read_text(errors="replace").splitlines()[-15:]
    return "\n".join(lines)


def _tell(folder, urls, names):
    print(f"FOLDER={folder}")
    for name in names:
        print(f"{name.upper()}={urls[name]}")
    print(f"AUTH_URL={urls['keystone']}/v3")
    print(f"REGION={configuration.REGION}")
    print("ADMIN=admin")
    print(f"ADMIN_PASSWORD={configuration.ADMIN_PASSWORD}")
    print("READY", flush=True)


def _attend(processes, folder, late, urls):
    while True:
        # A connection waits in the socket's queue until its service takes it.
        asked = select.select(list(late.values()), [], [], 0.5)[0]
        for name in [name for name, listening in late.items() if listening in asked]:
            processes[name] = _start(name, folder, late.pop(name), urls)
        for name, process in processes.items():
            if process.poll() is not None:
                raise SystemExit(f"{name} ended ({process.returncode}); the end of its output:\n{_log_end(name, folder)}")


def _end(processes):
    for process in processes.values():
        if process.poll() is None:
            process.terminate()
    for process in processes.values():
        try:
            process.wait(3)
        except subprocess.TimeoutExpired:
            process.kill()


if __name__ == "__main__":
    main()
