//! Authentication and authorization of requests.

pub mod authentication;
pub mod authorization;
#[cfg(test)]
pub mod fake_reviews;
pub mod metrics;
pub mod proxy_headers;
pub mod review_cache;
pub mod review_gate;
pub mod reviews;
pub mod user;
