//! `--controllers`: which controllers run, by upstream's names and aliases.

use cloudwit_controllers::Controller;

/// The controllers that run, or one message for each entry that names none.
///
/// As upstream does it (`controller-manager app/helper.go`): the first entry that names a controller decides, `*` stands for all the rest that run by default.
pub fn select(entries: &[String]) -> Result<Vec<Controller>, Vec<String>> {
    let known = |name: &str| {
        Controller::ALL
            .into_iter()
            .find(|one| one.name() == name || one.alias() == name)
    };
    let entries: Vec<&str> = entries
        .iter()
        .map(|entry| entry.trim())
        .filter(|entry| !entry.is_empty())
        .collect();
    let wrong: Vec<String> = entries
        .iter()
        .filter(|entry| **entry != "*" && known(entry.strip_prefix('-').unwrap_or(entry)).is_none())
        .map(|entry| {
            let names = Controller::ALL.map(Controller::name);
            format!(
                "--controllers: {entry:?} is not in the list of known controllers; known: *, {}",
                names.join(", ")
            )
        })
        .collect();
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let runs = |controller: &Controller| {
        entries
            .iter()
            .find_map(|entry| match entry.strip_prefix('-') {
                Some(off) if known(off) == Some(*controller) => Some(false),
                None if known(entry) == Some(*controller) => Some(true),
                _ => None,
            })
            .unwrap_or_else(|| controller.is_on_by_default() && entries.contains(&"*"))
    };
    Ok(Controller::ALL.into_iter().filter(runs).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(list: &str) -> Result<Vec<Controller>, Vec<String>> {
        select(&list.split(',').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn a_star_stands_for_all_and_a_minus_takes_away() {
        assert_eq!(of("*").unwrap().len(), 4);
        assert_eq!(
            of("*,-service").unwrap(),
            [
                Controller::CloudNode,
                Controller::CloudNodeLifecycle,
                Controller::NodeRoute
            ]
        );
        assert_eq!(of("-node-route-controller,*").unwrap().len(), 3);
    }

    #[test]
    fn tagging_runs_only_where_it_is_named() {
        for list in ["*,tagging", "tagging-controller,*"] {
            assert_eq!(of(list).unwrap(), Controller::ALL, "{list}");
        }
        assert_eq!(of("tagging").unwrap(), [Controller::Tagging]);
        assert_eq!(of("*,-tagging,tagging").unwrap().len(), 4);
    }

    #[test]
    fn without_a_star_only_what_is_named_runs() {
        assert_eq!(
            of("cloud-node,service-lb-controller").unwrap(),
            [Controller::CloudNode, Controller::ServiceLb]
        );
        assert!(of("-service").unwrap().is_empty());
    }

    #[test]
    fn the_first_entry_for_a_name_decides() {
        assert_eq!(of("service,-service-lb-controller").unwrap(), [Controller::ServiceLb]);
        assert!(of("-service,service").unwrap().is_empty());
    }

    #[test]
    fn every_unknown_name_is_named() {
        let wrong = of("*,foo,-bar").unwrap_err();
        assert_eq!(wrong.len(), 2);
        assert!(
            wrong[0].contains("\"foo\" is not in the list of known controllers"),
            "{wrong:?}"
        );
        assert!(wrong[1].contains("\"-bar\""), "{wrong:?}");
    }
}
