//! Numbers, texts and options, written to a buffer and read back.
//!
//! Small numbers take few bytes, because most are small (LEB128; signed ones are mapped to unsigned first). A reader returns
//! `None` for bytes that it cannot read, and never allocates more than the input has. Not here: the contents of a row.

/// Appends a number.
pub(crate) fn put_number(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends a number that may be negative: 0, -1, 1, -2 … become 0, 1, 2, 3 …
pub(crate) fn put_signed(number: i64, out: &mut Vec<u8>) {
    put_number(((number << 1) ^ (number >> 63)).cast_unsigned(), out);
}

/// Appends bytes with their length.
pub(crate) fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    put_number(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Appends an optional value.
pub(crate) fn put_option<T>(value: Option<T>, out: &mut Vec<u8>, put: impl FnOnce(T, &mut Vec<u8>)) {
    out.push(u8::from(value.is_some()));
    if let Some(value) = value {
        put(value, out);
    }
}

/// The bytes that are left to read.
pub(crate) struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    pub(crate) fn boolean(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    pub(crate) fn number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                return None;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    pub(crate) fn signed(&mut self) -> Option<i64> {
        let folded = self.number()?;
        Some((folded >> 1).cast_signed() ^ -(folded & 1).cast_signed())
    }

    /// A number that fits into 32 bits.
    pub(crate) fn small(&mut self) -> Option<u32> {
        self.number()?.try_into().ok()
    }

    pub(crate) fn fixed<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (first, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(first)
    }

    pub(crate) fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    /// An optional value: `Some(None)` if it is missing.
    pub(crate) fn option<T>(&mut self, get: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        if self.boolean()? { get(self).map(Some) } else { Some(None) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_edges_of_numbers_read_back() {
        for number in [0, 1, 127, 128, 16_383, 16_384, u64::MAX - 1, u64::MAX] {
            let mut out = Vec::new();
            put_number(number, &mut out);
            put_signed(number.cast_signed(), &mut out);
            let mut input = Input::new(&out);
            assert_eq!(input.number(), Some(number));
            assert_eq!(input.signed(), Some(number.cast_signed()));
            assert!(input.is_empty());
        }
        assert_eq!(Input::new(&[0xff; 10]).number(), None, "more than 64 bits");
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(
            number in any::<i64>(), bytes in proptest::collection::vec(any::<u8>(), 0..9), there in any::<bool>()
        ) {
            let mut out = Vec::new();
            put_signed(number, &mut out);
            put_option(there.then_some(&bytes), &mut out, |bytes, out| put_bytes(bytes, out));
            let mut input = Input::new(&out);
            prop_assert_eq!(input.signed(), Some(number));
            prop_assert_eq!(input.option(Input::bytes), Some(there.then_some(&bytes[..])));
            prop_assert!(input.is_empty());
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..30)) {
            let mut input = Input::new(&bytes);
            while input.option(Input::text).is_some() && input.number().is_some() {}
        }
    }
}
