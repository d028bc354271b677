//! The same as real servers: Valkey 9 for the text of doubles, Redis 7 for accepted numbers and the reading of requests.
//!
//! Redis 7.0 prints doubles in the way before 7.2, and Valkey 9 takes neither hexadecimal scores nor blanks before bounds. Both
//! get all other texts. `TALLY_SOAK` multiplies the random cases.

use super::decode::{ERRORS, INLINE};
use super::numbers::{BOUNDS, NO_INTEGERS, REFUSED, TAKEN};
use tally_testkit::rng::soak;
use tally_testkit::{RedisKind, Rng, ScratchRedis};
use tally_wire::resp::number::{bound, integer, score};
use tally_wire::resp::{DecodeLimits, Decoder, Encoder, Protocol, ProtocolError, Reply};

/// Commands sent before their replies are read.
const PIPELINE: usize = 500;

#[test]
fn soak_doubles_print_as_in_valkey() {
    let valkey = ScratchRedis::start(RedisKind::Valkey9, &[]);
    for (protocol, hello) in [(Protocol::Resp2, "2"), (Protocol::Resp3, "3")] {
        let mut client = valkey.client();
        client.call(&["HELLO", hello]);
        let mut rng = Rng::of(hello);
        let values: Vec<f64> =
            edges().into_iter().chain((0..soak(20_000)).map(|_| random(&mut rng))).collect();
        for values in values.chunks(PIPELINE) {
            let texts: Vec<String> = values.iter().map(|value| format!("{value:e}")).collect();
            let adds: Vec<[&str; 4]> = texts.iter().map(|text| ["ZADD", "key", text, text]).collect();
            let asks: Vec<[&str; 3]> = texts.iter().map(|text| ["ZSCORE", "key", text]).collect();
            client.pipeline(&adds);
            for ((value, text), theirs) in values.iter().zip(&texts).zip(client.pipeline(&asks)) {
                let mut ours = Vec::new();
                Encoder::new(&mut ours, protocol).double(*value);
                assert_eq!(Reply::parse(&ours), Ok(theirs), "{text}");
            }
        }
    }
}

/// Every power of two and of ten, with its neighbours, and where layouts change.
fn edges() -> Vec<f64> {
    let powers = (-1074..1024)
        .map(|power| 2f64.powi(power))
        .chain((-323..309).map(|power| format!("1e{power}").parse().unwrap()));
    let digits = (1..18).flat_map(|digits| {
        let digits = "123456789123456789"[..digits].to_owned();
        (-30..30).map(move |power| format!("{digits}e{power}").parse().unwrap())
    });
    let near = |value: f64| [value.next_down(), value, value.next_up(), -value];
    let mut all: Vec<f64> = powers.chain(digits).flat_map(near).collect();
    all.extend([f64::MAX, f64::MIN, f64::INFINITY, f64::NEG_INFINITY]);
    // Minus zero is the one that is not printed as they do.
    all.retain(|value| *value != 0.0);
    all.push(0.0);
    all
}

fn random(rng: &mut Rng) -> f64 {
    let bits = rng.bits();
    let value = match rng.below(4) {
        0 => f64::from_bits(bits),
        1 => bits.cast_signed() as f64 / 1e6,
        2 => (bits >> rng.below(64)) as f64,
        _ => (bits >> 11) as f64 / (1u64 << 53) as f64 * 1e7 - 5e6,
    };
    if value.is_nan() { 0.5 } else { value }
}

#[test]
fn soak_scores_are_taken_as_in_redis_and_valkey() {
    let mut rng = Rng::of("scores");
    let mut texts: Vec<String> = TAKEN.iter().map(|(text, _)| (*text).to_owned()).collect();
    texts.extend(REFUSED.iter().map(|text| (*text).to_owned()));
    texts.extend((0..soak(20_000)).map(|_| number_text(&mut rng)));
    for kind in [RedisKind::Redis7, RedisKind::Valkey9] {
        let server = ScratchRedis::start(kind, &[]);
        let mut client = server.client();
        let asked = |text: &&String| kind == RedisKind::Redis7 || !text.contains(['x', 'X']);
        let texts: Vec<&String> = texts.iter().filter(asked).collect();
        for texts in texts.chunks(PIPELINE) {
            let adds: Vec<[&str; 4]> = texts.iter().map(|text| ["ZADD", "key", text, text]).collect();
            let asks: Vec<[&str; 3]> = texts.iter().map(|text| ["ZSCORE", "key", text]).collect();
            let added = client.pipeline(&adds);
            for ((text, added), theirs) in texts.iter().zip(added).zip(client.pipeline(&asks)) {
                match score(text.as_bytes()) {
                    None => assert_eq!(
                        added,
                        Reply::Error(b"ERR value is not a valid float".into()),
                        "{text:?} {kind:?}"
                    ),
                    Some(ours) => assert_eq!(value(&theirs), Some(ours), "{text:?} {kind:?}"),
                }
            }
        }
    }
}

fn value(reply: &Reply) -> Option<f64> {
    match reply {
        Reply::Bulk(text) => std::str::from_utf8(text).ok()?.parse().ok(),
        _ => None,
    }
}

/// Numbers, or nearly.
fn number_text(rng: &mut Rng) -> String {
    let mut text = String::new();
    if rng.percent(5) {
        text =
            (*rng.pick(&["inf", "-inf", "+infinity", "Inf", "nan", "-nan(1)", "in", "infinit"])).to_owned();
    } else {
        text += *rng.pick(&["", "", "", "-", "+", " ", "--"]);
        let hex = rng.percent(30);
        text += if hex { *rng.pick(&["0x", "0X"]) } else { "" };
        let alphabet: &[u8] = if hex { b"0123456789abcdefABCDEF" } else { b"0123456789" };
        for (length, end) in [(20, "."), (20, if hex { "p" } else { "e" }), (4, "")] {
            (0..rng.below(length)).for_each(|_| text.push(char::from(*rng.pick(alphabet))));
            if rng.percent(40) {
                break;
            }
            text += end;
            text += if end == "." || end.is_empty() { "" } else { *rng.pick(&["", "-", "+"]) };
        }
    }
    if rng.percent(10) {
        let at = usize::try_from(rng.below(text.len() as u64 + 1)).unwrap();
        text.insert(at, char::from(*rng.pick(b" .-+eExXpP()\0\t0")));
    }
    text
}

#[test]
fn soak_bounds_are_taken_as_in_redis() {
    let redis = ScratchRedis::start(RedisKind::Redis7, &[]);
    let mut client = redis.client();
    let mut rng = Rng::of("bounds");
    let mut texts: Vec<String> = BOUNDS.iter().map(|(text, _)| (*text).to_owned()).collect();
    texts.extend(TAKEN.iter().map(|(text, _)| format!("({text}")));
    texts.extend(REFUSED.iter().map(|text| (*text).to_owned()));
    texts.extend(
        (0..soak(5_000)).map(|_| rng.pick(&["", "(", " ", "("]).to_string() + &number_text(&mut rng)),
    );
    for texts in texts.chunks(PIPELINE) {
        let mut commands = Vec::new();
        for text in texts {
            let score = bound(text.as_bytes()).map_or(0.0, |bound| bound.score);
            commands.push(vec!["ZADD".to_owned(), "key".into(), format!("{score:e}"), "member".into()]);
            commands.push(vec!["ZCOUNT".into(), "key".into(), text.clone(), text.clone()]);
            commands.push(vec!["ZCOUNT".into(), "key".into(), text.clone(), "inf".into()]);
        }
        let replies = client.pipeline(&commands);
        for (text, replies) in texts.iter().zip(replies.chunks(3)) {
            match bound(text.as_bytes()) {
                None => {
                    assert_eq!(replies[1], Reply::Error(b"ERR min or max is not a float".into()), "{text:?}")
                }
                Some(bound) => {
                    // Its own score is in it, unless left out.
                    let inside = Reply::Integer(i64::from(!bound.exclusive));
                    assert_eq!((&replies[1], &replies[2]), (&inside, &inside), "{text:?}");
                }
            }
        }
    }
}

#[test]
fn soak_integers_are_taken_as_in_redis() {
    let redis = ScratchRedis::start(RedisKind::Redis7, &[]);
    let mut client = redis.client();
    let mut rng = Rng::of("integers");
    let mut texts: Vec<String> = NO_INTEGERS.iter().map(|text| (*text).to_owned()).collect();
    texts.extend([i64::MIN, -1, 0, 1, i64::MAX].map(|value| value.to_string()));
    texts.extend((0..soak(2_000)).map(|_| {
        let digits = rng.below(21);
        let text: String = (0..digits).map(|_| char::from(*rng.pick(b"0123456789"))).collect();
        rng.pick(&["", "-", "9", "+"]).to_string() + &text
    }));
    let commands: Vec<[&str; 4]> = texts.iter().map(|text| ["ZREMRANGEBYRANK", "none", text, "0"]).collect();
    for (text, reply) in texts.iter().zip(client.pipeline(&commands)) {
        let expected = match integer(text.as_bytes()) {
            Some(_) => Reply::Integer(0),
            None => Reply::Error(b"ERR value is not an integer or out of range".into()),
        };
        assert_eq!(reply, expected, "{text:?}");
    }
}

#[test]
fn protocol_errors_are_those_of_redis() {
    let redis = ScratchRedis::start(RedisKind::Redis7, &["--proto-max-bulk-len", "1mb"]);
    // Redis' own bounds are others: texts that are only beyond ours are not sent.
    for (input, text) in
        ERRORS.iter().filter(|(input, _)| !input.contains("1048577") && !input.contains("524289"))
    {
        let mut client = redis.client();
        client.send_bytes(input.as_bytes());
        let expected = format!("-ERR Protocol error: {text}\r\n");
        assert_eq!(String::from_utf8_lossy(&client.read_to_end()), expected, "{input:?}");
    }
}

#[test]
fn before_auth_redis_refuses_the_same() {
    let redis = ScratchRedis::start(RedisKind::Redis7, &["--requirepass", "secret"]);
    for (input, refused) in [
        ("*11\r\n", Some(ProtocolError::UnauthenticatedMultibulkLength)),
        ("*1\r\n$16385\r\n", Some(ProtocolError::UnauthenticatedBulkLength)),
        ("*10\r\n$16384\r\n", None),
    ] {
        let mut client = redis.client();
        let found = Decoder::new().next(input.as_bytes(), &DecodeLimits::BEFORE_AUTH);
        assert_eq!(found.err(), refused);
        client.send_bytes(input.as_bytes());
        if let Some(error) = refused {
            assert_eq!(String::from_utf8_lossy(&client.read_to_end()), format!("-ERR {error}\r\n"));
        }
    }
}

#[test]
fn soak_inline_commands_are_split_as_in_redis() {
    let redis = ScratchRedis::start(RedisKind::Redis7, &[]);
    let mut rng = Rng::of("inline");
    let mut client = redis.client();
    let quoted = INLINE.iter().filter_map(|(line, _)| line.trim_start().strip_prefix("ECHO "));
    let mut lines: Vec<Vec<u8>> = quoted.map(|line| format!("ECHO {line}").into_bytes()).collect();
    lines.extend((0..soak(3_000)).map(|_| {
        let mut line = b"ECHO ".to_vec();
        line.extend((0..rng.below(12)).map(|_| *rng.pick(b"\"\"'' \\\\xn4fbat\x0b\xff")));
        line.extend_from_slice(b"\r\n");
        line
    }));
    for line in lines {
        client.send_bytes(&line);
        let reply = client.read();
        let mut decoder = Decoder::new();
        match decoder.next(&line, &DecodeLimits::FULL) {
            Ok(taken) => {
                assert_eq!(taken, Some(line.len()));
                let expected = match decoder.len() {
                    2 => Reply::Bulk(decoder.arg(&line, 1).to_vec()),
                    _ => Reply::Error(b"ERR wrong number of arguments for 'echo' command".into()),
                };
                assert_eq!(reply, expected, "{}", line.escape_ascii());
            }
            Err(error) => {
                assert_eq!(reply, Reply::Error(format!("ERR {error}").into()), "{}", line.escape_ascii());
                client = redis.client();
            }
        }
    }
}
