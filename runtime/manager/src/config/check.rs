//! Check of the configuration file against the table of keys: all mistakes at once, each with its line.

use jiff::SignedDuration;

use crate::config::keys::{FILE, Key, Shape};
use crate::config::tree::{Tree, Value};

/// Finds everything that cannot stand where it stands. `file` is named in each mistake.
pub fn mistakes(file: &str, tree: &Tree) -> Vec<String> {
    let mut check = Check {
        file,
        mistakes: Vec::new(),
    };
    check.value(tree, &FILE, "");
    check.mistakes
}

struct Check<'a> {
    file: &'a str,
    mistakes: Vec<String>,
}

impl Check<'_> {
    fn wrong(&mut self, line: u64, path: &str, what: &str) {
        let path = if path.is_empty() { "the file" } else { path };
        self.mistakes.push(format!("{}:{line}: {path}: {what}", self.file));
    }

    fn value(&mut self, tree: &Tree, shape: &Shape, path: &str) {
        match (shape, &tree.value) {
            (Shape::Keys(keys), Value::Map(entries)) => self.keys(tree.line, entries, keys, path),
            (Shape::List(shape), Value::List(items)) => {
                for (at, item) in items.iter().enumerate() {
                    self.value(item, shape, &format!("{path}[{at}]"));
                }
            }
            (Shape::Texts, Value::Map(entries)) => {
                for (name, _, item) in entries {
                    self.value(item, &Shape::Text, &join(path, name));
                }
            }
            (Shape::Word(words), Value::Text(text)) if !words.contains(&text.as_str()) => {
                let list = words.join(", ");
                self.wrong(
                    tree.line,
                    path,
                    &format!("{text:?} is not known; write {list}{}", nearest(text, words)),
                );
            }
            (Shape::Whole(least, most), Value::Whole(number))
                if !(i128::from(*least)..=i128::from(*most)).contains(number) =>
            {
                self.wrong(
                    tree.line,
                    path,
                    &format!("{number} is out of range; give {least} to {most}"),
                );
            }
            (Shape::Duration(least, most), Value::Text(text)) => self.duration(tree.line, path, text, *least, *most),
            (Shape::Text | Shape::Word(_), Value::Text(_))
            | (Shape::Flag, Value::Flag)
            | (Shape::Whole(..), Value::Whole(_))
            | (Shape::Decimal, Value::Whole(_) | Value::Decimal) => {}
            (shape, value) => {
                let quotes = match (shape, value) {
                    (Shape::Text | Shape::Word(_), Value::Whole(_) | Value::Decimal | Value::Flag) => {
                        "; put it into quotes"
                    }
                    _ => "",
                };
                self.wrong(
                    tree.line,
                    path,
                    &format!(
                        "{} is not allowed here; expected {}{quotes}",
                        value.kind(),
                        shape.kind()
                    ),
                );
            }
        }
    }

    fn duration(&mut self, line: u64, path: &str, text: &str, least: u64, most: u64) {
        let Ok(duration) = text.parse::<SignedDuration>() else {
            let what = format!("{text:?} is no duration; write for example 5s or 500ms");
            return self.wrong(line, path, &what);
        };
        if !(i128::from(least)..=i128::from(most)).contains(&duration.as_millis()) {
            self.wrong(
                line,
                path,
                &format!("{text} is out of range; give {least} to {most} ms"),
            );
        }
    }

    fn keys(&mut self, line: u64, entries: &[(String, u64, Tree)], keys: &[Key], path: &str) {
        for (name, line, value) in entries {
            match keys.iter().find(|key| key.name == name) {
                Some(key) => self.value(value, &key.shape, &join(path, name)),
                None => {
                    let names: Vec<&str> = keys.iter().map(|key| key.name).collect();
                    let what = format!("unknown key{}; known: {}", nearest(name, &names), names.join(", "));
                    self.wrong(*line, &join(path, name), &what);
                }
            }
        }
        for key in keys.iter().filter(|key| key.required) {
            if !entries.iter().any(|(name, ..)| name == key.name) {
                self.wrong(
                    line,
                    &join(path, key.name),
                    &format!("is missing; expected {}", key.shape.kind()),
                );
            }
        }
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

/// The known word that was probably meant.
fn nearest(word: &str, known: &[&str]) -> String {
    let plain = |text: &str| text.to_lowercase().replace(['-', '_'], "");
    let likeness = |one: &&str| strsim::jaro_winkler(&plain(word), &plain(one));
    let best = known
        .iter()
        .copied()
        .max_by(|one, other| likeness(one).total_cmp(&likeness(other)));
    best.filter(|best| likeness(best) > 0.75)
        .map(|best| format!(", did you mean {best}?"))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
