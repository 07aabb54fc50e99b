//! What ends a wait of the user's thread.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Ends a [`Recorder::poll`](crate::Recorder::poll) from another thread, as one that waits for signals needs to.
#[derive(Clone, Debug)]
pub struct Interrupter(SyncSender<()>);

impl Interrupter {
    /// Makes the poll return; one that has not begun returns at once.
    pub fn interrupt(&self) {
        // One ring that has not been heard yet stands for all.
        let _ = self.0.try_send(());
    }
}

/// Makes an interrupter, and what is waited on.
pub(crate) fn interrupter() -> (Interrupter, Receiver<()>) {
    let (sender, receiver) = sync_channel(1);
    (Interrupter(sender), receiver)
}

/// A thread's interrupter, which is used once more when the thread ends, however it does.
#[derive(Debug)]
pub(crate) struct Bell(pub(crate) Interrupter);

impl Bell {
    pub(crate) fn ring(&self) {
        self.0.interrupt();
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        self.ring();
    }
}
