//! The proxy before plain servers that greet by name, echo, and record what they got; and before a real database.

use super::*;
use crate::database::{DatabaseKind, ScratchDatabase};
use crate::wait::{GIVE_UP, wait_until};
use std::io::{Read, Write};

/// How long a test waits for what must not come. Too short only makes a fault harder to see.
const NOTHING: Duration = Duration::from_millis(50);
const HOUR: Duration = Duration::from_secs(3600);

/// Sends its name, then echoes.
struct Echo {
    address: SocketAddr,
    got: Arc<Mutex<Vec<u8>>>,
}

impl Echo {
    fn start(name: u8) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, got) = (listener.local_addr().unwrap(), Arc::<Mutex<Vec<u8>>>::default());
        let all = Arc::clone(&got);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (mut client, all) = (client.unwrap(), Arc::clone(&all));
                std::thread::spawn(move || {
                    let mut piece = [0; 1024];
                    let mut sent = client.write_all(&[name]);
                    while let (Ok(()), Ok(length @ 1..)) = (&sent, client.read(&mut piece)) {
                        all.lock().unwrap().extend_from_slice(&piece[..length]);
                        sent = client.write_all(&piece[..length]);
                    }
                });
            }
        });
        Self { address, got }
    }

    fn got(&self) -> Vec<u8> {
        self.got.lock().unwrap().clone()
    }
}

/// A connection through the proxy; it waits for the greeting if a name is given.
fn connect(proxy: &Proxy, name: Option<u8>) -> TcpStream {
    let mut stream = TcpStream::connect(proxy.address()).unwrap();
    stream.set_read_timeout(Some(GIVE_UP)).unwrap();
    if let Some(name) = name {
        assert_eq!(read(&mut stream, 1), [name]);
    }
    stream
}

fn read(stream: &mut TcpStream, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes).unwrap();
    bytes
}

fn echoes(stream: &mut TcpStream, bytes: &[u8]) {
    stream.write_all(bytes).unwrap();
    assert_eq!(read(stream, bytes.len()), bytes);
}

/// It ends, cleanly or not, without another byte.
fn is_closed(stream: &mut TcpStream) {
    match stream.read(&mut [0; 16]) {
        Ok(0) => {}
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {}
        other => panic!("it is not closed: {other:?}"),
    }
}

fn says_nothing(stream: &mut TcpStream) {
    stream.set_read_timeout(Some(NOTHING)).unwrap();
    let error = stream.read(&mut [0; 16]).unwrap_err();
    assert!(matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut), "{error}");
    stream.set_read_timeout(Some(GIVE_UP)).unwrap();
}

#[test]
fn it_passes_everything_and_the_end() {
    let echo = Echo::start(b'a');
    let proxy = Proxy::start(echo.address);
    let mut stream = connect(&proxy, Some(b'a'));
    let long: Vec<u8> = (0..1_000_000_u32).map(|at| at.to_le_bytes()[at as usize % 3]).collect();
    let mut writing = stream.try_clone().unwrap();
    let (sent, back) = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            writing.write_all(&long).unwrap();
            // The server responds only after its client has ended its side.
            writing.shutdown(Shutdown::Write).unwrap();
        });
        let mut back = Vec::new();
        stream.read_to_end(&mut back).unwrap();
        (writer.join(), back)
    });
    assert!(sent.is_ok() && back == long && echo.got() == long);
    assert_eq!(proxy.connections_ever(), 1);
}

#[test]
fn it_refuses_new_ones_and_keeps_the_others() {
    let echo = Echo::start(b'a');
    let proxy = Proxy::start(echo.address);
    let mut old = connect(&proxy, Some(b'a'));
    proxy.refuse();
    is_closed(&mut connect(&proxy, None));
    echoes(&mut old, b"one");
    proxy.pass();
    echoes(&mut connect(&proxy, Some(b'a')), b"two");
}

#[test]
fn it_cuts_all_and_takes_new_ones() {
    let echo = Echo::start(b'a');
    let proxy = Proxy::start(echo.address);
    let mut streams = [connect(&proxy, Some(b'a')), connect(&proxy, Some(b'a'))];
    assert_eq!(proxy.connections(), 2);
    proxy.cut();
    assert_eq!(proxy.connections(), 0);
    streams.iter_mut().for_each(is_closed);
    echoes(&mut connect(&proxy, Some(b'a')), b"one");
}

#[test]
fn what_is_held_comes_when_it_passes_again() {
    let echo = Echo::start(b'a');
    let proxy = Proxy::start(echo.address);
    let mut old = connect(&proxy, Some(b'a'));
    for hold in [|proxy: &Proxy| proxy.freeze(), |proxy: &Proxy| proxy.delay(HOUR)] {
        hold(&proxy);
        let mut new = connect(&proxy, None);
        old.write_all(b"held").unwrap();
        let before = echo.got();
        says_nothing(&mut old);
        says_nothing(&mut new);
        assert_eq!(echo.got(), before);
        proxy.pass();
        assert_eq!(read(&mut old, 4), b"held");
        assert_eq!(read(&mut new, 1), b"a");
    }
    proxy.freeze();
    old.write_all(b"lost").unwrap();
    proxy.cut();
    proxy.pass();
    is_closed(&mut old);
    proxy.delay(Duration::from_millis(1));
    echoes(&mut connect(&proxy, Some(b'a')), b"late");
}

#[test]
fn answers_wait_until_enough_was_asked() {
    let echo = Echo::start(b'a');
    let proxy = Proxy::start(echo.address);
    let mut stream = connect(&proxy, Some(b'a'));
    proxy.answer_after(b"ask", 2);
    stream.write_all(b"ask as").unwrap();
    says_nothing(&mut stream);
    stream.write_all(b"k").unwrap();
    assert_eq!(read(&mut stream, 7), b"ask ask");
    echoes(&mut stream, b"more");
}

#[test]
fn new_ones_go_to_another_server_after_it_was_retargeted() {
    let servers = [Echo::start(b'a'), Echo::start(b'b')];
    let proxy = Proxy::start(servers[0].address);
    let mut old = connect(&proxy, Some(b'a'));
    proxy.retarget(servers[1].address);
    echoes(&mut connect(&proxy, Some(b'b')), b"new");
    echoes(&mut old, b"old");
    assert_eq!(servers.map(|server| server.got()), [b"old".to_vec(), b"new".to_vec()]);
}

#[test]
fn without_a_server_the_client_is_closed() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let proxy = Proxy::start(nobody);
    is_closed(&mut connect(&proxy, None));
}

#[test]
fn it_cuts_once_before_the_bytes() {
    let echo = Echo::start(b'a');
    let proxy = Proxy::start(echo.address);
    let (mut stream, mut other) = (connect(&proxy, Some(b'a')), connect(&proxy, Some(b'a')));
    proxy.cut_at(b"COMMIT", Cut::Before);
    echoes(&mut other, b"COMMA");
    echoes(&mut stream, b"BEGIN;");
    assert!(proxy.is_armed());
    stream.write_all(b"INSERT;COMMIT;BEGIN").unwrap();
    // The earlier bytes are echoed, or the end comes first.
    let mut back = Vec::new();
    drop(stream.read_to_end(&mut back));
    assert!(b"INSERT;".starts_with(&back), "{}", back.escape_ascii());
    assert!(!proxy.is_armed());
    echoes(&mut other, b"COMMIT");
    let got = String::from_utf8(echo.got()).unwrap();
    assert!(!got.contains("COMMIT;") && got.matches("COMMIT").count() == 1, "{got}");
}

#[test]
fn the_bytes_may_come_in_pieces() {
    let echo = Echo::start(b'a');
    let proxy = Proxy::start(echo.address);
    for (piece, rest) in [(&b"xCOM"[..], &b"MITx"[..]), (b"C", b"OMMIT"), (b"xCCOMMI", b"T")] {
        proxy.cut_at(b"COMMIT", Cut::Before);
        let mut stream = connect(&proxy, Some(b'a'));
        echoes(&mut stream, piece);
        stream.write_all(rest).unwrap();
        is_closed(&mut stream);
        assert!(!proxy.is_armed() && echo.got().ends_with(piece));
    }
}

#[test]
fn it_cuts_once_at_the_answer() {
    let echo = Echo::start(b'a');
    let proxy = Proxy::start(echo.address);
    let mut stream = connect(&proxy, Some(b'a'));
    echoes(&mut stream, b"BEGIN;");
    proxy.cut_at(b"COMMIT", Cut::Answer);
    stream.write_all(b"COMMIT;").unwrap();
    is_closed(&mut stream);
    assert_eq!(echo.got(), b"BEGIN;COMMIT;", "the server has it, and the client has no answer");
    echoes(&mut connect(&proxy, Some(b'a')), b"COMMIT;");
}

#[test]
fn it_cuts_at_a_later_time_that_the_bytes_come() {
    let echo = Echo::start(b'a');
    let proxy = Proxy::start(echo.address);
    let (mut stream, mut other) = (connect(&proxy, Some(b'a')), connect(&proxy, Some(b'a')));
    proxy.cut_after(b"COMMIT", 4, Cut::Before);
    proxy.refuse_then();
    echoes(&mut stream, b"COMMIT;COMMIT;COM");
    echoes(&mut other, b"COMMIT");
    assert!(proxy.is_armed());
    stream.write_all(b"MIT;COMMIT;").unwrap();
    let mut back = Vec::new();
    drop(stream.read_to_end(&mut back));
    assert!(b"MIT;".starts_with(&back) && !proxy.is_armed(), "{}", back.escape_ascii());
    is_closed(&mut connect(&proxy, None));
    proxy.pass();
    echoes(&mut connect(&proxy, Some(b'a')), b"COMMIT");
}

#[test]
fn its_end_is_the_end_of_its_connections() {
    let echo = Echo::start(b'a');
    let proxy = Proxy::start(echo.address);
    let mut passed = connect(&proxy, Some(b'a'));
    proxy.freeze();
    let mut held = connect(&proxy, None);
    held.write_all(b"held").unwrap();
    drop(proxy);
    is_closed(&mut passed);
    is_closed(&mut held);
}

/// Why there are both cuts: they look the same from outside, and only one of them commits.
#[test]
fn a_commit_without_an_answer_happened_or_did_not() {
    let server = ScratchDatabase::shared(DatabaseKind::MariaDb10);
    let proxy = Proxy::start(server.address());
    let url = server.create_database();
    let name = url.rsplit('/').next().unwrap();
    server.sql(&format!("CREATE TABLE {name}.t (a INT PRIMARY KEY) ENGINE=InnoDB"));
    for (cut, number) in [(Cut::Before, 1), (Cut::Answer, 2)] {
        proxy.cut_at(b"COMMIT", cut);
        let sql = format!("BEGIN; INSERT INTO {name}.t VALUES ({number}); COMMIT;");
        let error = server.try_sql_through(proxy.address(), &sql).unwrap_err();
        assert!(error.contains("2013") || error.contains("2006"), "the connection is lost: {error}");
    }
    assert_eq!(server.sql(&format!("SELECT a FROM {name}.t")), "2");
}

#[test]
fn bytes_that_are_held_come_late_and_others_pass() {
    let server = Echo::start(b'a');
    let proxy = Proxy::start(server.address);
    let (mut held, mut other) = (connect(&proxy, Some(b'a')), connect(&proxy, Some(b'a')));
    proxy.cut_at(b"stop", Cut::Held);
    held.write_all(b"stop").unwrap();
    wait_until("the bytes are held", || !proxy.is_armed());
    says_nothing(&mut held);
    echoes(&mut other, b"stop");
    proxy.pass();
    assert_eq!(read(&mut held, 4), b"stop");
    assert_eq!(server.got(), b"stopstop");
}
