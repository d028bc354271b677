//! How fast the Redis protocol is read and written, on one core: `cargo run --release -p tally-wire --example resp`.
//!
//! Figures for people, not a test: they depend on the machine. Not here: sockets, which cost far more.

#![allow(clippy::print_stdout, reason = "it is run to be read")]

use std::hint::black_box;
use std::time::Instant;
use tally_wire::resp::{DecodeLimits, Decoder, Encoder, Protocol, Replies, command, double, number};

const ROUNDS: usize = 200;
const COMMANDS: usize = 10_000;

fn main() {
    let player = |number: usize| format!("player{number:010}");
    let array = |args: &[&str]| {
        let mut out = Vec::new();
        command(args, &mut out);
        out
    };
    let ping: Vec<u8> = (0..COMMANDS).flat_map(|_| array(&["PING"])).collect();
    let zadd: Vec<u8> = (0..COMMANDS)
        .flat_map(|number| array(&["ZADD", "board", &number.to_string(), &player(number)]))
        .collect();
    let inline: Vec<u8> = (0..COMMANDS)
        .flat_map(|number| format!("ZSCORE board {}\r\n", player(number)).into_bytes())
        .collect();
    for (name, input) in [("PING", &ping), ("ZADD", &zadd), ("inline", &inline)] {
        measure(name, || decode(input));
    }
    let scores: Vec<f64> = (0..COMMANDS).map(|number| (number as f64).sqrt() * 1e3).collect();
    let integers: Vec<f64> = (0..COMMANDS).map(|number| number as f64 * 977.0).collect();
    let mut out = Vec::new();
    for (name, scores) in [("print doubles", &scores), ("print integers", &integers)] {
        measure(name, || {
            out.clear();
            let mut encoder = Encoder::new(&mut out, Protocol::Resp2);
            scores.iter().for_each(|score| encoder.double(*score));
        });
    }
    let texts = |scores: &[f64]| -> Vec<Vec<u8>> {
        let text = |score: &f64| {
            let mut out = Vec::new();
            double::append(*score, &mut out);
            out
        };
        scores.iter().map(text).collect()
    };
    for (name, texts) in [("read doubles", texts(&scores)), ("read integers", texts(&integers))] {
        measure(name, || {
            texts.iter().for_each(|text| {
                black_box(number::score(text));
            })
        });
    }
    measure("skip replies", || {
        let (mut replies, mut at) = (Replies::new(), 0);
        while let Ok(Some(length)) = replies.next(&out[at..]) {
            at += length;
        }
        assert_eq!(at, out.len());
    });
}

fn decode(input: &[u8]) {
    let mut decoder = Decoder::new();
    let mut at = 0;
    while let Ok(Some(taken)) = decoder.next(&input[at..], &DecodeLimits::FULL) {
        black_box(decoder.arg(&input[at..at + taken], 0));
        at += taken;
    }
    assert_eq!(at, input.len());
}

fn measure(name: &str, mut work: impl FnMut()) {
    let start = Instant::now();
    (0..ROUNDS).for_each(|_| work());
    let rate = (ROUNDS * COMMANDS) as f64 / start.elapsed().as_secs_f64();
    println!("{name:>15}: {:6.1} M/s", rate / 1e6);
}
