//! Look-ups at a name server on 127.0.0.1, which never answers for names below `silent.example`.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex as SyncMutex};

use futures::future::join_all;
use hickory_resolver::proto::op::{Message, MessageType, ResponseCode};
use hickory_resolver::proto::rr::rdata::A;
use hickory_resolver::proto::rr::{RData, Record, RecordType};
use tokio::net::UdpSocket;

use super::*;
use crate::net::resolver::Lookup;

/// The questions that came, by name.
type Asked = Arc<SyncMutex<HashMap<String, usize>>>;

struct NameServer {
    port: u16,
    asked: Asked,
}

impl NameServer {
    async fn start() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let (port, asked) = (socket.local_addr().unwrap().port(), Asked::default());
        let counted = Arc::clone(&asked);
        tokio::spawn(async move {
            let mut packet = [0; 4096];
            loop {
                let (length, from) = socket.recv_from(&mut packet).await.unwrap();
                let question = Message::from_vec(&packet[..length]).unwrap();
                let query = question.queries[0].clone();
                let name = query.name().to_ascii();
                *counted.lock().unwrap().entry(name.clone()).or_default() += 1;
                if name.ends_with("silent.example.") {
                    continue;
                }
                let mut answer = Message::response(question.metadata.id, question.metadata.op_code);
                answer.metadata.message_type = MessageType::Response;
                answer.metadata.recursion_available = true;
                answer.add_query(query.clone());
                let known = matches!(name.as_str(), "api.example." | "api.search.example.");
                if known && query.query_type() == RecordType::A {
                    let address = RData::A(A(Ipv4Addr::new(10, 0, 0, 1)));
                    answer.add_answer(Record::from_rdata(query.name().clone(), 60, address));
                } else if !known {
                    answer.metadata.response_code = ResponseCode::NXDomain;
                }
                socket.send_to(&answer.to_vec().unwrap(), from).await.unwrap();
            }
        });
        Self { port, asked }
    }

    fn asked(&self, name: &str) -> usize {
        self.asked.lock().unwrap().get(name).copied().unwrap_or(0)
    }
}

/// A folder with both files, and a resolver by them.
fn resolver(server: &NameServer, resolv_conf: &str, hosts: &str) -> (tempfile::TempDir, SystemResolver) {
    let dir = tempfile::tempdir().unwrap();
    let files = ResolverFiles {
        resolv_conf: dir.path().join("resolv.conf"),
        hosts: dir.path().join("hosts"),
        port: server.port,
    };
    std::fs::write(&files.resolv_conf, resolv_conf).unwrap();
    std::fs::write(&files.hosts, hosts).unwrap();
    (dir, SystemResolver::new(files))
}

const LOCAL: &str = "nameserver 127.0.0.1\n";

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[tokio::test]
async fn a_silent_name_server_holds_up_only_its_own_name() {
    let server = NameServer::start().await;
    let (_dir, resolver) = resolver(&server, LOCAL, "");
    let silent: Vec<_> = (0..600)
        .map(|number| tokio::spawn(resolver.lookup(&format!("n{number}.silent.example"))))
        .collect();
    while server.asked("n599.silent.example.") == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(resolver.lookup("api.example").await.unwrap(), [ip("10.0.0.1")]);
    assert!(silent.iter().all(|lookup| !lookup.is_finished()));
    // A look-up is dropped with its request.
    for lookup in &silent {
        lookup.abort();
    }
    assert!(
        join_all(silent)
            .await
            .into_iter()
            .all(|ended| ended.unwrap_err().is_cancelled())
    );
}

#[tokio::test]
async fn hosts_and_search_list_are_respected() {
    let server = NameServer::start().await;
    let conf = format!("{LOCAL}search search.example\noptions ndots:2\n");
    let (_dir, resolver) = resolver(
        &server,
        &conf,
        "192.0.2.7 fixed.example other # note\nfd00::7 fixed.example\n",
    );
    let fixed = resolver.lookup("fixed.example").await.unwrap();
    assert_eq!(fixed, [ip("192.0.2.7"), ip("fd00::7")]);
    assert_eq!(server.asked("fixed.example."), 0);
    assert_eq!(resolver.lookup("api").await.unwrap(), [ip("10.0.0.1")]);
    assert_eq!(server.asked("api.search.example."), 2);
    let unknown = resolver.lookup("unknown.example").await.unwrap_err();
    assert_eq!(
        (unknown.kind(), unknown.to_string().as_str()),
        (io::ErrorKind::NotFound, "no such name")
    );
}

#[tokio::test]
async fn localhost_needs_no_name_server() {
    let server = NameServer::start().await;
    let (_dir, resolver) = resolver(&server, LOCAL, "");
    let found = resolver.lookup("localhost").await.unwrap();
    assert!(!found.is_empty() && found.iter().all(IpAddr::is_loopback));
    assert_eq!(server.asked("localhost."), 0);
}

#[tokio::test]
async fn changed_files_are_followed() {
    let server = NameServer::start().await;
    let (dir, resolver) = resolver(&server, LOCAL, "192.0.2.7 fixed.example\n");
    assert_eq!(resolver.lookup("fixed.example").await.unwrap(), [ip("192.0.2.7")]);
    std::fs::write(dir.path().join("hosts"), "192.0.2.8 fixed.example\n").unwrap();
    assert_eq!(resolver.lookup("fixed.example").await.unwrap(), [ip("192.0.2.7")]);
    resolver.0.current.lock().await.as_mut().unwrap().checked -= RECHECK;
    assert_eq!(resolver.lookup("fixed.example").await.unwrap(), [ip("192.0.2.8")]);
    std::fs::remove_file(dir.path().join("hosts")).unwrap();
    resolver.0.current.lock().await.as_mut().unwrap().checked -= RECHECK;
    let gone = resolver.lookup("fixed.example").await.unwrap_err();
    assert_eq!(gone.kind(), io::ErrorKind::NotFound);
}
