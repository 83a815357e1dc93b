//! Resource ids: `/subscriptions/SUB/resourceGroups/GROUP/providers/NAMESPACE/TYPE/NAME[/TYPE/NAME]`. Their case varies between services, so names are
//! compared without it.

/// The name behind a type in an id; none where the id has no such part.
pub fn part<'a>(id: &'a str, kind: &str) -> Option<&'a str> {
    let mut parts = id.trim_matches('/').split('/');
    while let Some(key) = parts.next() {
        let value = parts.next()?;
        if key.eq_ignore_ascii_case(kind) {
            return Some(value).filter(|value| !value.is_empty());
        }
    }
    None
}

/// The last name of an id.
pub fn name(id: &str) -> &str {
    id.rsplit('/').next().unwrap_or(id)
}

/// The same id for comparisons.
pub fn folded(id: &str) -> String {
    id.to_ascii_lowercase()
}

/// The id with its resource group in small letters, as upstream writes provider ids.
pub fn with_small_group(id: &str) -> String {
    match part(id, "resourceGroups") {
        Some(group) => id.replacen(&format!("/{group}/"), &format!("/{}/", group.to_ascii_lowercase()), 1),
        None => id.into(),
    }
}
