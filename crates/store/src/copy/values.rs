//! One value of a row, as both backends have it, and its bytes: for digests, and for the progress of a copy.

use crate::codec::{Input, put_bytes, put_signed};

/// One value of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CopiedValue {
    Null,
    Number(i64),
    Large(u128),
    Text(String),
    Bytes(Vec<u8>),
}

/// The values of a row, in order of the columns.
pub(crate) type CopiedRow = Vec<CopiedValue>;

impl CopiedValue {
    /// Appends the value, so that no other list of values has these bytes.
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Null => out.push(0),
            Self::Number(number) => {
                out.push(1);
                put_signed(*number, out);
            }
            Self::Large(number) => {
                out.push(2);
                out.extend_from_slice(&number.to_be_bytes());
            }
            Self::Text(text) => {
                out.push(3);
                put_bytes(text.as_bytes(), out);
            }
            Self::Bytes(bytes) => {
                out.push(4);
                put_bytes(bytes, out);
            }
        }
    }

    /// Reads what [`put`](Self::put) wrote.
    pub(super) fn take(input: &mut Input<'_>) -> Option<Self> {
        Some(match input.byte()? {
            0 => Self::Null,
            1 => Self::Number(input.signed()?),
            2 => Self::Large(u128::from_be_bytes(input.fixed()?)),
            3 => Self::Text(input.text()?.to_owned()),
            4 => Self::Bytes(input.bytes()?.to_vec()),
            _ => return None,
        })
    }

    /// An amount of money.
    pub(super) fn amount(&self) -> i128 {
        match self {
            Self::Number(number) => i128::from(*number),
            Self::Large(number) => i128::try_from(*number).unwrap_or(i128::MAX),
            Self::Null | Self::Text(_) | Self::Bytes(_) => 0,
        }
    }
}
