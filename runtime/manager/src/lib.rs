//! The cloud-controller-manager whose cloud providers are WebAssembly components.
