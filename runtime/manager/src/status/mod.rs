//! The status page and `/status.json`.

pub mod causes;
pub mod explain_page;
pub mod facts;
pub mod frame;
pub mod page;
pub mod pages;
pub mod sections;
pub mod source;
pub mod table;
pub mod verdict;
