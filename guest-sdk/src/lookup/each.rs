//! Ids one by one, for clouds that have no filter for several.

use super::{Answers, Id, Key};
use crate::types::Failure;

/// Requests each of these ids by itself and notes the answers; `ask` gives none where the cloud reports it as not found.
///
/// After a failure that the next request would meet too (too many requests, cloud down, no rights) the others are not requested and fail like it, as
/// those do beyond the first `most`: many ids that a listing does not have are no machines that are gone, but another account or region.
pub fn ask_each<M>(
    ids: &[Id<'_>],
    most: usize,
    answers: &mut Answers<'_, M>,
    mut ask: impl FnMut(&str) -> Result<Option<M>, Failure>,
) {
    let mut stop = None;
    for (asked, id) in ids.iter().enumerate() {
        if asked == most {
            let text = format!("more than {most} machines are missing; is this the right account, project and region?");
            stop.get_or_insert(Failure::unavailable(text));
        }
        let key = Key::Id(id.as_str());
        match stop.clone().map_or_else(|| ask(id.as_str()), Err) {
            Ok(Some(machine)) => answers.found(key, machine),
            Ok(None) => answers.denied(*id),
            Err(failure) => {
                if failure.is_shared() {
                    stop.get_or_insert(failure.clone());
                }
                answers.failed(key, failure);
            }
        }
    }
}

/// The same for a cloud whose "not found" is also the answer for a wrong project, account or proxy: an id is denied only where `sees_any` confirms that the cloud
/// shows other machines. It is called once, and only when an id is missing, which is then requested again: a cloud that was away just before has it.
/// `nothing` is what to check when it shows none.
pub fn ask_each_where_any<M>(
    ids: &[Id<'_>],
    most: usize,
    answers: &mut Answers<'_, M>,
    mut ask: impl FnMut(&str) -> Result<Option<M>, Failure>,
    sees_any: impl Fn() -> Result<bool, Failure>,
    nothing: &str,
) {
    let mut seen = None;
    ask_each(ids, most, answers, |id| {
        let mut found = ask(id)?;
        if found.is_none() && seen.is_none() {
            let sees_any = *seen.insert(sees_any()?);
            if sees_any {
                found = ask(id)?;
            }
        }
        match seen {
            Some(false) if found.is_none() => Err(Failure::unavailable(nothing)),
            _ => Ok(found),
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lookup::Wanted;
    use crate::types::NodeRef;

    fn nodes(count: usize) -> Vec<NodeRef> {
        let node = |number| NodeRef::named("n").with_provider_id(format!("x://{number}"));
        (0..count).map(node).collect()
    }

    /// What each id got: a machine, nothing, or a failure; and how many were requested.
    fn told(count: usize, most: usize, ask: impl Fn(&str) -> Result<Option<()>, Failure>) -> (Vec<String>, usize) {
        let mut asked = 0;
        let told = words(count, |ids, answers| {
            ask_each(ids, most, answers, |id| {
                asked += 1;
                ask(id)
            });
        });
        (told, asked)
    }

    fn words(count: usize, ask: impl FnOnce(&[Id<'_>], &mut Answers<'_, ()>)) -> Vec<String> {
        let nodes = nodes(count);
        let keys: Vec<_> = nodes.iter().map(|node| Key::of(node, "x://")).collect();
        let wanted = Wanted::of(&nodes, &keys);
        let mut answers = Answers::to(&wanted);
        ask(&wanted.ids, &mut answers);
        let word = |id: &Id<'_>| match answers.machine(Key::Id(id.as_str()), &|()| String::new()) {
            Ok(Some(())) => "there".to_owned(),
            Ok(None) => "denied".to_owned(),
            Err(failure) => failure.message,
        };
        wanted.ids.iter().map(word).collect()
    }

    #[test]
    fn an_account_that_shows_no_machine_denies_none() {
        let with = |sees_any: Result<bool, Failure>| {
            let looks = std::cell::Cell::new(0);
            let told = words(3, |ids, answers| {
                let ask = |id: &str| Ok((id == "0").then_some(()));
                let sees_any = || {
                    looks.set(looks.get() + 1);
                    sees_any.clone()
                };
                ask_each_where_any(ids, 9, answers, ask, sees_any, "the wrong project?");
            });
            (told, looks.get())
        };
        let told = |words: [&str; 3]| words.map(str::to_owned).to_vec();
        assert_eq!(with(Ok(true)), (told(["there", "denied", "denied"]), 1));
        let wrong = "the wrong project?";
        assert_eq!(with(Ok(false)), (told(["there", wrong, wrong]), 1));
        let down = Err(Failure::unavailable("down"));
        assert_eq!(with(down), (told(["there", "down", "down"]), 1));
    }

    #[test]
    fn missing_is_requested_again_after_other_machines_appeared() {
        for (again, expected) in [
            (Ok(Some(())), "there"),
            (Ok(None), "denied"),
            (Err(Failure::unavailable("away")), "away"),
        ] {
            let asked = std::cell::Cell::new(0);
            let told = words(1, |ids, answers| {
                let ask = |_: &str| {
                    asked.set(asked.get() + 1);
                    if asked.get() == 1 { Ok(None) } else { again.clone() }
                };
                ask_each_where_any(ids, 9, answers, ask, || Ok(true), "the wrong project?");
            });
            assert_eq!((told, asked.get()), (vec![expected.to_owned()], 2));
        }
    }

    #[test]
    fn each_id_has_its_own_answer() {
        let (told, asked) = told(3, 9, |id| match id {
            "0" => Ok(Some(())),
            "1" => Ok(None),
            _ => Err(Failure::other("odd")),
        });
        assert_eq!((told, asked), (vec!["there".into(), "denied".into(), "odd".into()], 3));
    }

    #[test]
    fn cloud_that_is_down_gets_one_request_and_denies_nothing() {
        let (told, asked) = told(3, 9, |_| Err(Failure::unavailable("down")));
        assert_eq!((told, asked), (vec!["down".to_owned(); 3], 1));
    }

    #[test]
    fn so_many_that_are_missing_are_a_mistake_of_the_account() {
        let (told, asked) = told(4, 2, |_| Ok(None));
        assert_eq!((&told[..2], asked), (&["denied".to_owned(), "denied".into()][..], 2));
        assert!(
            told[2].starts_with("more than 2 machines") && told[2] == told[3],
            "{told:?}"
        );
    }
}
