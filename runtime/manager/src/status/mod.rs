//! The status page and `/status.json`.

pub mod facts;
pub mod page;
pub mod pages;
pub mod sections;
pub mod source;
pub mod table;
pub mod verdict;
