//! Budget, tail and redaction of the output of a call.

use std::cell::Cell;
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;
use tracing::Level;
use tracing_subscriber::fmt::MakeWriter;

use super::*;
use crate::call::answer::limits::{LOG_FIELDS, LOG_LINE as LINE};
use crate::secrets::redact::Redactor;
use crate::secrets::redact::tests::COMPARED;

const SECRET: &str = "canary-7391-secret";

/// The output of a call of a provider with one secret.
fn log(budget: u64) -> GuestLog {
    GuestLog::new(budget, Arc::new(Redactor::new([("token", SECRET.as_bytes())])))
}

/// Collects what `tracing` prints.
#[derive(Clone, Default)]
struct Printed(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Printed {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Printed {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// Runs something and gives what `tracing` printed meanwhile on this thread.
fn printed(run: impl FnOnce()) -> String {
    // While only one subscriber exists, tracing asks the thread that comes to a line first whether anybody wants the
    // line, and remembers that for all threads. Tests run on many; a second subscriber keeps each asking for itself.
    static SECOND: LazyLock<tracing::Dispatch> = LazyLock::new(|| tracing_subscriber::fmt().finish().into());
    LazyLock::force(&SECOND);
    let printed = Printed::default();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(printed.clone())
        .finish();
    tracing::subscriber::with_default(subscriber, run);
    let bytes = printed.0.lock().clone();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn lines_of_the_two_streams_do_not_mix() {
    let log = log(1 << 20);
    log.write(Stream::Stderr, b"panicked ");
    log.write(Stream::Stdout, b"hello\nwor");
    log.write(
        Stream::Stderr,
        b"at 3\nnote: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n",
    );
    assert_eq!(log.finish(), "hello\npanicked at 3\nwor");
}

#[test]
fn the_end_is_kept_however_much_was_written() {
    let log = log(0);
    for number in 0..100_000 {
        log.write(Stream::Stderr, format!("line {number}\n").as_bytes());
    }
    log.write(Stream::Stderr, &vec![b'x'; 10 << 20]);
    log.write(Stream::Stderr, b"\nthe end\n");
    let tail = log.finish();
    assert!(tail.ends_with("\nthe end") || tail == "the end", "{tail}");
    assert!(tail.len() <= TAIL + 8, "{}", tail.len());
}

#[test]
fn control_characters_cannot_forge_a_line() {
    let log = log(1 << 20);
    log.log(
        Level::WARN,
        "one\n2026 ERROR two\x1b[31m",
        &[("key".into(), "a b\n".into())],
    );
    assert_eq!(log.finish(), r#"one\n2026 ERROR two\u{1b}[31m key="a b\n""#);
}

#[test]
fn a_secret_is_in_no_line_and_in_no_field() {
    let text = printed(|| {
        let log = log(1 << 20);
        log.log(Level::WARN, SECRET, &[("header".into(), format!("\"{SECRET}\""))]);
        log.write(Stream::Stderr, format!("sent {SECRET}\n").as_bytes());
        assert_eq!(
            log.finish(),
            r#"[secret token] header="\"[secret token]\""
sent [secret token]"#
        );
    });
    assert!(
        text.contains("sent [secret token]") && !text.contains("canary"),
        "{text}"
    );
}

#[test]
fn a_call_that_writes_too_much_is_silenced_with_one_line() {
    let text = printed(|| {
        let log = log(1000);
        for number in 0..500 {
            log.log(Level::INFO, &format!("number {number}"), &[]);
        }
    });
    assert!(
        text.contains("number 0\n") && text.contains("guest: number 12\n"),
        "{text}"
    );
    assert!(!text.contains("number 20"), "{text}");
    assert_eq!(text.matches("log limit reached").count(), 1, "{text}");
}

#[test]
fn disabled_log_level_costs_nothing() {
    let text = printed(|| {
        let log = log(200);
        assert!(enabled(Level::INFO) && !enabled(Level::DEBUG));
        for _ in 0..100 {
            log.log(Level::DEBUG, "unseen", &[]);
        }
        log.log(Level::INFO, "seen", &[("node".into(), "n1".into())]);
    });
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.contains("seen fields=") && text.contains("n1"), "{text}");
}

/// How many pieces of the text secrets are looked for in.
fn compared(run: impl FnOnce()) -> usize {
    COMPARED.with(|compared| compared.set(0));
    run();
    COMPARED.with(Cell::get)
}

#[test]
fn work_on_a_line_is_bounded_and_none_for_a_level_that_is_off() {
    let text = "canary-".repeat(2 << 20);
    let field = || ("field".to_owned(), text.clone());
    printed(|| {
        let log = log(1 << 20);
        let fields = [field(), field(), field()];
        assert_eq!(compared(|| log.log(Level::DEBUG, &text, &fields)), 0);
        assert!(compared(|| log.log(Level::INFO, &text, &fields)) < 16 * LINE);
        let flood = || (0..32).for_each(|_| log.write(Stream::Stdout, &text.as_bytes()[..64 << 10]));
        assert_eq!(compared(flood), 0, "only when the line ends");
        assert!(compared(|| log.write(Stream::Stdout, b"\n")) < 8 * LINE);
        assert!(compared(|| drop(log.finish())) < 16 * LINE);
    });
}

#[test]
fn secret_at_the_cut_of_a_line_is_hidden() {
    for before in LINE - 30..LINE {
        let text = format!("{}{SECRET}", "x".repeat(before));
        let printed = printed(|| {
            let log = log(1 << 20);
            log.log(Level::INFO, &text, &[("field".into(), text.clone())]);
            log.write(Stream::Stdout, text.as_bytes());
            assert!(!log.finish().contains(&SECRET[..8]));
        });
        assert!(!printed.contains(&SECRET[..8]), "{before}: {printed}");
    }
}

#[test]
fn fields_of_a_line_are_limited() {
    let many: Vec<_> = (0..100_000)
        .map(|number| (format!("k{number}"), "v".to_owned()))
        .collect();
    let line = GuestLine::new("many", &many);
    assert_eq!(line.fields.len(), LOG_FIELDS);
    let long: Vec<_> = (0..10).map(|_| ("key".to_owned(), "v".repeat(LINE))).collect();
    assert!(GuestLine::new("", &long).bytes() < LINE + 64);
}
