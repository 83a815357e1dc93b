"""Octavia's API and what a test does to it. The controller behind it, which would boot machines, is `mover.py`."""

import os
import sys
from pathlib import Path

from mover import Mover
from stage import Stage
from tokens import Tokens


def application(folder: Path, _urls: dict):
    tokens = Tokens()
    sys.argv = ["octavia", "--config-file", f"{folder}/octavia.conf"]
    from octavia.wsgi.api import application as octavia

    mover = Mover()
    verbs = {"forget-tokens": tokens.forget, "pace": mover.pace, "fate": mover.fate, "status": mover.set_status, "vanish": mover.vanish}
    stage = Stage(octavia, verbs, mover.after)
    mover.start(stage.lock)
    return stage
