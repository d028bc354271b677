//! The arguments of a command: in the connection's buffer, or copied to outlive it.

use tally_wire::resp::Decoder;

/// The memory of a command beside its arguments: its end here, and later the slot of its reply.
const COMMAND_BYTES: usize = 64;

/// The arguments of one command, the name first.
#[derive(Clone, Copy)]
pub(super) enum Args<'a> {
    /// A command just decoded.
    Wire(&'a Decoder, &'a [u8]),
    /// A command of a log.
    Logged(&'a Log, usize),
}

impl<'a> Args<'a> {
    /// The number of arguments, with the name.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Wire(decoder, _) => decoder.len(),
            Self::Logged(log, at) => log.ends_of(*at).len(),
        }
    }

    /// One argument; empty if there are fewer.
    pub(super) fn get(&self, at: usize) -> &'a [u8] {
        match self {
            Self::Wire(decoder, input) if at < decoder.len() => decoder.arg(input, at),
            Self::Wire(..) => &[],
            Self::Logged(log, command) => log.arg(*command, at),
        }
    }

    /// The arguments from one on.
    pub(super) fn from(self, first: usize) -> impl Iterator<Item = &'a [u8]> {
        (first..self.len()).map(move |at| self.get(at))
    }

    /// Whether an argument is this word in any case.
    pub(super) fn is(&self, at: usize, word: &str) -> bool {
        self.get(at).eq_ignore_ascii_case(word.as_bytes())
    }

    /// The bytes of all arguments.
    pub(super) fn bytes(self) -> usize {
        self.from(0).map(<[u8]>::len).sum()
    }
}

/// Commands in one piece of memory.
#[derive(Debug, Default)]
pub(super) struct Log {
    bytes: Vec<u8>,
    /// The end of each argument.
    ends: Vec<usize>,
    /// The number of arguments up to the end of each command.
    commands: Vec<usize>,
}

impl Log {
    /// The number of commands.
    pub(super) fn len(&self) -> usize {
        self.commands.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// Bytes of the commands, with the memory of each command while it runs.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len() + self.ends.len() * size_of::<usize>() + self.commands.len() * COMMAND_BYTES
    }

    /// Bytes of allocated memory; commands may fill only half of it.
    pub(super) fn capacity(&self) -> usize {
        self.bytes.capacity() + (self.ends.capacity() + self.commands.capacity()) * size_of::<usize>()
    }

    /// Removes all commands and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.commands.clear();
    }

    /// Copies a command.
    pub(super) fn push(&mut self, args: Args<'_>) {
        for arg in args.from(0) {
            self.bytes.extend_from_slice(arg);
            self.ends.push(self.bytes.len());
        }
        self.commands.push(self.ends.len());
    }

    /// The commands in order.
    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = Args<'_>> + DoubleEndedIterator {
        (0..self.len()).map(|at| Args::Logged(self, at))
    }

    fn first(&self, command: usize) -> usize {
        command.checked_sub(1).map_or(0, |before| self.commands[before])
    }

    fn ends_of(&self, command: usize) -> &[usize] {
        &self.ends[self.first(command)..self.commands[command]]
    }

    fn arg(&self, command: usize, at: usize) -> &[u8] {
        let Some(end) = self.ends_of(command).get(at) else { return &[] };
        let nth = self.first(command) + at;
        let start = nth.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..*end]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tally_wire::resp::DecodeLimits;

    #[test]
    fn what_is_kept_is_what_came() {
        let input = b"*3\r\n$4\r\nZADD\r\n$0\r\n\r\n$1\r\nx\r\nPING 'a b'\r\n*1\r\n$4\r\nTIME\r\n";
        let (mut log, mut decoder, mut at) = (Log::default(), Decoder::new(), 0);
        while let Some(length) = decoder.next(&input[at..], &DecodeLimits::FULL).unwrap() {
            log.push(Args::Wire(&decoder, &input[at..]));
            at += length;
        }
        let kept: Vec<Vec<&[u8]>> = log.iter().map(|args| args.from(0).collect()).collect();
        assert_eq!(kept, [vec![&b"ZADD"[..], b"", b"x"], vec![b"PING", b"a b"], vec![b"TIME"]]);
        assert_eq!(log.iter().next().unwrap().get(9), b"");
    }
}
