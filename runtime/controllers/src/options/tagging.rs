//! What an operator can set about tags on the machines of Nodes.

use cloudwit_model::Tags;

/// Tags on the machines of Nodes.
#[derive(Debug, Clone)]
pub struct TaggingOptions {
    /// The tags.
    pub tags: Tags,
    /// How fast machines are tagged; none: as fast as they come.
    pub rate: Option<Rate>,
    /// Nodes whose label is written at the same time.
    pub concurrent_syncs: usize,
}

impl Default for TaggingOptions {
    fn default() -> Self {
        Self {
            tags: Tags::new(),
            rate: None,
            concurrent_syncs: 1,
        }
    }
}

/// A rate of work: `per_second` on average, `burst` at once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// Items in a second; more than nothing.
    pub per_second: f64,
    /// Items that may come at once; at least 1.
    pub burst: u32,
}
