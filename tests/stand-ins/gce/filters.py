"""The parameter `filter`: `(name = "a") OR (name = "b")`, `name eq "a-.*"`, several expressions side by side or with AND."""

import re

from gce.errors import invalid

EXPRESSION = re.compile(r"\(?\s*([A-Za-z.]+)\s*(=|!=|:|eq|ne)\s*(\"[^\"]*\"|'[^']*'|[^\s()]+)\s*\)?\s*")
LONGEST = 8_000


def matcher(text):
    """A function that tells whether an item passes."""
    if not text:
        return lambda item: True
    if len(text) > LONGEST:
        raise invalid("Invalid value for field 'filter': it is too long")
    choices = [expressions(part) for part in re.split(r"\s+OR\s+", text)]
    return lambda item: any(all(passes(item, *one) for one in choice) for choice in choices)


def expressions(text):
    found, at = [], 0
    while at < len(text):
        match = EXPRESSION.match(text, at)
        if not match:
            raise invalid(f"Invalid value for field 'filter': '{text}'. Invalid list filter expression.")
        found.append((match[1], match[2], match[3].strip("\"'")))
        at = match.end()
        at += len("AND ") if text[at:].startswith("AND ") else 0
    return found


def passes(item, field, operator, wanted):
    value = item
    for part in field.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    value = "" if value is None else str(value)
    match operator:
        case "=":
            return value == wanted
        case "!=":
            return value != wanted
        case ":":
            return wanted in value
        case "eq":
            return re.fullmatch(wanted, value) is not None
        case _:
            return re.fullmatch(wanted, value) is None
