// The component: the template's, with load balancers.

import * as config from "cloudwit:provider/config@0.1.0";

import { parse } from "./config.js";
import { TOKEN, cloud } from "./host.js";
import { PREFIX, lookup } from "./instances.js";
import * as balancers from "./load_balancers.js";

export const info = {
  describe() {
    const { destination } = parse(config.text());
    const methods = ["DELETE", "GET", "PATCH", "PUT"];
    return {
      name: "js-machines",
      version: "0.1.0",
      providerIdPrefixes: [PREFIX],
      http: destination ? [{ ...destination, methods, reason: "the cloud's API" }] : [],
      secrets: [{ name: TOKEN, reason: "the token of the cloud's API", uses: ["placeholder"], hosts: [], optional: false }],
      cluster: [],
      lookupBatch: undefined,
      extra: [],
    };
  },
  check: () => parse(config.text()).problems,
  probe: () => cloud().probe(),
};

export const instances = { lookup: (nodes) => lookup(cloud(), nodes) };

export const loadBalancers = {
  name: balancers.name,
  get: (service) => balancers.get(cloud(), service),
  ensure: (service, targets) => balancers.ensure(cloud(), service, targets),
  updateTargets: (updates, targets) => balancers.updateTargets(cloud(), updates, targets),
  delete: (service) => balancers.remove(cloud(), service),
};
