//! The HTTPS server, and the plain one on loopback.

pub mod access;
pub mod admin;
pub mod admission;
pub mod configz;
pub mod connections;
pub mod explain_pages;
pub mod health;
pub mod https;
pub mod pages;
pub mod tls;
