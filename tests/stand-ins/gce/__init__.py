"""Compute Engine, as far as Cloudwit talks to it: checked against Google's discovery document, judged by Google's own client (`judge.py`)."""
