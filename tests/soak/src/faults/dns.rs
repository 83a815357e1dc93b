//! A name server for one name, slow on demand.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

/// Where it listens: an address of loopback that nothing else uses.
pub const ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 77, 7, 7);

/// The name of the simulated cloud; every other name does not exist.
pub const NAME: &str = "cloud.soak.test";

/// The running server.
pub struct NameServer {
    delay: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl NameServer {
    /// Starts it on port 53.
    ///
    /// # Errors
    ///
    /// When the port cannot be had, which takes root.
    pub async fn start() -> Result<Self> {
        let socket = UdpSocket::bind(SocketAddr::from((ADDRESS, 53)));
        let socket = Arc::new(socket.await.context("listening for DNS on loopback")?);
        let delay = Arc::new(AtomicU64::new(0));
        let shared = Arc::clone(&delay);
        let task = tokio::spawn(async move {
            let mut buffer = [0; 1500];
            loop {
                let Ok((length, from)) = socket.recv_from(&mut buffer).await else {
                    continue;
                };
                let Some(answer) = answer(&buffer[..length]) else {
                    continue;
                };
                let (socket, wait) = (Arc::clone(&socket), shared.load(Ordering::Relaxed));
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(wait)).await;
                    // One that waits no longer has closed its port.
                    let _ = socket.send_to(&answer, from).await;
                });
            }
        });
        Ok(Self { delay, task })
    }

    /// From now on each answer takes so long.
    pub fn set_delay(&self, delay: Duration) {
        let milliseconds = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        self.delay.store(milliseconds, Ordering::Relaxed);
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The answer to a query with one question (RFC 1035): 127.0.0.1 for [`NAME`], NXDOMAIN for the rest. None for what is no query.
fn answer(query: &[u8]) -> Option<Vec<u8>> {
    let header = query.get(..12)?;
    let (mut at, mut labels) = (12, Vec::new());
    loop {
        let length = usize::from(*query.get(at)?);
        at += 1;
        if length == 0 {
            break;
        }
        labels.push(String::from_utf8_lossy(query.get(at..at + length)?).to_lowercase());
        at += length;
    }
    let question = query.get(12..at + 4)?;
    let kind = u16::from_be_bytes([query[at], query[at + 1]]);
    let known = labels.join(".") == NAME;
    let with_address = known && kind == 1;
    let mut out = header[..2].to_vec();
    // Response, recursion desired and available; NXDOMAIN (3) for other names.
    out.extend([0x81, if known { 0x80 } else { 0x83 }]);
    out.extend([0, 1, 0, u8::from(with_address), 0, 0, 0, 0]);
    out.extend(question);
    if with_address {
        // A pointer to the name, type A, class IN, no caching, four bytes.
        out.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1]);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(name: &str, kind: u8) -> Vec<u8> {
        let mut out = vec![7, 9, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split('.') {
            out.push(u8::try_from(label.len()).unwrap());
            out.extend(label.bytes());
        }
        out.extend([0, 0, kind, 0, 1]);
        out
    }

    #[test]
    fn only_the_clouds_name_has_an_address() {
        let found = answer(&query("Cloud.soak.test", 1)).unwrap();
        assert_eq!(found[..4], [7, 9, 0x81, 0x80]);
        assert!(found.ends_with(&[127, 0, 0, 1]));
        let v6 = answer(&query(NAME, 28)).unwrap();
        assert_eq!((v6[3], v6[7]), (0x80, 0));
        assert_eq!(answer(&query("example.com", 1)).unwrap()[3], 0x83);
        assert_eq!(answer(&[1, 2, 3]), None);
        assert_eq!(answer(&query(NAME, 1)[..20]), None);
    }
}
