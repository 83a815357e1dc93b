//! The Kubernetes side: watches, queues, the four controllers, the only writer.
