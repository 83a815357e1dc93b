//! Whether `runtime/manager/link_order.ld` still fits the static binary: the list of functions that run, which the linker puts side by side.
//!
//! The linker says in its map which names of the list it found (`runtime/manager/build.rs` asks for the map). Names that are gone do no harm, but
//! what runs instead of them lies elsewhere, and idle memory grows.

use std::path::Path;

use anyhow::{Context, Result, bail};

/// Fewer names that are found mean that the list is old, in percent. A new list has 100, and a few changes of dependencies leave 98.
const ENOUGH: usize = 90;

/// How the list is made anew.
const RENEW: &str = "runtime/manager/record_link_order.py tells how to record it again";

/// What to tell about the list, by the linker's map.
///
/// # Errors
///
/// When there is no map, or the list is not in it.
pub fn told(map: &Path) -> Result<String> {
    let text = std::fs::read(map).with_context(|| format!("reading the linker's map {}", map.display()))?;
    match note(&String::from_utf8_lossy(&text)) {
        Some(note) => Ok(note),
        None => bail!(
            "{} does not have .text.runs, the section of link_order.ld",
            map.display()
        ),
    }
}

fn note(map: &str) -> Option<String> {
    let (found, all) = found(map);
    let percent = (found * 100).checked_div(all)?;
    let note = format!("{found} of {all} names in link_order.ld are in the binary");
    Some(match percent < ENOUGH {
        true => format!("WARNING: {note}, so that it needs more memory while it idles; {RENEW}"),
        false => note,
    })
}

/// How many names of the list have a function, and how many there are. In the map of GNU ld each is a line ` *(.text.NAME)`, followed by its
/// functions.
fn found(map: &str) -> (usize, usize) {
    let (mut found, mut all) = (0, 0);
    let mut open = false;
    let lines = map.lines().skip_while(|line| !line.starts_with(".text.runs"));
    for line in lines.skip(1).take_while(|line| line.starts_with(' ')) {
        if line.starts_with(" *(") {
            all += 1;
            open = true;
        } else if open && line.starts_with(" .text") {
            found += 1;
            open = false;
        }
    }
    (found, all)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAP: &str = "\
Linker script and memory map

.text.elsewhere 0x1 0x2
 *(.text.other)

.text.runs      0x0000000000005040   0xa8ea56
 *(.text._start)
 .text._start   0x0000000000005040       0x16 /rcrt1.o
 *fill*         0x0000000000005056        0xa cc
 *(.text.gone)
 *(.text.long_name_of_a_function*)
 .text.long_name_of_a_function_1
                0x0000000000005060       0x20 /a.o
                0x0000000000005060                long_name_of_a_function_1
 .text.long_name_of_a_function_2
                0x0000000000005080       0x20 /a.o
 *(.text.gone_too)

.text           0x0000000000b00000   0x123456
 *(.text.unlikely)
 .text.unlikely 0x0000000000b00000       0x16 /b.o
";

    #[test]
    fn names_with_a_function_are_counted_once() {
        assert_eq!(found(MAP), (2, 4));
        assert_eq!(found(".text 0x1\n *(.text.a)\n"), (0, 0));
    }

    #[test]
    fn a_list_of_which_much_is_gone_is_told_with_the_cure() {
        let old = note(MAP).expect("the list is in it");
        assert!(old.starts_with("WARNING: 2 of 4 names"), "{old}");
        assert!(old.contains("record_link_order.py"), "{old}");
        let good = MAP.replace(" *(.text.gone)\n", "").replace(" *(.text.gone_too)\n", "");
        let good = note(&good).expect("the list is in it");
        assert_eq!(good, "2 of 2 names in link_order.ld are in the binary");
        assert_eq!(note(""), None);
    }
}
