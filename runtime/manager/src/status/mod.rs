//! The status page and `/status.json`.

pub mod facts;
pub mod html;
pub mod page;
pub mod pages;
pub mod source;
pub mod verdict;
