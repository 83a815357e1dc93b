"""Transactions that wait for each other: what is done behind an API writes at the same time as the API, and SQLite has one writer.

One that begins by reading and writes later is refused at once when another has written meanwhile; one that begins as a writer waits for its turn.
"""

import sqlalchemy.event
from sqlalchemy.engine import Engine


def take_turns():
    """From now on, in this process."""

    def begin(_connection, _cursor, statement, parameters, _context, _many):
        return ("BEGIN IMMEDIATE" if statement == "BEGIN" else statement), parameters

    sqlalchemy.event.listen(Engine, "before_cursor_execute", begin, retval=True)
