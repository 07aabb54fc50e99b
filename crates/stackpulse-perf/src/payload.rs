//! Who owns a sample's bytes.

/// A sample's bytes, given back to where they came from when dropped.
#[derive(Debug)]
pub struct Payload(Box<[u8]>);

impl Payload {
    /// Returns the bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl From<Box<[u8]>> for Payload {
    fn from(bytes: Box<[u8]>) -> Self {
        Self(bytes)
    }
}
