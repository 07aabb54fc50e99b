//! LEB128 numbers and a cursor that never reads past its bytes.

use crate::error::Damage;

/// Appends `value` in LEB128: seven bits a byte, least significant first.
#[inline(always)]
pub(crate) fn put(out: &mut Vec<u8>, value: u64) {
    if value < 0x80 {
        out.push(low_byte(value));
    } else {
        put_long(out, value);
    }
}

fn put_long(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(low_byte(value) | 0x80);
        value >>= 7;
    }
    out.push(low_byte(value));
}

/// Appends a signed value, zigzag folded: 0, -1, 1, -2 become 0, 1, 2, 3.
#[inline]
pub(crate) fn put_signed(out: &mut Vec<u8>, value: i64) {
    put(out, fold(value));
}

/// Appends the difference of two numbers, which may have any distance.
#[inline]
pub(crate) fn put_difference(out: &mut Vec<u8>, value: u64, from: u64) {
    put_signed(out, value.wrapping_sub(from).cast_signed());
}

/// Zigzag: small distances in either direction become small numbers.
#[inline]
pub(crate) fn fold(value: i64) -> u64 {
    (value << 1 ^ value >> 63).cast_unsigned()
}

/// The inverse of [`fold`].
#[inline]
pub(crate) fn unfold(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
}

/// Adds a folded difference, as [`put_difference`] wrote it.
#[inline(always)]
pub(crate) fn add_difference(from: u64, folded: u64) -> u64 {
    from.wrapping_add(unfold(folded).cast_unsigned())
}

fn low_byte(value: u64) -> u8 {
    value.to_le_bytes()[0]
}

/// Reads numbers and bytes from a slice, in order.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Continues where an earlier cursor over the same bytes stopped.
    #[inline(always)]
    pub(crate) fn resume(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    #[inline(always)]
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    #[inline(always)]
    pub(crate) fn byte(&mut self) -> Result<u8, Damage> {
        let byte = *self.bytes.get(self.at).ok_or(Damage::EndOfColumn)?;
        self.at += 1;
        Ok(byte)
    }

    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], Damage> {
        let end = self.at.checked_add(len).ok_or(Damage::EndOfColumn)?;
        let bytes = self.bytes.get(self.at..end).ok_or(Damage::EndOfColumn)?;
        self.at = end;
        Ok(bytes)
    }

    /// Reads a number; one that does not fit 64 bits, or is longer than it need be, is damage.
    #[inline(always)]
    pub(crate) fn number(&mut self) -> Result<u64, Damage> {
        let first = self.byte()?;
        if first < 0x80 {
            return Ok(u64::from(first));
        }
        self.long_number(first)
    }

    #[inline(never)]
    fn long_number(&mut self, first: u8) -> Result<u64, Damage> {
        let mut value = u64::from(first & 0x7f);
        for shift in (7..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 || byte == 0 {
                return Err(Damage::BadNumber);
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Damage::BadNumber)
    }

    /// Reads what [`put_difference`] wrote.
    #[inline(always)]
    pub(crate) fn difference(&mut self, from: u64) -> Result<u64, Damage> {
        Ok(add_difference(from, self.number()?))
    }

    #[inline(always)]
    pub(crate) fn number32(&mut self) -> Result<u32, Damage> {
        u32::try_from(self.number()?).map_err(|_| Damage::BadNumber)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_as_they_were_put() {
        for value in [0, 1, 127, 128, 16_383, 16_384, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            let mut bytes = Vec::new();
            put(&mut bytes, value);
            let mut cursor = Cursor::new(&bytes);
            assert_eq!(cursor.number(), Ok(value));
            assert!(cursor.is_at_end());
        }
    }

    #[test]
    fn differences_reach_any_distance() {
        for (value, from) in [(0, 0), (0, u64::MAX), (u64::MAX, 0), (5, 3), (3, 5), (1 << 63, 0)] {
            let mut bytes = Vec::new();
            put_difference(&mut bytes, value, from);
            assert_eq!(Cursor::new(&bytes).difference(from), Ok(value));
        }
    }

    #[test]
    fn overlong_and_oversized_numbers_are_damage() {
        let overlong = [0x80, 0x00];
        assert_eq!(Cursor::new(&overlong).number(), Err(Damage::BadNumber));
        let too_large = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02];
        assert_eq!(Cursor::new(&too_large).number(), Err(Damage::BadNumber));
        let endless = [0xff; 11];
        assert_eq!(Cursor::new(&endless).number(), Err(Damage::BadNumber));
        assert_eq!(Cursor::new(&[0x80]).number(), Err(Damage::EndOfColumn));
    }
}
