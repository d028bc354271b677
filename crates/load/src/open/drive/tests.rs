//! Runs against a listener with scripted responses, so that the expected counts are known.

use super::*;
use crate::draws::Skew;
use crate::open::Journey;
use crate::people::People;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The response to the n-th request; `None` closes the connection.
type Answer = Arc<dyn Fn(u64) -> Option<(u16, &'static str)> + Send + Sync>;

const CREATED: (u16, &str) = (201, "{}");

fn listen(answer: impl Fn(u64) -> Option<(u16, &'static str)> + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (answer, number): (Answer, _) = (Arc::new(answer), Arc::new(AtomicU64::new(0)));
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let (answer, number) = (Arc::clone(&answer), Arc::clone(&number));
            std::thread::spawn(move || serve(&stream, &answer, &number));
        }
    });
    address
}

fn serve(stream: &TcpStream, answer: &Answer, number: &AtomicU64) -> Option<()> {
    let mut lines = BufReader::new(stream);
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if lines.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if let Some(digits) = line.strip_prefix("content-length: ") {
                length = digits.trim().parse().ok()?;
            }
            if line == "\r\n" {
                break;
            }
        }
        lines.read_exact(&mut vec![0; length]).ok()?;
        let (status, body) = answer(number.fetch_add(1, Ordering::Relaxed))?;
        let length = body.len();
        let mut out = stream;
        write!(out, "HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n\r\n{body}").ok()?;
    }
}

fn scores(address: SocketAddr, rate: &str, connections: usize, waiting: usize) -> OpenOutcome {
    let scene = scene(address, Journey::Scores);
    let schedule = Schedule::parse(rate, &[Duration::from_millis(500)]).unwrap();
    let bounds = OpenLimits { connections, waiting, answer: Duration::from_secs(30) };
    run(&scene, &schedule, bounds, never(), &mut |_| ()).unwrap()
}

/// A signal that never comes.
fn never() -> mpsc::Receiver<()> {
    mpsc::channel(1).1
}

fn scene(address: SocketAddr, journey: Journey) -> Scene {
    Scene {
        protocol: crate::open::Protocol::Http,
        reads: 0,
        address,
        journey,
        people: People::seeded(10),
        members: 3,
        skew: Skew::Uniform,
        key: None,
        board: "b".into(),
        run: "r".into(),
        seed: 1,
    }
}

#[test]
fn everything_that_is_due_is_done_and_counted() {
    let outcome = scores(listen(|_| Some(CREATED)), "0..400", 4, 1_000);
    assert_eq!((outcome.arrived, outcome.dropped, outcome.failed), (100, 0, 0));
    assert_eq!((outcome.iterations.count(), outcome.calls[0].latencies.count()), (100, 100));
    assert_eq!(outcome.seconds.iter().map(|second| second.done).sum::<u64>(), 100);
    assert!(outcome.errors().is_empty() && outcome.rate() > 0.0);
}

#[test]
fn a_slow_server_is_not_asked_less_and_the_wait_counts() {
    let slow = listen(|_| {
        std::thread::sleep(Duration::from_millis(20));
        Some(CREATED)
    });
    // 100 arrive in half a second; one connection needs two seconds for them.
    let outcome = scores(slow, "200", 1, 1_000);
    assert_eq!((outcome.arrived, outcome.iterations.count()), (100, 100));
    assert!(outcome.iterations.max_ms() > 1_000.0, "{}", outcome.iterations.max_ms());
    let outcome = scores(slow, "200", 1, 5);
    assert!(outcome.dropped > 50, "{}", outcome.dropped);
    assert_eq!(outcome.dropped + outcome.iterations.count(), 100);
    assert_eq!(outcome.seconds.iter().map(|second| second.dropped).sum::<u64>(), outcome.dropped);
}

#[test]
fn refusals_and_broken_connections_are_told_apart_and_outlived() {
    let address = listen(|number| match number % 10 {
        3 => Some((503, r#"{"code":"busy"}"#)),
        5 => Some((500, "no problem")),
        7 => None,
        _ => Some(CREATED),
    });
    let outcome = scores(address, "200", 2, 1_000);
    let errors: Vec<(&str, u64)> = outcome.errors().into_iter().collect();
    let all = [("500", 10), ("503 busy", 10), ("connection: unexpected end of file", 10)];
    assert_eq!(errors, all);
    assert_eq!((outcome.failed, outcome.iterations.count()), (30, 70));
}

#[test]
fn an_answer_that_does_not_come_is_given_up() {
    let address = listen(|number| {
        if number == 0 {
            std::thread::sleep(Duration::from_secs(60));
        }
        Some(CREATED)
    });
    let scene = scene(address, Journey::Scores);
    let schedule = Schedule::parse("20", &[Duration::from_millis(500)]).unwrap();
    let bounds = OpenLimits { connections: 1, waiting: 100, answer: Duration::from_secs(2) };
    let outcome = run(&scene, &schedule, bounds, never(), &mut |_| ()).unwrap();
    assert_eq!(outcome.errors(), [("no answer in time", 1)].into());
    assert_eq!(outcome.iterations.count(), 9);
}

#[test]
fn members_sign_in_first_where_their_tokens_are_needed() {
    const TOKEN: &str = r#"{"data":{"accessToken":"t"}}"#;
    let address = listen(|number| Some(if number < 3 { (200, TOKEN) } else { CREATED }));
    let schedule = Schedule::parse("20", &[Duration::from_millis(500)]).unwrap();
    let bounds = OpenLimits { connections: 2, waiting: 100, answer: Duration::from_secs(30) };
    let (mut signed_in, mut seconds) = (0, 0);
    let mut on_progress = |progress| match progress {
        OpenProgress::SignedIn(done, 3) => signed_in = done,
        OpenProgress::SignedIn(..) => panic!("three of them act"),
        OpenProgress::Second(_) => seconds += 1,
    };
    let outcome =
        run(&scene(address, Journey::MainPage), &schedule, bounds, never(), &mut on_progress).unwrap();
    assert_eq!((signed_in, outcome.arrived, outcome.iterations.count()), (3, 10, 10));
    assert!(seconds > 0);
    assert_eq!(outcome.calls.iter().map(|call| call.count()).collect::<Vec<_>>(), [10, 10, 10]);
    // A rejected sign-in ends the run before it begins.
    let closed = listen(|_| Some((401, r#"{"code":"invalid_credentials"}"#)));
    let error = run(&scene(closed, Journey::Transfers), &schedule, bounds, never(), &mut |_| ()).unwrap_err();
    assert!(error.to_string().contains("` cannot sign in"), "{error}");
}

/// Runs a long schedule and stops it after so many requests.
fn stopped(
    answer: impl Fn(u64) -> Option<(u16, &'static str)> + Send + Sync + 'static,
    requests: u64,
    stops: usize,
) -> OpenOutcome {
    let (stop, stopped) = mpsc::channel(2);
    let address = listen(move |number| {
        if number + 1 == requests {
            (0..stops).for_each(|_| stop.try_send(()).unwrap());
        }
        answer(number)
    });
    let schedule = Schedule::parse("200", &[Duration::from_secs(3_600)]).unwrap();
    let bounds = OpenLimits { connections: 2, waiting: 1_000, answer: Duration::from_secs(600) };
    run(&scene(address, Journey::Scores), &schedule, bounds, stopped, &mut |_| ()).unwrap()
}

#[test]
fn a_run_that_is_told_to_stop_waits_for_what_is_under_way() {
    let outcome = stopped(
        |number| {
            // The response arrives after the stop.
            std::thread::sleep(Duration::from_millis(if number == 49 { 100 } else { 0 }));
            Some(CREATED)
        },
        50,
        1,
    );
    assert!(outcome.interrupted && outcome.arrived >= 50, "{}", outcome.arrived);
    assert_eq!((outcome.iterations.count(), outcome.failed, outcome.dropped), (outcome.arrived, 0, 0));
    assert_eq!(outcome.seconds.iter().map(|second| second.done).sum::<u64>(), outcome.arrived);
}

#[test]
fn told_twice_it_waits_for_nothing() {
    let outcome = stopped(
        |number| {
            // These two connections get no response.
            if number < 48 {
                return Some(CREATED);
            }
            loop {
                std::thread::park();
            }
        },
        50,
        2,
    );
    assert!(outcome.interrupted);
    assert_eq!((outcome.iterations.count(), outcome.failed, outcome.arrived), (48, 2, 50));
}

#[test]
fn one_that_is_stopped_before_its_clock_starts_has_no_figures() {
    let (stop, stopped) = mpsc::channel(1);
    let address = listen(move |_| {
        stop.try_send(()).unwrap();
        loop {
            std::thread::park();
        }
    });
    let schedule = Schedule::parse("20", &[Duration::from_secs(3_600)]).unwrap();
    let bounds = OpenLimits { connections: 1, waiting: 1, answer: Duration::from_secs(600) };
    let error =
        run(&scene(address, Journey::Transfers), &schedule, bounds, stopped, &mut |_| ()).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::Interrupted);
}
