"""The search language, as far as machines are looked for: `tag=a and fqdn=b* sortby name page 2`."""

import re
from fnmatch import fnmatchcase

from frame import Refused

PAGE = 100
"""`SearchResultsLimit`."""
END = re.compile(r"^(?P<terms>.*?)\s*(?:\bsortby (?P<sort>name)(?: asc)?)?\s*(?:\bpage (?P<page>[1-9]\d*))?$")


def wrong(detail):
    return Refused(400, {"reason": "Operation Failed", "detail": f"[Cannot search: {detail}]"})


def found(machines, fields, query):
    """The machines of the page that is asked for; `fields(machine)` are lists of texts by what one can search for."""
    text, same = query.get("search", ""), (lambda text: text)
    if query.get("case_sensitive") == "false":
        same = str.lower
    parts = END.match(text.strip())
    for term in filter(None, re.split(r"\s+and\s+", parts["terms"])):
        known = re.fullmatch(r"(name|fqdn|tag|status)\s*=\s*(\S+)", term)
        if not known:
            raise wrong(f"{term!r} is no criterion")
        fits = lambda machine: any(fnmatchcase(same(value), same(known[2])) for value in fields(machine)[known[1]])
        machines = [machine for machine in machines if fits(machine)]
    if parts["sort"]:
        machines = sorted(machines, key=lambda machine: machine["name"])
    # Without a search an engine gives all.
    most = int(query["max"]) if "max" in query else PAGE if text else len(machines)
    start = (int(parts["page"] or 1) - 1) * most
    return machines[start : start + most]
