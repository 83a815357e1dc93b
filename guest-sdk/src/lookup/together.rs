//! Many ids in one request, for clouds that leave out of an answer what they do not have.

use super::{Answers, Id, Key};
use crate::types::Failure;

/// Requests these ids together and notes the answers: `ask` gives the machines that the cloud shows of these, `key` the id of one.
///
/// A wrong account or project shows nothing at all, and means nothing: what is missing is denied only where the cloud shows other machines, in this answer
/// or by `sees_any`, and only after it was requested again, since a cloud that was away just before has it. `nothing` is what to check when it shows none.
///
/// # Errors
/// Results of `ask` and `sees_any`.
pub fn ask_together_where_any<'n, M>(
    ids: &[Id<'n>],
    answers: &mut Answers<'_, M>,
    mut ask: impl FnMut(&[&str]) -> Result<Vec<M>, Failure>,
    key: impl Fn(&M) -> &str,
    sees_any: impl FnOnce() -> Result<bool, Failure>,
    nothing: &str,
) -> Result<(), Failure> {
    let any = look(ids, answers, &mut ask, &key)?;
    let missing = answers.missing(ids);
    if missing.is_empty() {
        return Ok(());
    }
    if !any && !sees_any()? {
        for id in &missing {
            answers.failed(Key::Id(id.as_str()), Failure::unavailable(nothing));
        }
        return Ok(());
    }
    look(&missing, answers, &mut ask, &key)?;
    for id in missing {
        // A machine that was found now counts before this.
        answers.denied(id);
    }
    Ok(())
}

/// Requests these, and returns whether the cloud showed any.
fn look<M>(
    ids: &[Id<'_>],
    answers: &mut Answers<'_, M>,
    ask: &mut impl FnMut(&[&str]) -> Result<Vec<M>, Failure>,
    key: &impl Fn(&M) -> &str,
) -> Result<bool, Failure> {
    let texts: Vec<&str> = ids.iter().map(Id::as_str).collect();
    let found = ask(&texts)?;
    let any = !found.is_empty();
    answers.found_all(found, |machine| Key::Id(key(machine)));
    Ok(any)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lookup::Wanted;
    use crate::types::NodeRef;

    /// What each of three ids got where the cloud shows these in turn, and how often it was called.
    fn told(shows: &[&[&str]], sees_any: Result<bool, Failure>) -> Result<(Vec<String>, usize), Failure> {
        let nodes: Vec<NodeRef> = ["1", "2", "3"]
            .map(|id| NodeRef::named("n").with_provider_id(format!("x://{id}")))
            .into();
        let keys: Vec<_> = nodes.iter().map(|node| Key::of(node, "x://")).collect();
        let wanted = Wanted::of(&nodes, &keys);
        let mut answers = Answers::to(&wanted);
        let mut asked = 0;
        let ask = |_: &[&str]| {
            asked += 1;
            let shown = shows.get(asked - 1).copied().unwrap_or_default();
            Ok(shown.iter().map(|id| (*id).to_owned()).collect())
        };
        ask_together_where_any(&wanted.ids, &mut answers, ask, |id: &String| id, || sees_any, "nothing")?;
        let word = |id: &Id<'_>| match answers.machine(Key::Id(id.as_str()), &|id: &String| id.clone()) {
            Ok(Some(id)) => id.clone(),
            Ok(None) => "denied".to_owned(),
            Err(failure) => failure.message,
        };
        Ok((wanted.ids.iter().map(word).collect(), asked))
    }

    fn words(words: [&str; 3]) -> Vec<String> {
        words.map(str::to_owned).into()
    }

    #[test]
    fn all_that_are_shown_cost_one_request() {
        assert_eq!(told(&[&["3", "1", "2"]], Ok(false)), Ok((words(["1", "2", "3"]), 1)));
    }

    #[test]
    fn what_is_missing_twice_beside_others_is_denied() {
        let seen = told(&[&["1"], &["3"]], Ok(false));
        assert_eq!(seen, Ok((words(["1", "denied", "3"]), 2)));
    }

    #[test]
    fn an_account_that_shows_nothing_denies_nothing() {
        assert_eq!(told(&[], Ok(false)), Ok((words(["nothing"; 3]), 1)));
        assert_eq!(told(&[], Ok(true)), Ok((words(["denied"; 3]), 2)));
        let down = Failure::unavailable("down");
        assert_eq!(told(&[], Err(down.clone())), Err(down));
    }
}
