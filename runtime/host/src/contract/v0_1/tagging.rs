//! Calls about tags on machines.

use cloudwit_model::volume_cloud::Each;
use cloudwit_model::{NodeRef, TagChange, Tags};
use wasmtime::Store;

use crate::call::answer::limits;
use crate::call::answer::{self, Checked, Screen};
use crate::call::instance::CallState;
use crate::call::walk::Walk;
use crate::contract::adapter::{CallError, Reply};
use crate::contract::v0_1::generated::cloudwit::provider::common::Failure;
use crate::contract::v0_1::{V0_1, answers, convert, converted};

impl V0_1 {
    pub(super) fn changed_tags<'a>(
        &'a self,
        store: &'a mut Store<CallState>,
        change: TagChange,
        nodes: &'a [NodeRef],
        tags: &'a Tags,
    ) -> Reply<'a, Each<()>> {
        Box::pin(async move {
            let (redactor, mut walk) = (store.data().log.redactor(), Walk::default());
            let found = self.tagging.as_ref().ok_or(CallError::NotExported("tagging"))?;
            let instance = self.instantiate(store).await?;
            let guest = found.load(&mut *store, &instance)?;
            let (asked, tags): (Vec<_>, _) = (nodes.iter().map(convert::node_ref).collect(), convert::pairs(tags));
            let (what, result) = match change {
                TagChange::Add => ("tagging.tag", guest.call_tag(store, &asked, &tags).await?),
                TagChange::Remove => ("tagging.untag", guest.call_untag(store, &asked, &tags).await?),
            };
            let screen = Screen(&redactor);
            converted(screen, result, |results| {
                changed(screen, &mut walk, (what, nodes.len()), results)
            })
            .await
        })
    }
}

/// One result for each machine.
pub(super) async fn changed(
    screen: Screen<'_>,
    walk: &mut Walk,
    (what, asked): (&str, usize),
    results: Vec<Result<(), Failure>>,
) -> Checked<Each<()>> {
    answer::same_length(what, asked, results.len())?;
    let mut all = Vec::with_capacity(asked);
    for result in results {
        walk.next(result.as_ref().map_or(limits::MESSAGE, |()| 0)).await;
        all.push(answers::item(screen, result.map(Ok)));
    }
    Ok(all)
}
