"""The component: the template's, with load balancers."""

from componentize_py_types import Result
from wit_world.exports import info
from wit_world.imports import common, config

import contract
from cloud import Failed
from config_file import parse
from instances import PREFIX, lookup
from load_balancers import LoadBalancers

__all__ = ["Info", "Instances", "LoadBalancers"]


class Info:
    """Who the provider is, is its configuration right, does its cloud answer."""

    def describe(self) -> info.Description:
        found, _ = parse(config.text())
        methods = ["DELETE", "GET", "PATCH", "PUT"]
        http = [info.HttpWish(found.scheme, found.host, found.port, methods, "the cloud's API")] if found else []
        token = info.SecretWish(contract.TOKEN, "the token of the cloud's API", [info.SecretUse.PLACEHOLDER], [], False)
        return info.Description("python-machines", "0.1.0", [PREFIX], http, [token], [], None, [])

    def check(self) -> list[info.Problem]:
        _, problems = parse(config.text())
        return [info.Problem(info.Severity.ERROR, at, message) for at, message in problems]

    def probe(self) -> None:
        try:
            contract.cloud().probe()
        except Failed as failed:
            raise contract.failure(failed)


class Instances:
    """The machines behind Nodes."""

    def lookup(self, nodes: list[common.NodeRef]) -> list[Result[common.Presence, common.Failure]]:
        try:
            answers = lookup(contract.cloud(), [(node.name, node.provider_id) for node in nodes])
        except Failed as failed:
            raise contract.failure(failed)
        return [contract.presence(answer) for answer in answers]
