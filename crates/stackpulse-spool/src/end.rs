//! The last block: how the recording ended, and where to find the rest.

use crate::error::Damage;

/// How a recording ended, as its spool says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// As it should.
    Finished,
    /// Early, by a failure; what is there is sound.
    Aborted,
}

/// Length of the payload in bytes. With the block header: the file's last 48 bytes.
pub(crate) const END_LEN: usize = 24;

/// The payload of an end block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) outcome: Outcome,
    /// Where the index block begins.
    pub(crate) index_offset: u64,
    /// Where the newest block of names begins; zero: there is none.
    pub(crate) names_offset: u64,
}

impl End {
    pub(crate) fn encode(&self) -> [u8; END_LEN] {
        let mut bytes = [0; END_LEN];
        bytes[0] = match self.outcome {
            Outcome::Finished => 1,
            Outcome::Aborted => 2,
        };
        bytes[8..16].copy_from_slice(&self.index_offset.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.names_offset.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(payload: &[u8]) -> Result<Self, Damage> {
        let bytes: &[u8; END_LEN] = payload.try_into().map_err(|_| Damage::BadRecord)?;
        let outcome = match bytes[0] {
            1 => Outcome::Finished,
            2 => Outcome::Aborted,
            _ => return Err(Damage::BadTag),
        };
        let [index_offset, names_offset] = [8, 16].map(|at| {
            let mut number = [0; 8];
            number.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(number)
        });
        Ok(Self { outcome, index_offset, names_offset })
    }
}
