//! A file in memory that is written and read at the same time.

use std::cell::{Ref, RefCell, RefMut};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::rc::Rc;

/// A file in memory that one end writes and the other reads.
#[derive(Clone, Default)]
pub(crate) struct Shared(Rc<RefCell<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The reading end, with its position.
pub(crate) struct Reader(Shared, u64);

impl Read for Reader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let bytes = self.0.0.borrow();
        let at = usize::try_from(self.1).unwrap().min(bytes.len());
        let len = into.len().min(bytes.len() - at);
        into[..len].copy_from_slice(&bytes[at..at + len]);
        self.1 += len as u64;
        Ok(len)
    }
}

impl Seek for Reader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.1 = match to {
            SeekFrom::Start(at) => at,
            SeekFrom::End(_) => self.0.0.borrow().len() as u64,
            SeekFrom::Current(by) => self.1.saturating_add_signed(by),
        };
        Ok(self.1)
    }
}

impl Shared {
    pub(crate) fn bytes(&self) -> Ref<'_, Vec<u8>> {
        self.0.borrow()
    }

    pub(crate) fn bytes_mut(&self) -> RefMut<'_, Vec<u8>> {
        self.0.borrow_mut()
    }
}

impl Reader {
    pub(crate) fn of(file: &Shared) -> Self {
        Self(file.clone(), 0)
    }
}
