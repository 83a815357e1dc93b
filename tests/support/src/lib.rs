//! Starts what tests need: an API server, a simulated cloud, guest components; and waits for conditions.
