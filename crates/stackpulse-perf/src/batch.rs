//! Events on their way from one thread to another.

use crate::event::Event;

/// Events in the order of their times. Its memory is used again: send it back when it is empty.
#[derive(Debug, Default)]
pub struct Batch {
    events: Vec<Event>,
}

impl Batch {
    /// Makes an empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an event, which is not earlier than the last.
    pub fn push(&mut self, event: Event) {
        self.events.push(event);
    }

    /// Returns how many events it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Takes the events out, and keeps the memory.
    pub fn drain(&mut self) -> impl Iterator<Item = Event> + '_ {
        self.events.drain(..)
    }

    /// Returns the events, to be changed in place.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Event> {
        self.events.iter_mut()
    }
}
