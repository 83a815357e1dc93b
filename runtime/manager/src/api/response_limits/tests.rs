use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// A body of so many frames of this content, or without end; counts the frames that were taken.
struct Frames {
    content: &'static [u8],
    left: Option<usize>,
    taken: Arc<AtomicUsize>,
}

impl Body for Frames {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.left == Some(0) {
            return Poll::Ready(None);
        }
        self.left = self.left.map(|left| left - 1);
        self.taken.fetch_add(1, Ordering::Relaxed);
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(self.content)))))
    }
}

/// A body from which nothing comes.
struct Silent;

impl Body for Silent {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Pending
    }
}

static MEBIBYTE: [u8; 1 << 20] = [b'a'; 1 << 20];

/// Reads to the end; answers how it ended.
async fn read<B>(mut body: LimitedBody<B>) -> Option<ResponseCut>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    loop {
        match std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
            Some(Ok(_)) => {}
            Some(Err(error)) => return error.downcast_ref::<ResponseCut>().copied(),
            None => return None,
        }
    }
}

fn endless(content: &'static [u8]) -> (Frames, Arc<AtomicUsize>) {
    let taken = Arc::new(AtomicUsize::new(0));
    let frames = Frames {
        content,
        left: None,
        taken: taken.clone(),
    };
    (frames, taken)
}

#[tokio::test]
async fn a_list_without_end_is_cut() {
    let (frames, taken) = endless(&MEBIBYTE);
    let body = LimitedBody::new(frames, false, Instant::now(), Box::new(|_| panic!("it has no end")));
    assert_eq!(read(body).await, Some(ResponseCut::Bytes));
    assert_eq!(taken.load(Ordering::Relaxed), 65);
}

#[tokio::test]
async fn a_watch_line_without_end_is_cut() {
    let (frames, taken) = endless(&MEBIBYTE);
    let body = LimitedBody::new(frames, true, Instant::now(), Box::new(|_| {}));
    assert_eq!(read(body).await, Some(ResponseCut::Line));
    assert_eq!(taken.load(Ordering::Relaxed), 9);
}

#[tokio::test]
async fn a_watch_of_many_lines_is_not_cut() {
    let frames = Frames {
        content: b"one line\nand a half",
        left: Some(1_000_000),
        taken: Arc::default(),
    };
    let body = LimitedBody::new(frames, true, Instant::now(), Box::new(|_| {}));
    assert_eq!(read(body).await, None, "19 MB in lines of 18 bytes");
}

#[tokio::test(start_paused = true)]
async fn a_silent_body_is_cut_at_its_time() {
    let sent = Instant::now();
    let body = LimitedBody::new(Silent, false, sent, Box::new(|_| {}));
    assert_eq!(read(body).await, Some(ResponseCut::Time));
    assert!(
        sent.elapsed() < REQUEST_LIMIT + Duration::from_secs(1),
        "counted from when it was sent"
    );
    let body = LimitedBody::new(Silent, true, sent, Box::new(|_| {}));
    assert_eq!(read(body).await, Some(ResponseCut::Silence));
}

#[tokio::test]
async fn bytes_of_a_whole_response_are_reported() {
    let told = Arc::new(AtomicUsize::new(0));
    let tell = told.clone();
    let frames = Frames {
        content: b"12345",
        left: Some(3),
        taken: Arc::default(),
    };
    let on_end = Box::new(move |bytes| tell.store(bytes, Ordering::Relaxed));
    assert_eq!(
        read(LimitedBody::new(frames, false, Instant::now(), on_end)).await,
        None
    );
    assert_eq!(told.load(Ordering::Relaxed), 15);
}

#[test]
fn watch_is_known_by_its_query() {
    let of = |uri: &str| is_watch(&Request::get(uri).body(()).unwrap());
    assert!(of("/api/v1/nodes?&watch=true&timeoutSeconds=290"));
    assert!(of("/api/v1/nodes?watch=1"));
    assert!(!of("/api/v1/nodes?labelSelector=watch") && !of("/api/v1/nodes"));
}
