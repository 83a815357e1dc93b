//! Takes names out of a component that nothing reads.
//!
//! `wasm-component-ld` writes a name for each of some hundred items that tie modules and interfaces together (custom section `component-name`,
//! 12 KB in a provider) and has no option against it. Neither the host nor `cloudwit inspect` looks at them; backtraces take theirs from the modules.
//! Called by `guests.rs` on what it has built.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// Sections begin behind the magic number, the version and the layer.
const HEADER: usize = 8;

/// The id of custom sections.
const CUSTOM: u8 = 0;

/// The custom section's name.
const NAMES: &[u8] = b"component-name";

/// Takes the names out of this file, which stays the same file: cargo has a second link to it.
pub fn drop_from(file: &Path) -> Result<()> {
    let component = fs::read(file).with_context(|| format!("reading {}", file.display()))?;
    let smaller = without_names(&component).with_context(|| format!("{} is cut or no component", file.display()))?;
    if smaller.len() < component.len() {
        fs::write(file, smaller).with_context(|| format!("writing {}", file.display()))?;
    }
    Ok(())
}

/// The same without the outermost sections of that name; none for what ends in the middle of a section.
fn without_names(component: &[u8]) -> Option<Vec<u8>> {
    let mut kept = component.get(..HEADER)?.to_vec();
    let mut rest = &component[HEADER..];
    while let Some((id, behind)) = rest.split_first() {
        let (length, content) = number(behind)?;
        let (content, next) = content.split_at_checked(length)?;
        if *id != CUSTOM || number(content).is_none_or(|(length, name)| name.get(..length) != Some(NAMES)) {
            kept.extend_from_slice(&rest[..rest.len() - next.len()]);
        }
        rest = next;
    }
    Some(kept)
}

/// An unsigned LEB128 number, and what is behind it.
fn number(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut value = 0;
    // Sizes have 32 bits at most: five groups of seven.
    for (index, byte) in bytes.iter().enumerate().take(5) {
        value |= usize::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Some((value, &bytes[index + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: [u8; HEADER] = *b"\0asm\x0d\0\x01\0";

    fn section(id: u8, content: &[u8]) -> Vec<u8> {
        // Two bytes for the length, as long ones have.
        let length = [content.len() as u8 | 0x80, (content.len() >> 7) as u8];
        [&[id], &length[..], content].concat()
    }

    #[test]
    fn only_the_section_with_names_is_dropped() {
        let types = section(7, b"component-name is not the name of this one");
        let names = section(CUSTOM, b"\x0ecomponent-name and names");
        let producers = section(CUSTOM, b"\x09producers and versions");
        let component = [&START[..], &types, &names, &producers].concat();
        let smaller = without_names(&component).unwrap();
        assert_eq!(smaller, [&START[..], &types, &producers].concat());
        assert_eq!(without_names(&smaller).unwrap(), smaller);
    }

    #[test]
    fn what_ends_within_a_section_is_left_alone() {
        let names = section(CUSTOM, b"\x0ecomponent-name and names");
        let component = [&START[..], &names].concat();
        for end in [3, HEADER + 1, component.len() - 1] {
            assert_eq!(without_names(&component[..end]), None, "{end}");
        }
    }
}
