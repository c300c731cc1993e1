//! [`EventStream`]: events for who listens.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use super::Event;
use crate::clock::BoxFuture;

/// The events of this program's instances, from [`Everbell::events`](crate::Everbell::events).
///
/// It is also a `Stream`. A listener that falls far behind misses the oldest events, and
/// [`EventStream::missed`] counts them.
pub struct EventStream {
    waiting: Waiting,
    missed: u64,
}

/// A message, and the queue that it came from.
type Received = (Result<Arc<Event>, RecvError>, Receiver<Arc<Event>>);

/// The queue, or the future that has it until something is in it.
enum Waiting {
    Idle(Receiver<Arc<Event>>),
    Polled(BoxFuture<'static, Received>),
    Over,
}

impl std::fmt::Debug for EventStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventStream").field("missed", &self.missed).finish_non_exhaustive()
    }
}

impl EventStream {
    pub(crate) fn new(receiver: Receiver<Arc<Event>>) -> EventStream {
        EventStream { waiting: Waiting::Idle(receiver), missed: 0 }
    }

    /// Waits for the next event. Returns `None` when there cannot be any more: the [`Everbell`](crate::Everbell) was
    /// dropped.
    ///
    /// Cancel safe: an event that is not returned is returned by the next call.
    pub async fn recv(&mut self) -> Option<Arc<Event>> {
        poll_fn(|context| self.poll(context)).await
    }

    /// Returns the next event if there is one by now.
    pub fn try_recv(&mut self) -> Option<Arc<Event>> {
        loop {
            let Waiting::Idle(receiver) = &mut self.waiting else {
                // It was polled before: what it waits for may have come.
                let mut context = Context::from_waker(std::task::Waker::noop());
                return match self.poll(&mut context) {
                    Poll::Ready(event) => event,
                    Poll::Pending => None,
                };
            };
            match receiver.try_recv() {
                Ok(event) => return Some(event),
                Err(TryRecvError::Lagged(missed)) => self.missed += missed,
                Err(TryRecvError::Empty | TryRecvError::Closed) => return None,
            }
        }
    }

    /// Returns how many events were missed, because this listener was too slow.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Arc<Event>>> {
        loop {
            self.waiting = match std::mem::replace(&mut self.waiting, Waiting::Over) {
                Waiting::Over => return Poll::Ready(None),
                Waiting::Idle(mut receiver) => Waiting::Polled(Box::pin(async move {
                    let event = receiver.recv().await;
                    (event, receiver)
                })),
                Waiting::Polled(mut future) => {
                    let Poll::Ready((event, receiver)) = future.as_mut().poll(context) else {
                        self.waiting = Waiting::Polled(future);
                        return Poll::Pending;
                    };
                    match event {
                        Ok(event) => {
                            self.waiting = Waiting::Idle(receiver);
                            return Poll::Ready(Some(event));
                        }
                        Err(RecvError::Lagged(missed)) => {
                            self.missed += missed;
                            Waiting::Idle(receiver)
                        }
                        Err(RecvError::Closed) => return Poll::Ready(None),
                    }
                }
            };
        }
    }
}

impl Stream for EventStream {
    type Item = Arc<Event>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Arc<Event>>> {
        self.poll(context)
    }
}
