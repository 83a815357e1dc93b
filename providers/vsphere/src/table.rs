//! Small tables in the host's state: a line for each key, its values behind tabs. Linear, since no table has more than some thousand lines.

use std::time::Duration;

use cloudwit_guest_sdk::state::{Keep, State};

/// Keys and their values. Neither can contain tabs or ends of lines; an entry with one is not kept.
#[derive(Debug, Default)]
pub struct Table {
    text: String,
    changed: bool,
}

impl Table {
    /// The table that is kept under this key, or an empty one.
    pub fn kept(state: &State, key: &str) -> Self {
        Self {
            text: state.get(key).map(|stored| stored.value).unwrap_or_default(),
            changed: false,
        }
    }

    /// Keeps it if it was changed.
    pub fn keep(&self, state: &State, key: &str, time: Duration) {
        if self.changed {
            // Of two calls at the same time one may lose what it found; it is found again.
            state.put(key, &self.text, Keep::at_most(time));
        }
    }

    /// The values of this key.
    pub fn get(&self, key: &str) -> Option<Vec<&str>> {
        self.text.lines().find_map(|line| {
            let rest = line.strip_prefix(key)?;
            match rest.strip_prefix('\t') {
                Some(values) => Some(values.split('\t').collect()),
                None if rest.is_empty() => Some(Vec::new()),
                None => None,
            }
        })
    }

    /// All keys with their first values.
    pub fn pairs(&self) -> Vec<(&str, &str)> {
        let lines = self.text.lines().filter_map(|line| line.split_once('\t'));
        let first = lines.map(|(key, values)| (key, values.split('\t').next().unwrap_or_default()));
        first.collect()
    }

    /// Sets the values of a key.
    pub fn set(&mut self, key: &str, values: &[&str]) {
        let special = |text: &str| text.contains(['\t', '\n', '\r']);
        if special(key) || values.iter().any(|value| special(value)) {
            return;
        }
        if let Some(known) = self.get(key) {
            if known == values {
                return;
            }
            let others = self.text.lines().filter(|line| line.split('\t').next() != Some(key));
            self.text = others.flat_map(|line| [line, "\n"]).collect();
        }
        self.changed = true;
        self.text.push_str(key);
        for value in values {
            self.text.push('\t');
            self.text.push_str(value);
        }
        self.text.push('\n');
    }

    /// A table of these rows, as many as fit into so many bytes; the first ones win.
    pub fn of_rows<'a>(rows: impl Iterator<Item = (&'a str, &'a str)>, bytes: usize) -> Self {
        let special = |text: &str| text.contains(['\t', '\n', '\r']);
        let mut text = String::new();
        for (key, value) in rows.filter(|(key, value)| !special(key) && !special(value)) {
            if text.len() + key.len() + value.len() + 2 > bytes {
                break;
            }
            for part in [key, "\t", value, "\n"] {
                text.push_str(part);
            }
        }
        Self { text, changed: true }
    }
}

#[cfg(test)]
mod tests {
    use cloudwit_guest_sdk::testing::FakeHost;

    use super::*;

    #[test]
    fn values_are_kept_and_replaced() {
        let host = FakeHost::new();
        let state = host.context().state();
        let mut table = Table::kept(&state, "t");
        assert_eq!(table.get("a"), None);
        table.set("a", &["1", ""]);
        table.set("ab", &["2"]);
        table.set("a", &["3"]);
        table.set("b", &["no\ttabs"]);
        table.set("c", &[]);
        table.keep(&state, "t", Duration::from_secs(60));
        let mut table = Table::kept(&state, "t");
        assert_eq!(table.get("a"), Some(vec!["3"]));
        assert_eq!(table.get("ab"), Some(vec!["2"]));
        assert_eq!((table.get("b"), table.get("c")), (None, Some(vec![])));
        assert_eq!(table.pairs(), [("ab", "2"), ("a", "3")]);
        table.set("a", &["3"]);
        assert!(!table.changed);
    }

    #[test]
    fn rows_beyond_the_bound_are_left_out() {
        let rows = [("a", "1"), ("b", "no\ttabs"), ("c", "2"), ("d", "3")];
        let table = Table::of_rows(rows.into_iter(), 11);
        assert_eq!(table.pairs(), [("a", "1"), ("c", "2")]);
    }
}
