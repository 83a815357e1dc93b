//! Waits for several answers at once. A few lines of our own, since this crate knows no runtime and no library of futures.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A boxed future, as every call of a cloud is.
type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// All outputs, in the order of `futures`, once the last is there. For a handful: each wake-up polls all that are not done.
pub fn join_all<T: Unpin>(futures: Vec<Boxed<'_, T>>) -> JoinAll<'_, T> {
    JoinAll {
        done: futures.iter().map(|_| None).collect(),
        futures,
    }
}

/// What [`join_all`] makes.
pub struct JoinAll<'a, T> {
    futures: Vec<Boxed<'a, T>>,
    done: Vec<Option<T>>,
}

impl<T: Unpin> Future for JoinAll<'_, T> {
    type Output = Vec<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Vec<T>> {
        let this = self.get_mut();
        for (future, done) in this
            .futures
            .iter_mut()
            .zip(&mut this.done)
            .filter(|(_, done)| done.is_none())
        {
            if let Poll::Ready(output) = future.as_mut().poll(context) {
                *done = Some(output);
            }
        }
        if this.done.iter().all(Option::is_some) {
            Poll::Ready(this.done.drain(..).flatten().collect())
        } else {
            Poll::Pending
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, poll_fn, ready};
    use std::task::Waker;

    use super::*;

    fn poll<T: Unpin>(join: &mut JoinAll<'_, T>) -> Poll<Vec<T>> {
        Pin::new(join).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn outputs_come_in_order_and_each_future_is_finished_once() {
        let mut polls = 0;
        let second = poll_fn(move |_| {
            polls += 1;
            if polls < 3 { Poll::Pending } else { Poll::Ready(1) }
        });
        let mut join = join_all::<i32>(vec![Box::pin(second), Box::pin(async { 2 })]);
        assert_eq!(poll(&mut join), Poll::Pending);
        assert_eq!(poll(&mut join), Poll::Pending);
        assert_eq!(poll(&mut join), Poll::Ready(vec![1, 2]));
        assert_eq!(poll(&mut join_all::<i32>(Vec::new())), Poll::Ready(Vec::new()));
    }

    #[test]
    fn one_that_hangs_does_not_keep_the_others_from_going_on() {
        let (tell, told) = std::sync::mpsc::channel();
        let goes_on = async move {
            tell.send(()).unwrap();
            ready(1).await
        };
        let mut join = join_all::<i32>(vec![Box::pin(pending()), Box::pin(goes_on)]);
        assert_eq!(poll(&mut join), Poll::Pending);
        told.try_recv().unwrap();
    }
}
