//! The provider for the simulated cloud, and the worked example of a provider.
