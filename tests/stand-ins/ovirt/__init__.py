"""An oVirt engine, as far as Cloudwit talks to it: one model of machines, written as XML and as JSON; oVirt's own SDK judges it (`judge.py`)."""
