//! A simulated cloud over HTTP: machines, load balancers, routes, and faults on demand.
