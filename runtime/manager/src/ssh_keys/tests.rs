//! A key on its way to the machines, with paused time.

use std::sync::Mutex;

use cloudwit_model::{Answer, CloudError, EnsuredKey, Failure, SshKey};
use tempfile::TempDir;

use super::*;

/// Answers in turn, and notes what it was asked with.
#[derive(Default)]
struct Scripted {
    answers: Mutex<Vec<Result<EnsuredKey, CloudError>>>,
    asked: Mutex<Vec<(String, Option<String>)>>,
}

impl SshKeys for Scripted {
    fn ensure_ssh_key<'a>(&'a self, key: &'a SshKey, token: Option<&'a str>) -> Answer<'a, EnsuredKey> {
        self.asked
            .lock()
            .unwrap()
            .push((key.public_key().to_owned(), token.map(str::to_owned)));
        let mut answers = self.answers.lock().unwrap();
        let answer = match answers.is_empty() {
            true => Ok(EnsuredKey::Present),
            false => answers.remove(0),
        };
        Box::pin(std::future::ready(answer))
    }
}

#[derive(Default)]
struct Events(Mutex<Vec<ObjectEvent>>);

impl EventSink for Events {
    fn emit(&self, event: ObjectEvent) {
        self.0.lock().unwrap().push(event);
    }
}

const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINxr/5LiAWoKRwMj0M43bnoPH+IPKu2qTpvUalMHBKTt";

struct Set {
    cloud: Arc<Scripted>,
    events: Arc<Events>,
    sync: KeySync,
    folder: TempDir,
}

fn set(answers: Vec<Result<EnsuredKey, CloudError>>, leadership: &Leadership, dry_run: bool) -> Set {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("id.pub"), KEY).unwrap();
    let cloud = Arc::new(Scripted {
        answers: Mutex::new(answers),
        ..Scripted::default()
    });
    let events = Arc::new(Events::default());
    let sync = KeySync {
        provider: "lab".into(),
        cloud: leading_ssh_keys(cloud.clone(), leadership.clone(), dry_run),
        file: KeyFile::new("core", &folder.path().join("id")),
        events: events.clone(),
        subject: Subject::Node("n".into()),
    };
    Set {
        cloud,
        events,
        sync,
        folder,
    }
}

fn reasons(events: &Events) -> Vec<String> {
    events
        .0
        .lock()
        .unwrap()
        .iter()
        .map(|event| event.reason.clone())
        .collect()
}

#[tokio::test]
async fn failing_cloud_is_retried_with_its_token() {
    let pending = Failure::Pending {
        after: Duration::from_secs(2),
        token: "op-1".into(),
        message: "working".into(),
    };
    let script = vec![
        Err(Failure::Unavailable("no answer".into()).into()),
        Err(pending.into()),
        Ok(EnsuredKey::Added),
    ];
    let set = set(script, &Leadership::always(), false);
    let mut state = SyncState::default();
    let mut pauses = Vec::new();
    for _ in 0..4 {
        pauses.push(set.sync.once(&mut state).await.unwrap().as_secs());
    }
    assert_eq!(pauses, [5, 2, 300, 300]);
    let tokens: Vec<_> = set
        .cloud
        .asked
        .lock()
        .unwrap()
        .iter()
        .map(|(_, token)| token.clone())
        .collect();
    assert_eq!(tokens, [None, None, Some("op-1".to_owned()), None]);
    assert_eq!(reasons(&set.events), ["SSHKeySyncFailed", "SSHKeySynced"]);
    let message = set.events.0.lock().unwrap()[1].message.clone();
    assert_eq!(message, "the SSH key of core was given to all machines (provider lab)");
}

#[tokio::test]
async fn replaced_key_file_is_reread_and_broken_one_reported() {
    let set = set(Vec::new(), &Leadership::always(), false);
    let mut state = SyncState::default();
    set.sync.once(&mut state).await;
    std::fs::write(set.folder.path().join("id.pub"), "-----BEGIN RSA PRIVATE KEY-----").unwrap();
    assert_eq!(set.sync.once(&mut state).await, Some(Duration::from_secs(5)));
    assert_eq!(set.cloud.asked.lock().unwrap().len(), 1, "nothing is sent");
    assert_eq!(reasons(&set.events), ["SSHKeySyncFailed"]);
    std::fs::write(set.folder.path().join("id.pub"), KEY).unwrap();
    set.sync.once(&mut state).await;
    assert_eq!(reasons(&set.events), ["SSHKeySyncFailed", "SSHKeySynced"]);
}

#[tokio::test]
async fn dry_run_reaches_no_cloud_and_writes_no_event() {
    let set = set(Vec::new(), &Leadership::always(), true);
    assert!(set.sync.once(&mut SyncState::default()).await.is_some());
    assert!(set.cloud.asked.lock().unwrap().is_empty());
    assert!(reasons(&set.events).is_empty());
}

#[tokio::test(start_paused = true)]
async fn no_call_is_made_before_this_process_leads() {
    let clock: cloudwit_controllers::leadership::Clock = Arc::new(|| Duration::from_secs(1));
    let (term, leadership) = Leadership::elected(clock);
    let set = set(Vec::new(), &leadership, false);
    let (cloud, shutdown) = (set.cloud.clone(), CancellationToken::new());
    let running = tokio::spawn(set.sync.run(leadership, shutdown.clone()));
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert!(cloud.asked.lock().unwrap().is_empty());
    term.renew(Duration::from_secs(60));
    while cloud.asked.lock().unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    shutdown.cancel();
    running.await.unwrap();
}
