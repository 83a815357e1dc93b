"""Turns: what is done behind an API, for messages that no answer is awaited of, is done one after the other and never during a request (stage.py).

SQLite has one writer, and refuses the second of two transactions that read before they write. Messages that a request awaits belong to its turn.
"""

import contextlib
import threading

LOCK = threading.Lock()

_here = threading.local()


def begin():
    """From now on, in this process. The stage has to have the same lock."""
    from oslo_messaging.rpc.dispatcher import RPCDispatcher

    dispatch = RPCDispatcher.dispatch

    def in_turn(self, incoming):
        # As the driver for messages within a process notes it.
        if incoming._reply_q is not None:
            return dispatch(self, incoming)
        with LOCK:
            _here.has_turn = True
            try:
                return dispatch(self, incoming)
            finally:
                _here.has_turn = False

    RPCDispatcher.dispatch = in_turn


@contextlib.contextmanager
def pause():
    """Others have their turns meanwhile."""
    if not getattr(_here, "has_turn", False):
        yield
        return
    LOCK.release()
    try:
        yield
    finally:
        LOCK.acquire()
