"""Prepares the databases of all services, once: a template that each cloud starts with a copy of.

The services' own tools make the tables of Keystone, Nova and Cinder. Those of Neutron and Octavia come from the packages' models, since their
migrations need a database server. In the template, services have made-up addresses; `place` puts in the real ones.
"""

import hashlib
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import configuration

HERE = Path(__file__).parent

# In the template's catalog, until a copy gets its own.
NOWHERE = {name: f"http://{name}.nowhere" for name in configuration.SERVICES}

# Type and path of each service in the catalog.
CATALOG = {
    "keystone": ("identity", "/v3"),
    "neutron": ("network", ""),
    "nova": ("compute", "/v2.1"),
    "octavia": ("load-balancer", ""),
    "cinder": ("block-storage", "/v3"),
}


def ready(cache: Path, say) -> Path:
    """The template's folder. Makes it if this machine has none for these versions and sources; another process may be at it: then waits."""
    import fcntl

    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / f"template-{_fingerprint()}"
    with open(cache / "template.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            unfinished = cache / "template.unfinished"
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir()
            _prepare(unfinished, say)
            for old in cache.glob("template-*"):
                shutil.rmtree(old, ignore_errors=True)
            unfinished.rename(folder)
    return folder


def place(template: Path, folder: Path, urls: dict) -> None:
    """Copies the template into a cloud's folder and tells it its addresses."""
    shutil.copytree(template, folder, dirs_exist_ok=True)
    with sqlite3.connect(folder / "keystone.db") as keystone:
        for name, url in urls.items():
            keystone.execute("UPDATE endpoint SET url = replace(url, ?, ?)", (NOWHERE[name], url))
    with sqlite3.connect(folder / "nova_api.db") as nova:
        for cell, database in (("cell0", "nova_cell0"), ("cell1", "nova")):
            url = configuration.database(folder, database)
            nova.execute("UPDATE cell_mappings SET database_connection = ? WHERE name = ?", (url, cell))
    configuration.write(folder, urls)


def _fingerprint() -> str:
    digest = hashlib.sha256()
    for name in ("../python/openstack.txt", "template.py", "template_tables.py", "configuration.py"):
        digest.update((HERE / name).read_bytes())
    return digest.hexdigest()[:16]


def _prepare(folder: Path, say) -> None:
    configuration.write(folder, NOWHERE)
    keystone = [_tool("keystone-manage"), "--config-file", f"{folder}/keystone.conf"]
    user = ["--keystone-user", str(os.getuid()), "--keystone-group", str(os.getgid())]
    nova = [_tool("nova-manage"), "--config-file", f"{folder}/nova.conf"]
    cinder = [_tool("cinder-manage"), "--config-file", f"{folder}/cinder.conf"]
    tables = [sys.executable, str(HERE / "template_tables.py"), str(folder)]
    cell = ["--database_connection", configuration.database(folder, "nova"), "--transport-url", "fake://"]
    cell0 = configuration.database(folder, "nova_cell0")
    bootstrap = [
        *("--bootstrap-password", configuration.ADMIN_PASSWORD),
        *("--bootstrap-region-id", configuration.REGION),
    ]
    for interface in ("public", "internal", "admin"):
        bootstrap += [f"--bootstrap-{interface}-url", NOWHERE["keystone"] + CATALOG["keystone"][1]]
    # Those of one line are done in order, the lines at the same time.
    lines = [
        [
            [*keystone, "db_sync"],
            [*keystone, "fernet_setup", *user],
            [*keystone, "credential_setup", *user],
            [*keystone, "bootstrap", *bootstrap],
            [*tables, "keystone"],
            [*cinder, "db", "sync"],
        ],
        [
            [*nova, "api_db", "sync"],
            [*nova, "cell_v2", "map_cell0", "--database_connection", cell0],
            [*nova, "db", "sync"],
            [*nova, "cell_v2", "create_cell", "--name", "cell1", *cell],
            [*tables, "neutron"],
            [*tables, "octavia"],
        ],
    ]
    total = sum(len(line) for line in lines)
    done = 0
    running = [None] * len(lines)
    with open(folder / "template.log", "a") as log:
        while done < total:
            for at, line in enumerate(lines):
                if running[at] is None and line:
                    running[at] = subprocess.Popen(line[0], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
            for at, process in enumerate(running):
                if process is None:
                    continue
                try:
                    status = process.wait(0.2)
                except subprocess.TimeoutExpired:
                    continue
                if status != 0:
                    for other in running:
                        if other is not None and other is not process:
                            other.kill()
                    log.flush()
                    end = "\n".join((folder / "template.log").read_text().splitlines()[-15:])
                    raise SystemExit(f"preparing the databases of OpenStack failed: {' '.join(lines[at][0])}\n{end}")
                lines[at].pop(0)
                running[at] = None
                done += 1
                say(f"{done} of {total} steps")
    for log in folder.glob("*.log"):
        log.unlink()


def _tool(name: str) -> str:
    return str(Path(sys.prefix) / "bin" / name)
