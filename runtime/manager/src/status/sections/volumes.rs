//! Section of volumes: operations under way and last failures of each CSI driver.

use maud::{Markup, html};

use crate::status::facts::{DriverFacts, Facts, Listed, Moment, VolumeFailure, VolumeOperation};
use crate::status::table::{Cell, Row, table};

/// All drivers; nothing where no volumes are served.
pub fn volumes(facts: &Facts) -> Markup {
    html! {
        @if !facts.volumes.is_empty() {
            h2 id="volumes" { "Volumes" }
            @for one in &facts.volumes { (driver(one, facts.at)) }
        }
    }
}

fn driver(driver: &DriverFacts, now: Moment) -> Markup {
    html! {
        div class="card" {
            h3 { (driver.driver) }
            p class="dim" { "Volumes of provider " (driver.provider) }
            @if driver.operations.total + driver.failed.total == 0 {
                p class="none" { "No operation is under way, and none has failed." }
            }
            @if driver.operations.total > 0 { (operations(&driver.operations, now)) }
            @if driver.failed.total > 0 { (failures(&driver.failed, now)) }
        }
    }
}

fn operations(operations: &Listed<VolumeOperation>, now: Moment) -> Markup {
    let texts = operations.shown.iter().map(|operation| {
        let next = operation.next.map_or_else(|| "now".to_owned(), Moment::clock);
        let why = operation
            .waits_for
            .as_deref()
            .unwrap_or("A call to the cloud is in flight.");
        (operation, why, next)
    });
    let texts: Vec<_> = texts.collect();
    let rows = texts.iter().map(|(operation, why, next)| Row {
        name: &operation.work,
        link: None,
        cells: vec![
            Cell::For(Some(operation.since)),
            Cell::Why(why),
            Cell::Text(next),
            Cell::Number(&operation.waiting),
        ],
    });
    let rows: Vec<_> = rows.collect();
    let heads = ["Operation", "Lasts", "Waits for", "Next call", "Requests"];
    table("Under way", &heads, &rows, operations.more(), now)
}

fn failures(failures: &Listed<VolumeFailure>, now: Moment) -> Markup {
    let rows = failures.shown.iter().map(|failure| Row {
        name: &failure.work,
        link: None,
        cells: vec![
            Cell::Ago(Some(failure.at)),
            Cell::Why(&failure.error),
            Cell::Number(&failure.times),
        ],
    });
    let rows: Vec<_> = rows.collect();
    let heads = ["Operation", "Failed", "Answer of the cloud", "In a row"];
    html! {
        (table("Failed; the sidecar retries", &heads, &rows, failures.more(), now))
    }
}
