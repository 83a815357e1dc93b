//! What counts beside `volumes`: they grow, are listed and changed; snapshots; room.

use std::collections::BTreeMap;

use cloudwit_model::volume::{CapacityQuery, NewSnapshot, NewVolume, Snapshot, Volume, VolumeFeature, VolumeSource};
use cloudwit_model::{Cloud as _, VolumeCloud as _};

use crate::commands::conformance::report::{Promise, Report};
use crate::commands::conformance::volumes::{FOREIGN, NAME, VolumeTrial, label};

/// Pages of a list that are followed.
const MOST_PAGES: usize = 1000;

/// Tries what the component exports.
pub async fn run(trial: &VolumeTrial<'_>, made: &Volume, report: &mut Report) {
    let abilities = trial.trial.provider.abilities().volumes;
    if trial.driver.has(VolumeFeature::Clone) {
        let mut promise = Promise::of("volumes", "a volume is made of another, and says of which");
        let source = VolumeSource::Volume(made.id.clone());
        copied(trial, source, made.size, &mut promise).await;
        report.add(promise);
    }
    if abilities.listing {
        listed(trial, made, report).await;
    }
    if abilities.snapshots {
        snapshots(trial, made, report).await;
    }
    if abilities.modification {
        modified(trial, made, report).await;
    }
    if abilities.capacity {
        let mut promise = Promise::of("volume-capacity", "the capacity for volumes is reported");
        let at = trial.nodes.first().map(|node| node.topology.clone());
        let query = CapacityQuery {
            at,
            ..CapacityQuery::default()
        };
        let room = promise.answered(trial.trial.provider.volume_capacity(&query).await);
        let enough = room.is_none_or(|room| room.available >= trial.driver.smallest);
        promise.holds(enough, || {
            format!("there is no room for a volume, and one was made: {room:?}")
        });
        report.add(promise);
    }
    if abilities.expansion {
        expanded(trial, made, report).await;
    }
}

/// Makes a volume of a source, and deletes it.
async fn copied(trial: &VolumeTrial<'_>, source: VolumeSource, size: u64, promise: &mut Promise) {
    let new = NewVolume {
        source: Some(source),
        size: trial.size(size),
        ..trial.wanted("cloudwit-conformance-copy")
    };
    if let Some(copy) = promise.answered(trial.create(&trial.trial.provider, &new).await) {
        let said = copy.source.is_none() || copy.source == new.source;
        promise.holds(said, || format!("made of {:?}, it says {:?}", new.source, copy.source));
        promise.answered(trial.delete(&copy.id).await);
    }
}

async fn expanded(trial: &VolumeTrial<'_>, made: &Volume, report: &mut Report) {
    const PART: &str = "volume-expansion";
    let (provider, larger) = (&trial.trial.provider, made.size + trial.driver.size_step);
    let mut promise = Promise::of(PART, "a volume grows, and one that is large enough stays");
    for size in [larger, larger, made.size] {
        let range = trial.size(size);
        let expand = |token: Option<String>| async move {
            let token = token.as_deref();
            provider.expand_volume(&made.id, range, token, &trial.none).await
        };
        promise.answered(trial.trial.until_done(expand).await);
        let found = trial.get(&made.id, &mut promise).await;
        let right = found.as_ref().is_some_and(|found| found.size >= larger);
        promise.holds(right, || format!("desired were {larger} bytes, found is {found:?}"));
    }
    report.add(promise);

    let mut promise = Promise::of(PART, "one that does not exist is not-found");
    let refused = provider
        .expand_volume(FOREIGN, trial.size(larger), None, &trial.none)
        .await;
    promise.holds(label(&refused) == "not_found", || format!("{refused:?}"));
    report.add(promise);
}

async fn listed(trial: &VolumeTrial<'_>, made: &Volume, report: &mut Report) {
    const PART: &str = "volume-listing";
    let provider = &trial.trial.provider;
    let mut promise = Promise::of(
        PART,
        "pages of one volume lead to the end, and the volume is on one of them, once",
    );
    let (mut after, mut found, mut pages) = (None::<String>, 0, 0);
    loop {
        let Some(page) = promise.answered(provider.list_volumes(after.as_deref(), 1).await) else {
            break;
        };
        found += page.items.iter().filter(|volume| volume.id == made.id).count();
        pages += 1;
        match page.next {
            Some(next) if pages < MOST_PAGES => after = Some(next),
            Some(_) => {
                promise.holds(false, || format!("the list has no end after {pages} pages"));
                break;
            }
            None => break,
        }
    }
    promise.holds(found == 1, || format!("it is listed {found} times"));
    report.add(promise);

    let mut promise = Promise::of(PART, "a page that begins nowhere is aborted");
    let refused = provider.list_volumes(Some("cloudwit-no-such-page"), 1).await;
    promise.holds(label(&refused) == "aborted", || format!("{refused:?}"));
    report.add(promise);
}

async fn modified(trial: &VolumeTrial<'_>, made: &Volume, report: &mut Report) {
    let mut promise = Promise::of("volume-modification", "an unknown parameter is invalid");
    let parameters = BTreeMap::from([("cloudwit-no-such-parameter".to_owned(), "x".to_owned())]);
    let refused = trial
        .trial
        .provider
        .modify_volume(&made.id, &parameters, None, &trial.none)
        .await;
    promise.holds(label(&refused) == "invalid", || format!("{refused:?}"));
    report.add(promise);
}

async fn snapshots(trial: &VolumeTrial<'_>, made: &Volume, report: &mut Report) {
    const PART: &str = "volume-snapshots";
    let provider = &trial.trial.provider;
    let new = NewSnapshot {
        name: NAME.into(),
        volume: made.id.clone(),
        ..NewSnapshot::default()
    };
    let mut promise = Promise::of(PART, "a snapshot is made once, and becomes ready");
    let create = |token: Option<String>| {
        let new = &new;
        async move { provider.create_snapshot(new, token.as_deref(), &trial.none).await }
    };
    let first = promise.answered(trial.trial.until_done(create).await);
    let second = promise.answered(trial.trial.until_done(create).await);
    let (Some(first), Some(second)) = (first, second) else {
        return report.add(promise);
    };
    promise.holds(first.id == second.id, || format!("{first:?} and {second:?}"));
    promise.holds(first.volume == made.id, || {
        format!("it is of {:?}, not {:?}", first.volume, made.id)
    });
    let ready = ready(trial, &first, &mut promise).await;
    promise.holds(ready, || format!("{} does not become ready", first.id));
    report.add(promise);

    let mut promise = Promise::of(PART, "a volume is made of it, and says of which");
    copied(
        trial,
        VolumeSource::Snapshot(first.id.clone()),
        first.size,
        &mut promise,
    )
    .await;
    report.add(promise);

    let mut promise = Promise::of(
        PART,
        "it is listed with its volume, and get has the order of the request",
    );
    let page = promise.answered(provider.list_snapshots(Some(&made.id), None, 10, &trial.none).await);
    let is_listed = page
        .as_ref()
        .is_some_and(|page| page.items.iter().any(|one| one.id == first.id));
    promise.holds(is_listed, || format!("{page:?}"));
    let ids = [FOREIGN, &first.id].map(str::to_owned);
    if let Some(found) = promise.answered(provider.get_snapshots(&ids, &trial.none).await) {
        let right = matches!(found.as_slice(), [Ok(None), Ok(Some(found))] if found.id == first.id);
        promise.holds(right, || format!("{found:?}"));
    }
    report.add(promise);

    let mut promise = Promise::of(PART, "a snapshot of a volume that does not exist is not-found");
    let other = NewSnapshot {
        name: "cloudwit-conformance-none".into(),
        volume: FOREIGN.into(),
        ..NewSnapshot::default()
    };
    let refused = provider.create_snapshot(&other, None, &trial.none).await;
    promise.holds(label(&refused) == "not_found", || format!("{refused:?}"));
    report.add(promise);

    let mut promise = Promise::of(
        PART,
        "delete takes it away, and deleting what does not exist is success",
    );
    for id in [&first.id, &first.id, FOREIGN] {
        let delete =
            |token: Option<String>| async move { provider.delete_snapshot(id, token.as_deref(), &trial.none).await };
        promise.answered(trial.trial.until_done(delete).await);
    }
    if let Some(left) = promise.answered(
        provider
            .get_snapshots(std::slice::from_ref(&first.id), &trial.none)
            .await,
    ) {
        promise.holds(matches!(left.as_slice(), [Ok(None)]), || format!("left is {left:?}"));
    }
    report.add(promise);
}

/// Waits until volumes can be made of it.
async fn ready(trial: &VolumeTrial<'_>, snapshot: &Snapshot, promise: &mut Promise) -> bool {
    let provider = &trial.trial.provider;
    let ids = std::slice::from_ref(&snapshot.id);
    let look = |_: Option<String>| async move {
        let found = provider.get_snapshots(ids, &trial.none).await?.pop();
        match found {
            Some(Ok(Some(Snapshot { ready: false, .. }))) => Err(cloudwit_model::Failure::Pending {
                after: std::time::Duration::from_millis(500),
                token: String::new(),
                message: "not ready".into(),
            }
            .into()),
            Some(Ok(Some(_))) => Ok(true),
            _ => Ok(false),
        }
    };
    promise.answered(trial.trial.until_done(look).await).unwrap_or_default()
}
