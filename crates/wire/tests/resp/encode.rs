//! Replies: one table of both protocols, and that a client reads back the written value.

use tally_wire::resp::{Encoder, Protocol, Replies, Reply};

fn encoded(protocol: Protocol, write: impl Fn(&mut Encoder<'_>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut Encoder::new(&mut out, protocol));
    out
}

#[test]
fn each_reply_in_both_protocols() {
    type Write = fn(&mut Encoder<'_>);
    #[rustfmt::skip]
    let table: &[(Write, &str, &str)] = &[
        (|to| to.simple("OK"), "+OK\r\n", "+OK\r\n"),
        (|to| to.error("ERR what\r\nis this"), "-ERR what  is this\r\n", "-ERR what  is this\r\n"),
        (|to| to.integer(i64::MIN), ":-9223372036854775808\r\n", ":-9223372036854775808\r\n"),
        (|to| to.bulk("a\r\nb"), "$4\r\na\r\nb\r\n", "$4\r\na\r\nb\r\n"),
        (|to| to.bulk(""), "$0\r\n\r\n", "$0\r\n\r\n"),
        (|to| to.null(), "$-1\r\n", "_\r\n"),
        (|to| to.null_array(), "*-1\r\n", "_\r\n"),
        (|to| to.array(0), "*0\r\n", "*0\r\n"),
        (|to| { to.map(1); to.bulk("a"); to.integer(1); }, "*2\r\n$1\r\na\r\n:1\r\n", "%1\r\n$1\r\na\r\n:1\r\n"),
        (|to| { to.set(1); to.bulk("a"); }, "*1\r\n$1\r\na\r\n", "~1\r\n$1\r\na\r\n"),
        (|to| to.double(1.5), "$3\r\n1.5\r\n", ",1.5\r\n"),
        (|to| to.double(-12345.671875), "$13\r\n-12345.671875\r\n", ",-12345.671875\r\n"),
        (|to| to.double(f64::NEG_INFINITY), "$4\r\n-inf\r\n", ",-inf\r\n"),
        (|to| to.exact(i64::MAX), "$19\r\n9223372036854775807\r\n", ",9223372036854775807\r\n"),
        (|to| to.exact(7), "$1\r\n7\r\n", ",7\r\n"),
        (|to| to.boolean(true), ":1\r\n", "#t\r\n"),
        (|to| to.boolean(false), ":0\r\n", "#f\r\n"),
        (|to| to.verbatim("a:1\r\n"), "$5\r\na:1\r\n\r\n", "=9\r\ntxt:a:1\r\n\r\n"),
    ];
    for (write, resp2, resp3) in table {
        assert_eq!(
            encoded(Protocol::Resp2, write).escape_ascii().to_string(),
            resp2.as_bytes().escape_ascii().to_string()
        );
        assert_eq!(
            encoded(Protocol::Resp3, write).escape_ascii().to_string(),
            resp3.as_bytes().escape_ascii().to_string()
        );
    }
}

#[test]
fn what_is_written_reads_back() {
    let out = encoded(Protocol::Resp3, |to| {
        to.array(3);
        to.map(1);
        to.bulk("scores");
        to.set(2);
        to.double(0.1);
        to.exact(i64::MAX);
        to.null();
        to.verbatim("x");
        to.error("ERR no");
    });
    let end = Replies::new().next(&out).unwrap().unwrap();
    let scores = Reply::Set(vec![Reply::Double(b"0.1".into()), Reply::Double(b"9223372036854775807".into())]);
    let map = Reply::Map(vec![(Reply::Bulk(b"scores".into()), scores)]);
    let read = Reply::parse(&out[..end]).unwrap();
    assert_eq!(read, Reply::Array(vec![map, Reply::Null, Reply::Verbatim(b"txt:x".into())]));
    assert_eq!(Reply::parse(&out[end..]), Ok(Reply::Error(b"ERR no".into())));
    assert_eq!(Reply::parse(&encoded(Protocol::Resp2, |to| to.null_array())), Ok(Reply::NullArray));
    assert_eq!(Reply::parse(&encoded(Protocol::Resp2, |to| to.null())), Ok(Reply::Null));
}
