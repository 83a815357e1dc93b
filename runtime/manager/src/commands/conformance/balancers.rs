//! `load-balancers`: made once, found again, brought up to date, gone.

use std::collections::BTreeMap;

use cloudwit_host::Provider;
use cloudwit_model::{Balancer, Cloud as _, Failure, Ingress, Service, TargetUpdate};

use crate::commands::conformance::report::{Promise, Report};
use crate::commands::conformance::trial::{Trial, repeated};

const PART: &str = "load-balancers";

/// Tries them. What is made is deleted in the end.
pub async fn run(trial: &Trial, report: &mut Report) {
    name(trial, report).await;
    absent(trial, "before it is made", report).await;
    let made = ensure(
        trial,
        &trial.provider,
        "ensure makes a load balancer with an address",
        report,
    )
    .await;
    found(trial, made.as_deref(), report).await;
    again(trial, made.as_deref(), report).await;
    update(trial, made.as_deref(), report).await;
    update_many(trial, report).await;
    delete(trial, "delete takes it away", report).await;
    absent(trial, "after it was deleted", report).await;
    delete(trial, "deleting what is gone is success", report).await;
    interrupted(trial, report).await;
}

async fn name(trial: &Trial, report: &mut Report) {
    let mut promise = Promise::of(PART, "name is the same each time and needs no network");
    trial.faults.requests();
    let first = promise.answered(trial.provider.balancer_name(&trial.service).await);
    let second = promise.answered(trial.provider.balancer_name(&trial.service).await);
    promise.holds(first == second, || format!("{first:?} and {second:?}"));
    let requests = trial.faults.requests();
    promise.holds(requests == 0, || format!("it made {requests} requests"));
    report.add(promise);
}

async fn absent(trial: &Trial, when: &str, report: &mut Report) {
    let mut promise = Promise::of(PART, format!("get finds nothing {when}"));
    if let Some(found) = promise.answered(trial.provider.get_balancer(&trial.service).await) {
        promise.holds(found.is_none(), || format!("{found:?}"));
    }
    report.add(promise);
}

async fn ensured(trial: &Trial, provider: &Provider) -> Result<Balancer, String> {
    let targets = trial.targets();
    let targets = targets.as_slice();
    trial
        .until_done(|token| async move {
            let token = token.as_deref();
            match provider.ensure_balancer(&trial.service, targets, token).await? {
                Balancer {
                    remaining: Some(work), ..
                } => Err(Failure::from(work).into()),
                done => Ok(done),
            }
        })
        .await
}

async fn ensure(trial: &Trial, provider: &Provider, text: &str, report: &mut Report) -> Option<Vec<Ingress>> {
    let mut promise = Promise::of(PART, text);
    let made = promise.answered(ensured(trial, provider).await);
    report.add(promise);
    made.map(|balancer| balancer.ingress)
}

async fn found(trial: &Trial, made: Option<&[Ingress]>, report: &mut Report) {
    let mut promise = Promise::of(PART, "get finds it, also with nothing remembered");
    let fresh = promise.answered(trial.anew().await);
    for provider in [Some(&trial.provider), fresh.as_ref()].into_iter().flatten() {
        if let Some(found) = promise.answered(provider.get_balancer(&trial.service).await) {
            let ingress = found.map(|balancer| balancer.ingress);
            promise.holds(ingress.as_deref() == made, || {
                format!("made was {made:?}, found is {ingress:?}")
            });
        }
    }
    report.add(promise);
}

async fn again(trial: &Trial, made: Option<&[Ingress]>, report: &mut Report) {
    let mut promise = Promise::of(PART, "ensuring it again, with nothing remembered, makes no other one");
    if let Some(fresh) = promise.answered(trial.anew().await)
        && let Some(balancer) = promise.answered(ensured(trial, &fresh).await)
    {
        let same = Some(balancer.ingress.as_slice()) == made;
        promise.holds(same, || format!("made was {made:?}, now it is {:?}", balancer.ingress));
    }
    report.add(promise);
}

async fn update(trial: &Trial, made: Option<&[Ingress]>, report: &mut Report) {
    let mut promise = Promise::of(
        PART,
        "update-targets takes all Nodes away and brings them back, and the address stays",
    );
    let all = trial.targets();
    for targets in [&[][..], &all] {
        let updated = trial.until_done(|token| async move {
            let token = token.as_deref();
            trial.provider.update_targets(&trial.service, targets, token).await
        });
        promise.answered(updated.await);
    }
    if let Some(found) = promise.answered(trial.provider.get_balancer(&trial.service).await) {
        let ingress = found.map(|balancer| balancer.ingress);
        promise.holds(ingress.as_deref() == made, || {
            format!("made was {made:?}, found is {ingress:?}")
        });
    }
    report.add(promise);
}

async fn update_many(trial: &Trial, report: &mut Report) {
    let text = "update-targets of several Services answers in their order, and one without load balancer fails alone";
    let mut promise = Promise::of(PART, text);
    let strangers = [1, 2].map(|number| Service {
        name: format!("{}-none-{number}", trial.service.name),
        uid: format!("00000000-0000-4000-8000-00000000000{number}"),
        annotations: BTreeMap::new(),
        ..trial.service.clone()
    });
    let asked = [&strangers[0], &trial.service, &strangers[1]];
    let updates = asked.map(|service| TargetUpdate { service, token: None });
    let all = trial.targets();
    if let Some(results) = promise.answered(trial.provider.update_targets_of(&updates, &all).await) {
        let is_missing = |result: &Result<_, Failure>| matches!(result, Err(Failure::NotFound(_)));
        let right = matches!(results.as_slice(), [first, known, last] if is_missing(first) && !is_missing(known) && is_missing(last));
        promise.holds(right, || format!("{results:?}"));
    }
    report.add(promise);
}

async fn deleted(trial: &Trial) -> Result<(), String> {
    let deleted = trial.until_done(|token| async move {
        let token = token.as_deref();
        trial.provider.delete_balancer(&trial.service, token).await
    });
    deleted.await.map(|_| ())
}

async fn delete(trial: &Trial, text: &str, report: &mut Report) {
    let mut promise = Promise::of(PART, text);
    promise.answered(deleted(trial).await);
    report.add(promise);
}

/// A cloud that refuses one request of seven: what is half made is finished, and what is half deleted goes.
async fn interrupted(trial: &Trial, report: &mut Report) {
    let mut promise = Promise::of(
        PART,
        "it is made and deleted on a cloud that refuses one request of seven",
    );
    trial.faults.each(7);
    promise.answered(repeated(|| ensured(trial, &trial.provider)).await);
    promise.answered(repeated(|| deleted(trial)).await);
    trial.faults.none();
    if let Some(found) = promise.answered(trial.provider.get_balancer(&trial.service).await) {
        promise.holds(found.is_none(), || format!("left is {found:?}"));
    }
    report.add(promise);
}
