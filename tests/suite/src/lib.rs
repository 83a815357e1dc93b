//! Tests that cross crates: layering, hostile guests, egress, the controllers on a real API server.
