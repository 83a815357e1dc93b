// Load balancers for Services: `PUT /balancers/{name}` makes one or changes it, and says whether it is ready.

import { failure } from "./failure.js";
import { PREFIX } from "./instances.js";

/** How soon to call again while the cloud builds, in milliseconds. */
const BUILDING = 200;

export const name = (service) => `lb-${service.uid}`;

export function get(cloud, service) {
  const balancer = owned(cloud, [service.uid]).get(service.uid);
  return balancer && described(balancer);
}

export function ensure(cloud, service, targets) {
  const ports = service.ports.map(({ protocol, port, nodePort }) => ({ protocol, port, nodePort }));
  const balancer = cloud.request("PUT", path(service), { owner: service.uid, ports, targets: ids(targets) });
  if (balancer.state !== "ready") throw building(balancer);
  return described(balancer);
}

/** One list of all, and a request for each whose targets differ. */
export function updateTargets(cloud, updates, targets) {
  const wanted = ids(targets);
  const balancers = owned(cloud, updates.map(({ service }) => service.uid));
  return updates.map(({ service }) => {
    try {
      const balancer = balancers.get(service.uid);
      if (balancer === undefined) throw failure("not-found", `there is no load balancer ${name(service)}`);
      if (balancer.targets.toString() !== wanted.toString()) cloud.request("PATCH", path(service), { targets: wanted });
      return { tag: "ok", val: [] };
    } catch (error) {
      if (error?.kind === undefined) throw error;
      return { tag: "err", val: error };
    }
  });
}

export function remove(cloud, service) {
  try {
    cloud.request("DELETE", path(service));
  } catch (error) {
    if (error?.kind?.tag !== "not-found") throw error;
  }
  return [];
}

const path = (service) => `/balancers/${encodeURIComponent(name(service))}`;

function owned(cloud, uids) {
  const { balancers } = cloud.request("GET", `/balancers?owners=${uids.map(encodeURIComponent).join(",")}`) ?? {};
  if (!Array.isArray(balancers)) throw failure("unavailable", "the answer about load balancers has no list of them");
  return new Map(balancers.map((balancer) => [balancer.owner, balancer]));
}

const ids = (targets) =>
  targets
    .map(({ node }) => node.providerId)
    .filter((id) => id?.startsWith(PREFIX))
    .map((id) => id.slice(PREFIX.length))
    .sort();

/** The answer of `ensure` while the cloud builds. */
function building({ name }) {
  return { ...failure("pending", `the load balancer ${name} is being built`, BUILDING), kind: { tag: "pending", val: "" } };
}

/** The answer of `get`, and of `ensure` once the load balancer is ready. */
function described({ address }) {
  const ingress = address ? [{ endpoint: { tag: "ip", val: [address, undefined] }, ports: [] }] : [];
  return { ingress, annotations: [] };
}
