//! Pipelines and the end of the server: everything acknowledged is present, and the present state is a prefix of the sent
//! commands.
//!
//! Each client has members of its own and sends pipelines without waiting. The state after a kill must be that after some
//! number of its commands, in their order. It has no fewer than were acknowledged, and each transaction whole or not at
//! all. Not here: single requests (`kill.rs`), and replies to the letter.

use crate::TALLY;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tally_testkit::rng::soak;
use tally_testkit::{GIVE_UP, RespClient, Rng, SetAtEnd, TestTally};
use tally_wire::resp::{Replies, Reply, command};

const ROUNDS: usize = 8;
const CLIENTS: usize = 4;
const MEMBERS: u64 = 8;
/// Operations that a client has sent, without a reply yet.
const AHEAD_MAX: u64 = 60;

/// One change, and how it is sent.
#[derive(Clone, Debug)]
enum Op {
    Set(String, i64),
    Add(String, i64),
    /// With a request of its own, so that it can be sent again.
    Submit(String, i64, String),
    /// From one member to the other, in a transaction.
    Move(String, String, i64),
}

/// Scores by key and member.
type State = BTreeMap<(&'static str, String), i64>;

impl Op {
    /// Its commands, and the replies that they get in this state, which it changes.
    fn apply(&self, state: &mut State) -> Vec<(Vec<String>, Reply)> {
        let bulk = |score: i64| Reply::Bulk(score.to_string().into_bytes());
        let queued = || Reply::Simple(b"QUEUED".to_vec());
        let mut add = |key: &'static str, member: &String, score: i64| {
            let now = state.entry((key, member.clone())).or_insert(0);
            *now += score;
            *now
        };
        let line = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        match self {
            Self::Set(member, score) => {
                let new = state.insert(("set", member.clone()), *score).is_none();
                let reply = Reply::Integer(i64::from(new));
                vec![(line(&["ZADD", "set", &score.to_string(), member]), reply)]
            }
            Self::Add(member, score) => {
                let reply = bulk(add("added", member, *score));
                vec![(line(&["ZINCRBY", "added", &score.to_string(), member]), reply)]
            }
            Self::Submit(player, score, id) => {
                let reply = Reply::Integer(add("sums", player, *score));
                vec![(line(&["LB.SUBMIT", "sums", player, &score.to_string(), "ID", id]), reply)]
            }
            Self::Move(from, to, score) => {
                let (less, more) = (add("moved", from, -score), add("moved", to, *score));
                vec![
                    (line(&["MULTI"]), Reply::Simple(b"OK".to_vec())),
                    (line(&["ZINCRBY", "moved", &(-score).to_string(), from]), queued()),
                    (line(&["ZINCRBY", "moved", &score.to_string(), to]), queued()),
                    (line(&["EXEC"]), Reply::Array(vec![bulk(less), bulk(more)])),
                ]
            }
        }
    }
}

/// One client over all rounds.
struct Worker {
    number: usize,
    rng: Rng,
    /// The part that is known to be stored.
    state: State,
    made: usize,
    /// Sent in this round, with the state before each.
    sent: Vec<Op>,
    acknowledged: usize,
}

impl Worker {
    fn new(number: usize) -> Self {
        let rng = Rng::of(&format!("resp kill {number}"));
        Self { number, rng, state: State::new(), made: 0, sent: Vec::new(), acknowledged: 0 }
    }

    fn next(&mut self) -> Op {
        self.made += 1;
        let (number, rng) = (self.number, &mut self.rng);
        let mut member = || format!("w{number}m{}", rng.below(MEMBERS));
        let (one, other) = (member(), member());
        let score = rng.between(-50, 100);
        match rng.below(4) {
            0 => Op::Set(one, score),
            1 => Op::Add(one, score),
            2 => Op::Submit(one, score, format!("w{number}-{}", self.made)),
            _ => Op::Move(one, other, score),
        }
    }

    /// Sends pipelines of any length until the server has ended or the test has failed, always some ahead of the replies.
    fn work(&mut self, address: SocketAddr, relaxed: bool, (done, over): (&AtomicUsize, &AtomicBool)) {
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream.set_read_timeout(Some(GIVE_UP)).expect("it is a socket");
        let (mut expected, mut state) = (Vec::new(), self.state.clone());
        let (mut replies, mut received) = (Replies::new(), Vec::new());
        let mut out = Vec::new();
        if relaxed {
            command(&["LB.DURABILITY", "relaxed"], &mut out);
            expected.push((Reply::Simple(b"OK".to_vec()), false));
        }
        let mut heard = 0;
        while !over.load(Ordering::Relaxed) {
            for _ in 0..=self.rng.below(AHEAD_MAX) {
                let op = self.next();
                let lines = op.apply(&mut state);
                let last = lines.len() - 1;
                for (at, (line, reply)) in lines.into_iter().enumerate() {
                    command(&line, &mut out);
                    expected.push((reply, at == last));
                }
                self.sent.push(op);
            }
            let written = stream.write_all(&out);
            out.clear();
            // The replies that are on their way may still be read after a kill.
            let ahead = self.rng.below(AHEAD_MAX);
            let ahead = if written.is_err() { 0 } else { usize::try_from(ahead).expect("it is small") };
            while expected.len() - heard > ahead {
                let Some(bytes) = read(&mut stream, &mut replies, &mut received) else { return };
                let reply = Reply::parse(&bytes).expect("a reply");
                let (wanted, ends) = &expected[heard];
                if is_shutting_down(&reply) {
                    return;
                }
                check(&reply, wanted);
                heard += 1;
                if *ends {
                    self.acknowledged += 1;
                    done.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }

    /// Finds how much of the sent data is stored, at least the acknowledged part if the setting promises that; goes on from
    /// there.
    fn settle(&mut self, stored: &State, promised: bool) -> usize {
        let prefix = format!("w{}m", self.number);
        let mine: State =
            stored.iter().filter(|((_, member), _)| member.starts_with(&prefix)).map(own).collect();
        let least = if promised { self.acknowledged } else { 0 };
        let mut state = self.state.clone();
        let mut states = vec![state.clone()];
        for op in &self.sent {
            op.apply(&mut state);
            states.push(state.clone());
        }
        let found = (least..states.len()).rev().find(|at| states[*at] == mine);
        let Some(kept) = found else {
            panic!(
                "client {}: of {} sent and {} acknowledged, no beginning gives {mine:?}\nsent: {:?}",
                self.number,
                self.sent.len(),
                self.acknowledged,
                self.sent
            )
        };
        self.state = mine;
        self.acknowledged = 0;
        kept
    }
}

fn own(entry: (&(&'static str, String), &i64)) -> ((&'static str, String), i64) {
    (entry.0.clone(), *entry.1)
}

/// Of a submit only the score: its ranks depend on the others.
#[track_caller]
fn check(reply: &Reply, wanted: &Reply) {
    match (reply, wanted) {
        (Reply::Array(four), Reply::Integer(_)) if four.len() == 4 => assert_eq!(&four[0], wanted),
        (reply, wanted) => assert_eq!(reply, wanted),
    }
}

/// Nothing was done: so the text says.
fn is_shutting_down(reply: &Reply) -> bool {
    match reply {
        Reply::Error(text) => text == b"TRYAGAIN the server is shutting down",
        // A late transaction: none of it was done.
        Reply::Array(all) => !all.is_empty() && all.iter().all(is_shutting_down),
        _ => false,
    }
}

/// The bytes of the next reply; nothing when the server has ended.
fn read(stream: &mut TcpStream, replies: &mut Replies, received: &mut Vec<u8>) -> Option<Vec<u8>> {
    loop {
        if let Some(length) = replies.next(received).expect("what comes is a reply") {
            let rest = received.split_off(length);
            return Some(std::mem::replace(received, rest));
        }
        let mut part = [0; 4 << 10];
        match stream.read(&mut part) {
            Ok(0) => return None,
            Ok(length) => received.extend_from_slice(&part[..length]),
            Err(error) => {
                assert_ne!(error.kind(), std::io::ErrorKind::WouldBlock, "it does not answer");
                return None;
            }
        }
    }
}

/// Everything that is stored.
fn stored(server: &TestTally) -> State {
    let mut client = RespClient::connect(server.resp());
    let mut state = State::new();
    for key in ["set", "added", "moved", "sums"] {
        let Reply::Array(list) = client.call(&["ZRANGE", key, "0", "-1", "WITHSCORES"]) else {
            panic!("a range is an array")
        };
        for pair in list.chunks(2) {
            let [Reply::Bulk(member), Reply::Bulk(score)] = pair else { panic!("{pair:?} is no pair") };
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("it is text");
            state.insert((key, text(member)), text(score).parse().expect("a whole number"));
        }
    }
    let moved: i64 = state.iter().filter(|((key, _), _)| *key == "moved").map(|(_, score)| score).sum();
    assert_eq!(moved, 0, "a transaction was done by half");
    state
}

/// Sends the submits of the last round again: those that were stored count no second time.
fn send_again(server: &TestTally, worker: &mut Worker, kept: usize) {
    let mut client = RespClient::connect(server.resp());
    for (at, op) in std::mem::take(&mut worker.sent).into_iter().enumerate() {
        let Op::Submit(player, score, id) = &op else { continue };
        if at >= kept {
            op.apply(&mut worker.state);
        }
        let reply = client.call(&["LB.SUBMIT", "sums", player, &score.to_string(), "ID", id]);
        assert!(matches!(reply, Reply::Array(_)), "{reply:?}");
    }
}

/// What an answer says.
struct Promise {
    relaxed: bool,
    /// Whether everything acknowledged must be present.
    kept: bool,
}

const COMMIT: Promise = Promise { relaxed: false, kept: true };
const RELAXED: Promise = Promise { relaxed: true, kept: false };

/// Works, ends the server meanwhile, and checks the state. Returns how many commands were sent without a reply.
fn round(
    server: &mut TestTally,
    workers: &mut [Worker],
    promise: &Promise,
    end: fn(&mut TestTally),
) -> usize {
    let done = AtomicUsize::new(0);
    let mut rng = Rng::of(&format!("pause {}", workers[0].made));
    let least = 50 + usize::try_from(rng.below(1_500)).expect("it is small");
    let pause = Duration::from_micros(rng.below(5_000));
    let address = server.resp();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _end = SetAtEnd::new(&over);
        let working: Vec<_> = workers
            .iter_mut()
            .map(|worker| scope.spawn(|| worker.work(address, promise.relaxed, (&done, &over))))
            .collect();
        // A client that has found a fault has ended: go on, so that it is reported.
        while done.load(Ordering::Relaxed) < least && !working.iter().any(|one| one.is_finished()) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        std::thread::sleep(pause);
        end(server);
        // Each by the end of its connection.
        working.into_iter().for_each(|one| one.join().expect("no reply is wrong"));
    });
    server.restart();
    let state = stored(server);
    let mut unsure = 0;
    for worker in workers.iter_mut() {
        unsure += worker.sent.len() - worker.acknowledged;
        let kept = worker.settle(&state, promise.kept);
        send_again(server, worker, kept);
    }
    let mut expected = State::new();
    workers.iter().for_each(|worker| expected.extend(worker.state.clone()));
    assert_eq!(stored(server), expected, "a submit counts once");
    unsure
}

fn stage() -> (TestTally, Vec<Worker>) {
    let server = TestTally::start(TALLY);
    let made = RespClient::connect(server.resp()).call(&["LB.CREATE", "sums", "UPDATE", "sum"]);
    assert_eq!(made, Reply::Simple(b"OK".to_vec()));
    (server, (0..CLIENTS).map(Worker::new).collect())
}

#[test]
fn a_kill_in_the_middle_of_pipelines_loses_nothing_acknowledged() {
    let (mut server, mut workers) = stage();
    let mut unsure = 0;
    for _ in 0..soak(ROUNDS) {
        unsure += round(&mut server, &mut workers, &COMMIT, TestTally::kill9);
    }
    assert!(unsure > 0, "no kill met a pipeline");
}

#[test]
fn a_relaxed_kill_leaves_a_beginning() {
    let (mut server, mut workers) = stage();
    for _ in 0..soak(ROUNDS) / 2 {
        round(&mut server, &mut workers, &RELAXED, TestTally::kill9);
    }
}

/// After a regular end relaxed commits are stored, too.
#[test]
fn sigterm_in_the_middle_of_pipelines_loses_nothing_acknowledged() {
    let (mut server, mut workers) = stage();
    for _ in 0..soak(ROUNDS) / 4 {
        for promise in [COMMIT, Promise { kept: true, ..RELAXED }] {
            round(&mut server, &mut workers, &promise, TestTally::terminate);
        }
    }
}
