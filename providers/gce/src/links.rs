//! URLs of Compute Engine's resources: answers have whole ones, requests take parts, and the host differs.

/// What follows `.../v1/`: `projects/p/zones/z/instances/i`. The text itself where it has no project.
///
/// ```text
/// https://www.googleapis.com/compute/v1/projects/p/zones/z -> projects/p/zones/z
/// ```
pub fn tail(link: &str) -> &str {
    let start = link.find("/projects/").map_or(0, |at| at + 1);
    link.get(start..).unwrap_or(link)
}

/// The last part: the name of a zone, a machine type, a network.
pub fn name(link: &str) -> &str {
    link.rsplit('/').next().unwrap_or(link)
}

/// What follows this part: `part("projects/p/zones/z", "zones")` is `z`.
pub fn part<'a>(link: &'a str, after: &str) -> Option<&'a str> {
    let mut parts = link.split('/');
    parts.find(|part| *part == after)?;
    parts.next().filter(|part| !part.is_empty())
}

/// The region of a zone: without what follows the last dash.
pub fn region_of(zone: &str) -> Option<&str> {
    let (region, letter) = zone.rsplit_once('-')?;
    (region.contains('-') && !letter.is_empty() && !zone.contains('/')).then_some(region)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_the_same_on_every_host() {
        for link in [
            "https://www.googleapis.com/compute/v1/projects/p/zones/z-1-a/instances/i",
            "https://compute.googleapis.com/compute/v1/projects/p/zones/z-1-a/instances/i",
            "projects/p/zones/z-1-a/instances/i",
        ] {
            assert_eq!(tail(link), "projects/p/zones/z-1-a/instances/i");
            assert_eq!((name(link), part(link, "zones")), ("i", Some("z-1-a")));
        }
        assert_eq!((tail("i"), name("i"), part("i", "zones")), ("i", "i", None));
    }

    #[test]
    fn a_region_is_a_zone_without_its_letter() {
        assert_eq!(region_of("us-central1-b"), Some("us-central1"));
        assert_eq!(region_of("europe-west10-a"), Some("europe-west10"));
        for wrong in ["", "us", "us-central1", "us-central1-", "zones/us-central1-a"] {
            assert_eq!(region_of(wrong), None, "{wrong}");
        }
    }
}
