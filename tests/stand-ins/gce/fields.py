"""Partial answers: the parameter `fields`, such as `nextPageToken,items/*(instances(name,tags/items))`."""

import re

from gce.errors import invalid


def parse(text):
    """A tree of names; None stands for all below."""
    tokens = re.findall(r"[A-Za-z0-9_*]+|[,/()]", text)
    if "".join(tokens) != text:
        raise invalid(f"Invalid field selection {text}")
    tree, rest = selection(tokens)
    if rest:
        raise invalid(f"Invalid field selection {text}")
    return tree


def selection(tokens):
    tree = {}
    while tokens:
        if tokens[0] in ",/()":
            raise invalid(f"Invalid field selection at {tokens[0]}")
        name, *tokens = tokens
        below = None
        if tokens[:1] == ["/"]:
            below, tokens = one(tokens[1:])
        elif tokens[:1] == ["("]:
            below, tokens = selection(tokens[1:])
            if tokens[:1] != [")"]:
                raise invalid("Invalid field selection: a bracket is open")
            tokens = tokens[1:]
        tree[name] = merged(tree.get(name, {}), below)
        if tokens[:1] != [","]:
            break
        tokens = tokens[1:]
    return tree, tokens


def one(tokens):
    """A path with what is in brackets behind it, without what follows a comma."""
    name, *tokens = tokens
    if tokens[:1] == ["/"]:
        below, tokens = one(tokens[1:])
        return {name: below}, tokens
    if tokens[:1] == ["("]:
        below, tokens = selection(tokens[1:])
        return {name: below}, tokens[1:]
    return {name: None}, tokens


def merged(first, second):
    return None if first is None or second is None else first | second


def pick(value, tree):
    if tree is None:
        return value
    if isinstance(value, list):
        return [pick(item, tree) for item in value]
    if not isinstance(value, dict):
        return value
    if "*" in tree:
        return {name: pick(item, tree["*"]) for name, item in value.items()}
    return {name: pick(value[name], below) for name, below in tree.items() if name in value}
