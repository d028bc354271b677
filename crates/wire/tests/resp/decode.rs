//! Requests: tables of accepted and rejected ones, as of Redis, and the properties of `body.rs` on random streams.

use super::body;
use proptest::prelude::*;
use tally_wire::resp::{DecodeLimits, Decoder, ProtocolError, command};

/// Inline commands, and their arguments.
#[rustfmt::skip]
pub(crate) const INLINE: &[(&str, &str)] = &[
    ("PING\r\n", "PING"),
    ("PING\n", "PING"),
    ("\r\n", ""),
    (" \t \r\n", ""),
    ("  ECHO \t hello  world \r\n", "ECHO|hello|world"),
    ("ECHO \"a b\" 'c d'\r\n", "ECHO|a b|c d"),
    ("ECHO \"\" ''\r\n", "ECHO||"),
    ("ECHO \"\\x41\\n\\r\\t\\b\\a\\\"\\q\\xZZ\"\r\n", "ECHO|A\\n\\r\\t\\x08\\x07\\\"qxZZ"),
    ("ECHO 'it\\'s' '\\x41'\r\n", "ECHO|it\\'s|\\\\x41"),
    ("ECHO pre\"fix\"\r\n", "ECHO|prefix"),
    ("\x0bECHO a\x0bb\r\n", "ECHO|a\\x0bb"),
    ("ECHO \"a\"\x0cb\r\n", "ECHO|a|b"),
    ("GET / HTTP\r\n", "GET|/|HTTP"),
    ("$4\r\n", "$4"),
];

/// Errors that close a connection, and the message before.
#[rustfmt::skip]
pub(crate) const ERRORS: &[(&str, &str)] = &[
    ("*x\r\n", "invalid multibulk length"),
    ("*\r\n", "invalid multibulk length"),
    ("*+1\r\n", "invalid multibulk length"),
    ("*01\r\n", "invalid multibulk length"),
    ("*-0\r\n", "invalid multibulk length"),
    ("* 1\r\n", "invalid multibulk length"),
    ("*1048577\r\n", "invalid multibulk length"),
    ("*9223372036854775808\r\n", "invalid multibulk length"),
    ("*1\r\nPING\r\n", "expected '$', got 'P'"),
    ("*1\r\n\r\n", "expected '$', got ' '"),
    ("*1\r\n$\r\n", "invalid bulk length"),
    ("*1\r\n$-1\r\n", "invalid bulk length"),
    ("*1\r\n$524289\r\n", "invalid bulk length"),
    ("*1\r\n$1x\r\n", "invalid bulk length"),
    ("ECHO \"a\r\n", "unbalanced quotes in request"),
    ("ECHO \"a\\\r\n", "unbalanced quotes in request"),
    ("ECHO \"a\"b\r\n", "unbalanced quotes in request"),
    ("ECHO 'a\r\n", "unbalanced quotes in request"),
];

/// One command at the start of `input`, its arguments joined by `|`, and how many bytes it takes.
fn decoded(input: &[u8]) -> Result<Option<(String, usize)>, String> {
    let mut decoder = Decoder::new();
    let taken = decoder.next(input, &DecodeLimits::FULL).map_err(|error| error.to_string())?;
    Ok(taken.map(|taken| {
        let args: Vec<String> =
            decoder.args(&input[..taken]).map(|arg| arg.escape_ascii().to_string()).collect();
        assert!((0..args.len()).all(|number| {
            decoder.arg(&input[..taken], number).escape_ascii().to_string() == args[number]
        }));
        assert_eq!(decoder.is_empty(), args.is_empty());
        (args.join("|"), taken)
    }))
}

#[test]
fn arrays_of_bulks_are_commands() {
    #[rustfmt::skip]
    let table: &[(&str, &str)] = &[
        ("*1\r\n$4\r\nPING\r\n", "PING"),
        ("*2\r\n$4\r\nECHO\r\n$0\r\n\r\n", "ECHO|"),
        ("*2\r\n$4\r\nECHO\r\n$4\r\n\r\n$1\r\n", "ECHO|\\r\\n$1"),
        ("*0\r\n", ""),
        ("*-1\r\n", ""),
        // Ends of lines are skipped, not read, as in Redis.
        ("*1\rX$1\rYaZZ", "a"),
    ];
    for (input, args) in table {
        assert_eq!(decoded(input.as_bytes()), Ok(Some(((*args).into(), input.len()))), "{input:?}");
        let more = [input.as_bytes(), b"*1\r\n"].concat();
        assert_eq!(decoded(&more), Ok(Some(((*args).into(), input.len()))), "{input:?}");
        for end in 0..input.len() {
            assert_eq!(decoded(&input.as_bytes()[..end]), Ok(None), "{:?}", &input[..end]);
        }
    }
}

#[test]
fn inline_commands_know_quotes() {
    for (input, args) in INLINE {
        assert_eq!(decoded(input.as_bytes()), Ok(Some(((*args).into(), input.len()))), "{input:?}");
    }
}

#[test]
fn errors_have_the_texts_of_redis() {
    for (input, text) in ERRORS {
        assert_eq!(decoded(input.as_bytes()), Err(format!("Protocol error: {text}")), "{input:?}");
    }
    let long = |start: &str| [start.as_bytes(), &vec![b'1'; 64 << 10]].concat();
    assert_eq!(decoded(&long("")[..64 << 10]), Ok(None));
    assert_eq!(decoded(&long("a")), Err("Protocol error: too big inline request".into()));
    assert_eq!(decoded(&long("*")), Err("Protocol error: too big mbulk count string".into()));
    assert_eq!(decoded(&long("*1\r\n$")), Err("Protocol error: too big bulk count string".into()));
}

#[test]
fn before_auth_little_is_taken() {
    let refused = |input: &str| Decoder::new().next(input.as_bytes(), &DecodeLimits::BEFORE_AUTH);
    assert_eq!(refused("*10\r\n$16384\r\n"), Ok(None));
    assert_eq!(refused("*11\r\n"), Err(ProtocolError::UnauthenticatedMultibulkLength));
    assert_eq!(refused("a b c d e f g h i j k\r\n"), Err(ProtocolError::UnauthenticatedMultibulkLength));
    assert_eq!(refused("*1\r\n$16385\r\n"), Err(ProtocolError::UnauthenticatedBulkLength));
    // Bytes that no connection may send get a protocol error, not a demand for a key.
    assert_eq!(refused("*1048577\r\n"), Err(ProtocolError::InvalidMultibulkLength));
    assert_eq!(refused("*1\r\n$524289\r\n"), Err(ProtocolError::InvalidBulkLength));
    let text = ProtocolError::UnauthenticatedBulkLength.to_string();
    assert_eq!(text, "Protocol error: unauthenticated bulk length");
}

#[test]
fn http_and_tls_are_recognised() {
    let methods = "POST PUT PATCH DELETE HEAD OPTIONS CONNECT TRACE GET PRI".split(' ');
    let requests = methods.map(|method| format!("{method} / HTTP/1.1\r\n"));
    let others = ["post\n", "Host: localhost\r\n", "hOST:\n", "patch /\n", "\x16", "\x16\x03\x01\x02"];
    for input in requests.chain(others.map(str::to_owned)) {
        assert_eq!(
            Decoder::new().next(input.as_bytes(), &DecodeLimits::FULL),
            Err(ProtocolError::Foreign),
            "{input:?}"
        );
    }
    for input in ["POSTS\n", "Host :\n", "x Host:\n", "GET HTTP/1.1\n", "SET a b HTTP/1.1\n", "\x15\n"] {
        assert!(Decoder::new().next(input.as_bytes(), &DecodeLimits::FULL).is_ok(), "{input:?}");
    }
}

#[test]
fn a_length_reserves_nothing() {
    let mut decoder = Decoder::new();
    assert_eq!(decoder.next(b"*1048576\r\n$524288\r\nabc", &DecodeLimits::FULL), Ok(None));
    assert!(decoder.held() < 1024, "{}", decoder.held());
}

#[test]
fn a_large_command_leaves_little_behind() {
    let mut decoder = Decoder::new();
    let large = [b"*100000\r\n".to_vec(), b"$1\r\na\r\n".repeat(100_000)].concat();
    assert_eq!(decoder.next(&large, &DecodeLimits::FULL), Ok(Some(large.len())));
    assert_eq!(decoder.len(), 100_000);
    assert!(decoder.held() > 1 << 20);
    assert_eq!(decoder.next(b"PING\r\n", &DecodeLimits::FULL), Ok(Some(6)));
    assert!(decoder.held() < 32 << 10, "{}", decoder.held());
}

/// A decoder that starts over at each byte would read 2.7 * 10^11 of them here and not come to an end.
#[test]
fn what_comes_byte_by_byte_is_looked_at_once() {
    let large = [&b"*2\r\n$3\r\nSET\r\n$524288\r\n"[..], &vec![b'x'; 512 << 10], b"\r\n"].concat();
    let many = [b"*100000\r\n".to_vec(), b"$1\r\na\r\n".repeat(100_000)].concat();
    let line = [vec![b'x'; 60 << 10], b"\r\n".to_vec()].concat();
    for input in [large, many, line] {
        let mut decoder = Decoder::new();
        for end in 0..input.len() {
            assert_eq!(decoder.next(&input[..end], &DecodeLimits::FULL), Ok(None));
        }
        assert_eq!(decoder.next(&input, &DecodeLimits::FULL), Ok(Some(input.len())));
    }
}

/// The findings of a fuzzer, and its initial streams.
#[test]
fn the_corpus_of_the_fuzzer_holds() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/requests");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| std::fs::read(entry.unwrap().path()).unwrap());
    assert!(files.map(|bytes| body::run(&bytes)).count() > 5);
}

proptest! {
    #[test]
    fn what_a_client_writes_is_what_is_read(
        args in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 1..12)
    ) {
        let mut request = Vec::new();
        command(&args, &mut request);
        let mut decoder = Decoder::new();
        prop_assert_eq!(decoder.next(&request, &DecodeLimits::FULL), Ok(Some(request.len())));
        prop_assert_eq!(decoder.args(&request).collect::<Vec<_>>(), args);
    }

    #[test]
    fn any_cut_of_any_stream_gives_the_same_commands(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        body::run(&bytes);
    }

    #[test]
    fn what_almost_is_a_request_is_the_same_however_it_is_cut(
        // The first byte selects a stream as it is, with two cuts.
        bytes in proptest::collection::vec(proptest::sample::select(b"*$-0123\r\n\"'\\x a".to_vec()), 4..60)
    ) {
        body::run(&[&[4], &bytes[..]].concat());
    }
}
