"""Load balancers for Services: `PUT /balancers/{name}` makes one or changes it, and says whether it is ready."""

from urllib.parse import quote

from componentize_py_types import Err, Ok, Result
from wit_world.exports import load_balancers as contract_types
from wit_world.imports import common, services

import contract
from cloud import Cloud, Failed
from instances import PREFIX

BUILDING = 200
"""How soon to call again while the cloud builds, in milliseconds."""


class LoadBalancers:
    """Each call finds by owner, and changes nothing that is as it should be."""

    def name(self, service: services.Service) -> str:
        return f"lb-{service.uid}"

    def get(self, service: services.Service) -> contract_types.Balancer | None:
        balancer = answering(lambda: owned(contract.cloud(), [service.uid]).get(service.uid))
        return described(balancer) if balancer else None

    def ensure(
        self, service: services.Service, targets: list[contract_types.Target], token: str | None
    ) -> contract_types.Balancer:
        ports = [
            {"protocol": port.protocol.name.lower(), "port": port.port, "nodePort": port.node_port}
            for port in service.ports
        ]
        body = {"owner": service.uid, "ports": ports, "targets": ids(targets)}
        balancer = answering(lambda: contract.cloud().request("PUT", path(service), body))
        if balancer["state"] != "ready":
            raise building(balancer)
        return described(balancer)

    def update_targets(
        self, updates: list[contract_types.TargetUpdate], targets: list[contract_types.Target]
    ) -> list[Result[list[contract_types.AnnotationChange], common.Failure]]:
        """One list of all, and a request for each whose targets differ."""
        wanted = ids(targets)
        cloud = answering(contract.cloud)
        balancers = answering(lambda: owned(cloud, [update.service.uid for update in updates]))
        return [self.updated(cloud, update.service, balancers, wanted) for update in updates]

    def updated(self, cloud: Cloud, service: services.Service, balancers: dict[str, dict], wanted: list[str]) -> Result:
        try:
            balancer = balancers.get(service.uid)
            if balancer is None:
                raise Failed("not-found", f"there is no load balancer {self.name(service)}")
            if balancer["targets"] != wanted:
                cloud.request("PATCH", path(service), {"targets": wanted})
        except Failed as failed:
            return contract.failure(failed)
        return Ok([])

    def delete(self, service: services.Service, token: str | None) -> list[contract_types.AnnotationChange]:
        try:
            contract.cloud().request("DELETE", path(service))
        except Failed as failed:
            if failed.kind != "not-found":
                raise contract.failure(failed)
        return []


def answering(call):
    """What `call` gives; a failure as the contract wants it."""
    try:
        return call()
    except Failed as failed:
        raise contract.failure(failed)


def path(service: services.Service) -> str:
    return f"/balancers/{quote(LoadBalancers().name(service), safe='')}"


def owned(cloud: Cloud, uids: list[str]) -> dict[str, dict]:
    answer = cloud.request("GET", f"/balancers?owners={','.join(quote(uid, safe='') for uid in uids)}")
    balancers = answer.get("balancers") if isinstance(answer, dict) else None
    if not isinstance(balancers, list):
        raise Failed("unavailable", "the answer about load balancers has no list of them")
    return {balancer["owner"]: balancer for balancer in balancers}


def ids(targets: list[contract_types.Target]) -> list[str]:
    known = [target.node.provider_id or "" for target in targets]
    return sorted(provider_id.removeprefix(PREFIX) for provider_id in known if provider_id.startswith(PREFIX))


def building(balancer: dict) -> Err[common.Failure]:
    """The answer of `ensure` while the cloud builds."""
    message = f"the load balancer {balancer['name']} is being built"
    return Err(common.Failure(common.FailureKind_Pending(""), None, message, BUILDING))


def described(balancer: dict) -> contract_types.Balancer:
    """The answer of `get`, and of `ensure` once the load balancer is ready."""
    address = balancer.get("address")
    ingress = [services.Ingress(services.Endpoint_Ip((address, None)), [])] if address else []
    return contract_types.Balancer(ingress, [])
