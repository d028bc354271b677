//! Replies as a client reads them: ends found however they are cut, and garbage refused.

use proptest::prelude::*;
use tally_wire::resp::{Replies, Reply, ReplyError};

#[test]
fn an_end_is_found_with_the_last_byte() {
    let table = [
        "+OK\r\n",
        "-ERR no\r\n",
        ":1\r\n",
        "$-1\r\n",
        "$3\r\na\r\n\r\n",
        "*-1\r\n",
        "*0\r\n",
        "*2\r\n*1\r\n:1\r\n*2\r\n$1\r\na\r\n_\r\n",
        "%1\r\n+a\r\n~2\r\n,1.5\r\n#t\r\n",
        "%0\r\n",
        ">1\r\n(123456789012345678901234567890\r\n",
        "=5\r\ntxt:x\r\n",
        "*2\r\n*0\r\n$0\r\n\r\n",
    ];
    for reply in table {
        let more = format!("{reply}+more\r\n");
        assert_eq!(Replies::new().next(more.as_bytes()), Ok(Some(reply.len())), "{reply:?}");
        let mut cut = Replies::new();
        for end in 0..reply.len() {
            assert_eq!(cut.next(&reply.as_bytes()[..end]), Ok(None), "{:?}", &reply[..end]);
        }
        assert_eq!(cut.next(more.as_bytes()), Ok(Some(reply.len())), "{reply:?}");
        assert_eq!(cut.next(b"+more\r\n"), Ok(Some(7)), "it is at the start again");
        assert!(Reply::parse(reply.as_bytes()).is_ok(), "{reply:?}");
    }
}

#[test]
fn what_is_no_reply_is_refused() {
    let refused = |input: &str| Replies::new().next(input.as_bytes());
    assert_eq!(refused("HTTP/1.1 200 OK\r\n"), Err(ReplyError::Kind(b'H')));
    assert_eq!(refused("\r\n"), Err(ReplyError::Kind(b'\r')));
    for input in ["$x\r\n", "*-2\r\n", "$99999999999\r\n", "*\r\n"] {
        assert_eq!(refused(input), Err(ReplyError::Number), "{input:?}");
    }
    assert_eq!(refused(&"*1\r\n".repeat(16)), Ok(None));
    assert_eq!(refused(&"*1\r\n".repeat(100_000)), Err(ReplyError::Depth));
    assert_eq!(refused(&format!("+{}", "x".repeat(70_000))), Err(ReplyError::Line));
    assert_eq!(Reply::parse(b"+a\r\n+b\r\n"), Err(ReplyError::Line));
}

proptest! {
    #[test]
    fn garbage_is_refused_or_waited_for_without_a_panic(
        input in proptest::collection::vec(proptest::sample::select(b"*$%~>=+-:,#_(!0123\r\n\n".to_vec()), 0..60)
    ) {
        let whole = Replies::new().next(&input);
        let mut cut = Replies::new();
        let each = (0..=input.len()).map(|end| cut.next(&input[..end])).find(|found| *found != Ok(None));
        prop_assert_eq!(each.unwrap_or(Ok(None)), whole);
        if let Ok(Some(end)) = whole {
            // A line may still hold an invalid number.
            let _ = Reply::parse(&input[..end]);
        }
    }
}
