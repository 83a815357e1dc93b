//! Entry points of fuzz targets into private code; their checks are in `tests/fuzz-bodies`.

use std::path::Path;
use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderValue, StatusCode, Uri, header};

use crate::call::answer::Screen;
use crate::call::walk::Walk;
use crate::contract::v0_1::answers;
use crate::contract::v0_1::generated::cloudwit::provider::common;
use crate::egress::budget::retry_after;
use crate::egress::plan;
use crate::load::{artifact, cache};
use crate::net::destination::Destination;
use crate::secrets::encoding::Encoding;
use crate::secrets::keys::Keyring;
use crate::secrets::placeholders::{Filling, Placeholders, StandsFor};
use crate::secrets::redact::Redactor;

/// The text with what is this secret hidden.
pub fn redact(secret: &[u8], text: &str) -> String {
    Redactor::new([("fuzzed", secret)]).redact(text.to_owned())
}

/// The URL that a request would go to, and its destination.
pub fn target(uri: &str) -> Option<(String, Destination)> {
    let uri: Uri = uri.parse().ok()?;
    let (url, destination) = plan::target(&uri).ok()?;
    Some((url.into(), destination))
}

/// The pause that an answer with this `Retry-After` and this `Date` sets.
pub fn wait(retry_after: &[u8], date: &[u8]) -> Option<Duration> {
    let mut headers = HeaderMap::new();
    headers.insert(header::RETRY_AFTER, HeaderValue::from_bytes(retry_after).ok()?);
    if let Ok(date) = HeaderValue::from_bytes(date) {
        headers.insert(header::DATE, date);
    }
    retry_after::wait(StatusCode::TOO_MANY_REQUESTS, &headers, SystemTime::UNIX_EPOCH)
}

/// What is in a packed component, if it is at most so many bytes.
pub fn unpack(packed: &[u8], limit: u64) -> Option<Vec<u8>> {
    artifact::unpack(Path::new("fuzzed"), packed, limit).ok()
}

/// The code in an entry of the compile cache, if it is whole and of this component and engine.
pub fn cached<'e>(entry: &'e [u8], key: &[u8; 32]) -> Option<&'e [u8]> {
    cache::verified(entry, key)
}

/// The parts with a placeholder for the secret `token` between each two of them, filled in; none where nothing is to be filled.
pub fn fill(parts: &[&[u8]], keyring: &Keyring, to: &Destination) -> Result<Option<Vec<u8>>, String> {
    let issued = Placeholders::default();
    let token = StandsFor::Secret("token".into(), Encoding::Plain);
    let placeholder = issued.issue(token, keyring, &[]).map_err(|error| error.to_string())?;
    let text = parts.join(placeholder.as_bytes());
    let filled = Filling::new(&issued, keyring, to).fill(&text);
    Ok(filled.map_err(|error| error.to_string())?.map(|filled| filled.to_vec()))
}

/// How many machines a look-up finds whose answer has these texts as provider ids, addresses and keys of labels; none when it is refused.
pub fn lookup(texts: &[(String, String, String)]) -> Option<usize> {
    let nodes: Vec<cloudwit_model::NodeRef> = texts.iter().map(|_| cloudwit_model::NodeRef::default()).collect();
    let answer = |(id, address, label): &(String, String, String)| {
        let address = common::Address {
            kind: common::AddressKind::InternalIp,
            value: address.clone(),
        };
        let label = common::Pair {
            key: label.clone(),
            value: label.clone(),
        };
        Ok(common::Presence::Running(common::Instance {
            provider_id: id.clone(),
            instance_type: None,
            zone: None,
            region: None,
            labels: vec![label],
            addresses: vec![address],
            extra: Vec::new(),
        }))
    };
    let redactor = Redactor::new([]);
    let mut walk = Walk::default();
    let answers = texts.iter().map(answer).collect();
    let found = answers::lookup(Screen(&redactor), &mut walk, &nodes, answers);
    let runtime = tokio::runtime::Builder::new_current_thread().build().ok()?;
    let found = runtime.block_on(found).ok()?;
    Some(found.len())
}
