"""Lists in pages, of one collection or of all zones and regions."""

from frame import page
from gce.errors import invalid
from gce.filters import matcher


def cut(cloud, items, query):
    size = min(int(query.get("maxResults", 500)), cloud.page)
    try:
        return page(items, query.get("pageToken"), size)
    except ValueError as error:
        raise invalid(f"Invalid value for field 'pageToken': {error}") from error


def listed(cloud, method, path, query):
    passes = matcher(query.get("filter"))
    found = [item for item in cloud.store.under(path + "/") if passes(item)]
    items, following = cut(cloud, found, query)
    answer = {"kind": f"compute#{path.split('/')[-1].removesuffix('s')}List", "id": path, "selfLink": cloud.store.link(path)}
    answer |= {"items": items} if items else {}
    return answer | ({"nextPageToken": following} if following else {})


def aggregated(cloud, method, values, query):
    """By scope: each zone and region of the project, with a warning where nothing is."""
    collection = method["id"].split(".")[1]
    passes = matcher(query.get("filter"))
    prefix = f"projects/{values['project']}/"
    found = []
    for path in sorted(cloud.store.resources):
        parts = path.removeprefix(prefix).split("/")
        if path.startswith(prefix) and len(parts) == 4 and parts[2] == collection and passes(cloud.store.resources[path]):
            found.append(("/".join(parts[:2]), cloud.store.resources[path]))
    silent = cloud.unreachable
    items, following = cut(cloud, [pair for pair in found if pair[0] not in silent], query)
    scopes = {}
    for scope in cloud.scopes(values["project"]):
        here = [resource for where, resource in items if where == scope]
        warning = {"code": "NO_RESULTS_ON_PAGE", "message": f"There are no results for scope '{scope}' on this page."}
        scopes[scope] = {collection: here} if here else {"warning": warning}
    for scope in silent:
        scopes[scope] = {"warning": {"code": "UNREACHABLE", "message": f"{scope} cannot be reached"}}
    answer = {"kind": f"compute#{collection.removesuffix('s')}AggregatedList", "id": prefix, "items": scopes}
    if silent:
        answer["unreachables"] = [cloud.store.link(prefix + scope) for scope in sorted(silent)]
    return answer | ({"nextPageToken": following} if following else {})
