"""Work that a cloud does not finish at once."""

import itertools
import time
from dataclasses import dataclass, field


@dataclass
class Operation:
    name: str
    due: float
    finish: object
    details: dict
    done: bool = False
    error: object = None
    started: float = field(default_factory=time.time)


class Operations:
    """Runs `finish` of an operation when it is due, on the next look. Not safe between threads by itself: the server holds its lock."""

    def __init__(self, seconds=0.2):
        self.seconds = seconds
        self.all = {}
        self.numbers = itertools.count(1)

    def begin(self, finish, **details):
        """`finish()` makes the change; what it raises is the operation's `error`."""
        operation = Operation(f"operation-{next(self.numbers)}", time.monotonic() + self.seconds, finish, details)
        self.all[operation.name] = operation
        self.settle()
        return operation

    def settle(self):
        now = time.monotonic()
        for operation in self.all.values():
            if not operation.done and operation.due <= now:
                operation.done = True
                try:
                    operation.finish()
                except Exception as error:  # the operation's outcome, whatever it is
                    operation.error = error

    def get(self, name):
        self.settle()
        return self.all.get(name)

    def running(self):
        self.settle()
        return [operation for operation in self.all.values() if not operation.done]

    def finish(self):
        """All that is under way is done now."""
        for operation in self.running():
            operation.due = 0
        self.settle()
