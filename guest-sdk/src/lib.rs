//! What the author of a Cloudwit provider imports.
