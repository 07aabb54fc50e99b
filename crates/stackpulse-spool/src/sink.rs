//! Where records go.

use crate::record::Record;

/// Takes the records of one recording, in order.
///
/// The caller defines before it uses: every id in a record was defined by an earlier record of the
/// same epoch, and the sink counts definitions in the order of the calls. After an error the sink is
/// spent: later calls may return the same error again and write nothing.
pub trait RecordSink {
    /// Why a record could not be taken.
    type Error;

    /// Takes one record.
    ///
    /// # Errors
    ///
    /// When the record breaks the rules above, or when it could not be stored.
    fn record(&mut self, record: &Record<'_>) -> Result<(), Self::Error>;
}

impl<S: RecordSink + ?Sized> RecordSink for &mut S {
    type Error = S::Error;

    fn record(&mut self, record: &Record<'_>) -> Result<(), Self::Error> {
        (**self).record(record)
    }
}
