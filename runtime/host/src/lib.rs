//! The wasm side: loads provider components and calls them, each call in a fresh instance.
