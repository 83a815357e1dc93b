//! `/`: what is in the cloud, for people. Plain HTML that renews itself every two seconds.

use std::fmt::Write;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::response::Html;
use axum::routing::get;

use crate::Shared;
use crate::disk_wire::Disk;
use crate::wire::*;

/// Rows of a table that are shown; the rest is counted.
const ROWS: usize = 100;

const HEAD: &str = "<!doctype html><html lang=en><meta charset=utf-8><meta http-equiv=refresh content=2>\
<title>sim cloud</title><style>body{font:14px system-ui;margin:2em auto;max-width:70em}table{border-collapse:collapse;width:100%}\
td,th{border-bottom:1px solid #ddd;padding:.25em .6em;text-align:left}.off{color:#b00}</style><h1>Simulated cloud</h1>";

pub(crate) fn router(shared: &Arc<Shared>) -> Router {
    Router::new().route("/", get(page)).with_state(Arc::clone(shared))
}

async fn page(State(shared): State<Arc<Shared>>) -> Html<String> {
    let mut html = String::from(HEAD);
    machines(&mut html, &shared.cloud.machines());
    balancers(&mut html, &shared.cloud.load_balancers());
    routes(&mut html, &shared.cloud.routes());
    disks(&mut html, &shared.cloud.with_disks(|disks, _| disks.all()));
    requests(&mut html, &shared);
    Html(html)
}

/// A table; cells are escaped, a row whose flag is set stands out.
fn table(html: &mut String, title: &str, head: &[&str], total: usize, rows: impl Iterator<Item = (bool, Vec<String>)>) {
    let _ = write!(html, "<h2>{title} ({total})</h2>");
    if total == 0 {
        html.push_str("<p>None.</p>");
        return;
    }
    html.push_str("<table><tr>");
    for cell in head {
        let _ = write!(html, "<th>{cell}");
    }
    for (stands_out, cells) in rows.take(ROWS) {
        html.push_str(if stands_out { "<tr class=off>" } else { "<tr>" });
        for cell in cells {
            html.push_str("<td>");
            escape(html, &cell);
        }
    }
    html.push_str("</table>");
    if total > ROWS {
        let _ = write!(html, "<p>... and {} more.</p>", total - ROWS);
    }
}

fn machines(html: &mut String, machines: &[Machine]) {
    let rows = machines.iter().map(|machine| {
        let addresses: Vec<&str> = machine.addresses.iter().map(|address| address.ip.as_str()).collect();
        let stopped = machine.state == MachineState::Stopped;
        let state = if stopped { "stopped" } else { "running" };
        let cells = [&machine.id, &machine.name, &machine.kind, &machine.zone].map(String::clone);
        (
            stopped,
            cells.into_iter().chain([addresses.join(", "), state.into()]).collect(),
        )
    });
    table(
        html,
        "Machines",
        &["Id", "Name", "Type", "Zone", "Addresses", "State"],
        machines.len(),
        rows,
    );
}

fn balancers(html: &mut String, balancers: &[LoadBalancer]) {
    let rows = balancers.iter().map(|balancer| {
        let spec = &balancer.spec;
        let building = balancer.state == BalancerState::Building;
        let ports: Vec<String> = spec
            .ports
            .iter()
            .map(|port| format!("{} to {}", port.port, port.node_port))
            .collect();
        let cells = vec![
            balancer.id.clone(),
            spec.name.clone(),
            spec.owner.clone().unwrap_or_default(),
            balancer.address.clone().unwrap_or_else(|| "building".into()),
            ports.join(", "),
            spec.targets.len().to_string(),
        ];
        (building, cells)
    });
    table(
        html,
        "Load balancers",
        &["Id", "Name", "Owner", "Address", "Ports", "Targets"],
        balancers.len(),
        rows,
    );
}

fn routes(html: &mut String, routes: &[Route]) {
    let rows = routes.iter().map(|route| {
        let spec = &route.spec;
        let machine = if route.blackhole {
            format!("{} (gone)", spec.machine)
        } else {
            spec.machine.clone()
        };
        (
            route.blackhole,
            vec![
                route.id.clone(),
                spec.cluster.clone(),
                spec.destination.clone(),
                machine,
            ],
        )
    });
    table(
        html,
        "Routes",
        &["Id", "Cluster", "Destination", "Machine"],
        routes.len(),
        rows,
    );
}

fn disks(html: &mut String, disks: &[Disk]) {
    let rows = disks.iter().map(|disk| {
        let spec = &disk.spec;
        let machines: Vec<&str> = disk.attachments.iter().map(|one| one.machine.as_str()).collect();
        let cells = vec![
            disk.id.clone(),
            spec.name.clone(),
            format!("{} GiB", spec.size >> 30),
            spec.zone.clone(),
            machines.join(", "),
        ];
        (!disk.ready, cells)
    });
    table(
        html,
        "Disks",
        &["Id", "Name", "Size", "Zone", "Machines"],
        disks.len(),
        rows,
    );
}

fn requests(html: &mut String, shared: &Shared) {
    let counters = shared.traffic.counters();
    let rows = counters.operations.iter().map(|(operation, count)| {
        let numbers = [count.requests, count.injected_faults, count.unauthorized].map(|number| number.to_string());
        (
            count.injected_faults + count.unauthorized > 0,
            [operation.to_string()].into_iter().chain(numbers).collect(),
        )
    });
    let head = ["Operation", "Requests", "Faults ordered", "Unauthorized"];
    table(html, "Requests by operation", &head, counters.operations.len(), rows);
    let faults = shared.traffic.faults().len();
    let _ = write!(
        html,
        "<p>{} in flight at most; {faults} fault rules; ",
        counters.peak_in_flight
    );
    let _ = write!(html, "{} ms latency.</p>", shared.traffic.latency().as_millis());
}

fn escape(html: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '&' => html.push_str("&amp;"),
            c => html.push(c),
        }
    }
}
