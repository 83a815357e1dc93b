//! Names, addresses and connections: destinations, DNS, special addresses, TLS, the HTTP client.

pub mod client;
pub(crate) mod connect_deadline;
pub mod destination;
pub mod dns;
pub(crate) mod http_error;
pub mod resolver;
pub(crate) mod special_address;
pub(crate) mod tls;
pub mod wire;

#[cfg(test)]
pub(crate) mod testing;
