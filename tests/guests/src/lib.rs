//! Providers that misbehave, each in its own way; one example each.
