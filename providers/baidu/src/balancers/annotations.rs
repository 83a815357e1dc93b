//! Annotations of Services, those that Baidu's own controller writes among them.

use cloudwit_guest_sdk::annotations::{Annotation, Reader, Table};
use cloudwit_guest_sdk::prelude::*;
use serde_json::{Value, json};

/// The load balancer's id, written by Cloudwit too.
pub const ADDED: &str = "load-balancer-cce-add-id";

/// The same of older versions of Baidu's controller.
pub const FORMER: &str = "load-balancer-id";

/// The public address, written by Cloudwit too.
pub const ADDED_EIP: &str = "load-balancer-cce-add-eip";

/// Most machines behind a load balancer (BLB's limits).
pub const MOST_MACHINES: i64 = 50;

/// Months for which an address can be paid in advance (EIP's API reference, "Reservation").
const MONTHS: [i64; 12] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 24, 36];

/// All that are read.
pub const TABLE: Table = Table::new(
    "service.beta.kubernetes.io/cce-",
    &[
        Annotation::new(
            "load-balancer-internal-vpc",
            "false",
            "`true`: reached at the address in the VPC, without a public one",
        ),
        Annotation::new(
            "load-balancer-exist-id",
            "",
            "id of a BLB of yours, which is used and never deleted; it is for this Service alone",
        ),
        Annotation::new(
            "load-balancer-reserve-lb",
            "false",
            "`true`: the BLB is not deleted with the Service",
        ),
        Annotation::new(
            "load-balancer-lb-name",
            "",
            "name of the BLB when it is made, instead of `CCE/SVC/CLUSTER/NAMESPACE/NAME`",
        ),
        Annotation::new(
            "load-balancer-subnet-id",
            "",
            "subnet of the BLB when it is made, instead of the config's `SubnetId`",
        ),
        Annotation::new(
            "load-balancer-rs-max-num",
            "50",
            "most machines behind the BLB, 1 to 50",
        ),
        Annotation::new(
            "load-balancer-scheduler",
            "",
            "`RoundRobin`, `LeastConnection` or `Hash`; without it `Hash` for the session affinity `ClientIP`, else `RoundRobin`",
        ),
        Annotation::new(
            "load-balancer-health-check-timeout-in-second",
            "3",
            "seconds until a health check fails, 1 to 60",
        ),
        Annotation::new(
            "load-balancer-health-check-interval",
            "3",
            "seconds between health checks, 1 to 10",
        ),
        Annotation::new(
            "load-balancer-unhealthy-threshold",
            "3",
            "failed checks until a machine gets no traffic, 2 to 5",
        ),
        Annotation::new(
            "load-balancer-healthy-threshold",
            "3",
            "good checks until it gets traffic again, 2 to 5",
        ),
        Annotation::new(
            "load-balancer-health-check-string",
            "HealthCheck",
            "what UDP health checks send",
        ),
        Annotation::new(
            "load-balancer-allocate-vip",
            "",
            "inside Baidu only; has no effect here, and an Event says so",
        ),
        Annotation::new(
            "elastic-ip-name",
            "",
            "name of the EIP when it is made, instead of the BLB's",
        ),
        Annotation::new(
            "elastic-ip-payment-timing",
            "Postpaid",
            "`Postpaid` or `Prepaid`, when the EIP is made",
        ),
        Annotation::new(
            "elastic-ip-billing-method",
            "",
            "`ByTraffic` (without it) or `ByBandwidth`, when a postpaid EIP is made",
        ),
        Annotation::new(
            "elastic-ip-bandwidth-in-mbps",
            "",
            "1 to 1000 with `ByTraffic` (1000 without it), else 1 to 200 (200 without it)",
        ),
        Annotation::new(
            "elastic-ip-reservation-length",
            "",
            "months of a prepaid EIP: 1 to 9, 12, 24 or 36",
        ),
        Annotation::new(ADDED, "", "id of the BLB. Written where it is missing"),
        Annotation::new(
            FORMER,
            "",
            "the same in older versions of Baidu's controller; read only",
        ),
        Annotation::new(ADDED_EIP, "", "public address. Written where it differs"),
    ],
);

/// What the annotations of a Service request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked<'a> {
    pub internal: bool,
    pub subnet: Option<&'a str>,
    pub name: Option<&'a str>,
    pub most_machines: usize,
    /// As Baidu writes it; none where the Service leaves it open.
    pub scheduler: Option<&'static str>,
    pub health: Health<'a>,
    pub eip: AskedEip<'a>,
    /// What has no effect, for Events.
    pub warnings: Vec<String>,
}

/// Health checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health<'a> {
    pub timeout: u32,
    pub interval: u32,
    pub unhealthy: u32,
    pub healthy: u32,
    /// Of UDP.
    pub string: &'a str,
}

/// A public address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedEip<'a> {
    pub name: Option<&'a str>,
    /// Set by an annotation; else it may be as it is.
    pub payment: Option<&'static str>,
    pub billing: Option<&'static str>,
    pub bandwidth: Option<u32>,
    months: Option<i64>,
}

impl AskedEip<'_> {
    /// Bandwidth and billing of a new one.
    pub fn new_one(&self) -> Value {
        if self.payment == Some("Prepaid") {
            let reservation = json!({ "reservationLength": self.months, "reservationTimeUnit": "Month" });
            return json!({
                "bandwidthInMbps": self.bandwidth.unwrap_or(200),
                "billing": { "paymentTiming": "Prepaid", "reservation": reservation },
            });
        }
        let billing = self.billing.unwrap_or("ByTraffic");
        let bandwidth = if billing == "ByTraffic" { 1_000 } else { 200 };
        json!({
            "bandwidthInMbps": self.bandwidth.unwrap_or(bandwidth),
            "billing": { "paymentTiming": "Postpaid", "billingMethod": billing },
        })
    }
}

/// Reads them.
///
/// # Errors
/// `invalid` with all mistakes.
pub fn read(service: &Service) -> Result<Asked<'_>, Failure> {
    let mut read = TABLE.read(service);
    let mut warnings = Vec::new();
    let vip = TABLE.key("load-balancer-allocate-vip");
    if service.annotation(&vip).is_some_and(|vip| vip.trim_ascii() == "true") {
        warnings.push(format!("the annotation {vip} has no effect: it is for Baidu's own use"));
    }
    let seconds = |read: &mut Reader<'_>, key, most| number(read, key, 1..=most);
    let schedulers = ["RoundRobin", "LeastConnection", "Hash"].map(|word| (word, word));
    let asked = Asked {
        internal: read.boolean("load-balancer-internal-vpc").unwrap_or_default(),
        subnet: id(&mut read, "load-balancer-subnet-id"),
        name: read.text("load-balancer-lb-name"),
        most_machines: number(&mut read, "load-balancer-rs-max-num", 1..=MOST_MACHINES) as usize,
        scheduler: read.word("load-balancer-scheduler", &schedulers),
        health: Health {
            timeout: seconds(&mut read, "load-balancer-health-check-timeout-in-second", 60),
            interval: seconds(&mut read, "load-balancer-health-check-interval", 10),
            unhealthy: number(&mut read, "load-balancer-unhealthy-threshold", 2..=5),
            healthy: number(&mut read, "load-balancer-healthy-threshold", 2..=5),
            string: read.text("load-balancer-health-check-string").unwrap_or_default(),
        },
        eip: eip(&mut read, &mut warnings),
        warnings,
    };
    if asked.name.is_some_and(|name| name.len() > super::names::LONGEST) {
        read.wrong::<()>("load-balancer-lb-name", "a name of at most 65 bytes");
    }
    read.boolean("load-balancer-reserve-lb");
    id(&mut read, "load-balancer-exist-id");
    read.finish().map(|()| asked)
}

fn number(read: &mut Reader<'_>, key: &str, allowed: std::ops::RangeInclusive<i64>) -> u32 {
    let number = read.integer(key, allowed).unwrap_or_default();
    u32::try_from(number).unwrap_or_default()
}

/// A text that is written into paths.
fn id<'a>(read: &mut Reader<'a>, key: &str) -> Option<&'a str> {
    let id = read.text(key)?;
    match crate::api::is_id(id) {
        true => Some(id),
        false => read.wrong(key, "an id of letters, digits and dashes"),
    }
}

fn eip<'a>(read: &mut Reader<'a>, warnings: &mut Vec<String>) -> AskedEip<'a> {
    let written = read.is_set("elastic-ip-payment-timing");
    let payments = ["Postpaid", "Prepaid"].map(|word| (word, word));
    let payment = read.word("elastic-ip-payment-timing", &payments).filter(|_| written);
    let methods = ["ByTraffic", "ByBandwidth"].map(|word| (word, word));
    let billing = read.word("elastic-ip-billing-method", &methods);
    let prepaid = payment == Some("Prepaid");
    let most = if prepaid || billing == Some("ByBandwidth") {
        200
    } else {
        1_000
    };
    let bandwidth = read.integer("elastic-ip-bandwidth-in-mbps", 1..=most);
    let months = read.integer("elastic-ip-reservation-length", 1..=36);
    let key = TABLE.key("elastic-ip-reservation-length");
    match (prepaid, months) {
        (true, Some(months)) if MONTHS.contains(&months) => {}
        (true, _) => read.mistake(format!("a prepaid EIP needs {key}, with 1 to 9, 12, 24 or 36 months")),
        (false, Some(_)) => warnings.push(format!("the annotation {key} has no effect: the EIP is not prepaid")),
        (false, None) => {}
    }
    if prepaid && billing.is_some() {
        read.mistake("a prepaid EIP has no billing method; remove the annotation elastic-ip-billing-method");
    }
    AskedEip {
        name: read.text("elastic-ip-name"),
        payment,
        billing,
        bandwidth: bandwidth.and_then(|bandwidth| u32::try_from(bandwidth).ok()),
        months,
    }
}

/// The id of the user's own BLB, with other annotations wrong as well.
pub fn exist_id(service: &Service) -> Option<&str> {
    value(service, "load-balancer-exist-id")
}

/// The id that Baidu's controller or Cloudwit wrote.
pub fn added_id(service: &Service) -> Option<&str> {
    value(service, ADDED).or_else(|| value(service, FORMER))
}

/// The public address that Baidu's controller or Cloudwit wrote.
pub fn added_eip(service: &Service) -> Option<&str> {
    value(service, ADDED_EIP)
}

/// Whether a BLB of Cloudwit's stays when the Service is deleted. What is neither true nor false keeps it.
pub fn is_reserved(service: &Service) -> bool {
    TABLE.read(service).boolean("load-balancer-reserve-lb") != Some(false)
}

/// Whether the Service has no public address.
pub fn is_internal(service: &Service) -> bool {
    TABLE
        .read(service)
        .boolean("load-balancer-internal-vpc")
        .unwrap_or_default()
}

/// A text, with other annotations wrong as well.
pub fn value<'a>(service: &'a Service, key: &str) -> Option<&'a str> {
    let value = service.annotation(&TABLE.key(key)).map(str::trim_ascii);
    value.filter(|value| !value.is_empty())
}
