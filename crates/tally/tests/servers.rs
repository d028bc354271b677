//! Several servers on one database and one Redis: whoever is asked, it is one service.
//!
//! Three servers of the real binary. Not here: the same on one server (every other test), what the store and the order
//! promise each other (`store/tests`, `ranking/tests`), and periods, whose clock a test moves (`service/tests/servers.rs`).

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tally_testkit::model::{Board, Definition, Range, Record, Score};
use tally_testkit::redis::{RedisKind, ScratchRedis};
use tally_testkit::rng::soak;
use tally_testkit::{Client, DatabaseKind, Request, RespClient, Rng, ScratchDatabase, TestTally};
use tally_wire::resp::Reply;

const TALLY: &str = env!("CARGO_BIN_EXE_tally");
const SECRET: &str = "0909090909090909090909090909090909090909090909090909090909090909";
/// No answer in this time is a fault of the servers; no measurement.
const GIVE_UP: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Servers side by side. They end before their Redis does.
struct Servers {
    all: Vec<TestTally>,
    redis: ScratchRedis,
}

impl Servers {
    fn start(count: usize) -> Self {
        let redis = ScratchRedis::start(RedisKind::Redis7, &[]);
        let url = ScratchDatabase::shared(DatabaseKind::MariaDb10).create_database();
        let ranking = format!("redis://{}", redis.address());
        let one = |_| {
            let mut server = TestTally::stopped(TALLY);
            let settings = [
                ("STORE_URL", url.as_str()),
                ("RANKING_URL", &ranking),
                ("RANKING_TIMEOUT", "1s"),
                ("SECRET", SECRET),
            ];
            for (name, value) in settings {
                server.set(&format!("TALLY_{name}"), value);
            }
            // On a busy machine a look may be late; who was frozen or has lost its Redis says so, and who is asked for a
            // board that was deleted and made again a moment ago.
            for text in [
                "look what other servers",
                "bring ranks to what is stored",
                "`store.lease`",
                "ranks cannot be told now",
            ] {
                server.allow(text);
            }
            server.restart();
            server
        };
        Self { all: (0..count).map(one).collect(), redis }
    }

    fn clients(&self) -> Vec<Client> {
        self.all.iter().map(TestTally::client).collect()
    }
}

/// Sends until the answer is not "ask again": a server that has not looked for a second says so.
fn send(client: &mut Client, request: &Request) -> tally_testkit::Answer {
    let started = Instant::now();
    loop {
        let answer = client.send(request);
        if answer.status != 503 {
            return answer;
        }
        assert!(started.elapsed() < GIVE_UP, "{}", answer.text());
        std::thread::sleep(LOOK_AGAIN);
    }
}

fn get(client: &mut Client, target: &str) -> tally_testkit::Answer {
    send(client, &Request::new("GET", target))
}

fn put(client: &mut Client, board: &str, body: &Value) -> tally_testkit::Answer {
    send(client, &Request::new("PUT", format!("/v1/leaderboards/{board}")).json(body))
}

fn submit(client: &mut Client, board: &str, player: &str, score: i64) -> tally_testkit::Answer {
    let body = json!({"player": player, "score": score});
    send(client, &Request::new("POST", format!("/v1/leaderboards/{board}/scores")).json(&body))
}

fn page(client: &mut Client, board: &str) -> Value {
    get(client, &format!("/v1/leaderboards/{board}/scores?limit=1000")).expect(200)
}

/// Names of a page, best first.
fn names(page: &Value) -> Vec<String> {
    let entries = page["entries"].as_array().expect("entries");
    entries.iter().map(|entry| entry["player"].as_str().expect("a name").to_owned()).collect()
}

#[track_caller]
fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let started = Instant::now();
    while !done() {
        assert!(started.elapsed() < GIVE_UP, "{what}");
        std::thread::sleep(LOOK_AGAIN);
    }
}

#[test]
fn what_one_server_does_holds_on_the_others_at_once() {
    let servers = Servers::start(3);
    let mut clients = servers.clients();
    let [a, b, c] = &mut clients[..] else { panic!("three") };
    // A board and its scores, each at another server.
    put(a, "b", &json!({})).expect(201);
    assert_eq!(submit(b, "b", "ann", 10).expect(200)["rank"], 1);
    assert_eq!(submit(c, "b", "bob", 20).expect(200)["rank"], 1);
    let third = submit(a, "b", "cid", 15).expect(200);
    assert_eq!((&third["rank"], &third["previous"]), (&json!(2), &Value::Null));
    for client in [&mut *a, &mut *b, &mut *c] {
        assert_eq!(names(&page(client, "b")), ["bob", "cid", "ann"]);
        assert_eq!(get(client, "/v1/leaderboards/b").expect(200)["counts"]["all_time"], 3);
    }
    // Hidden on one: its next submit is decided by any as that of a hidden player.
    send(a, &Request::new("POST", "/v1/leaderboards/b/players/bob/ban")).expect(200);
    let hidden = submit(b, "b", "bob", 30).expect(200);
    assert_eq!((&hidden["rank"], &hidden["score"]), (&Value::Null, &json!(30)));
    assert_eq!(names(&page(c, "b")), ["cid", "ann"]);
    send(c, &Request::new("POST", "/v1/leaderboards/b/players/bob/restore")).expect(200);
    assert_eq!(submit(b, "b", "bob", 31).expect(200)["rank"], 1);
    assert_eq!(names(&page(a, "b")), ["bob", "cid", "ann"]);
    // A name that is taken elsewhere is found, also by a first ZADD.
    put(b, "b", &json!({})).expect(200);
    put(c, "b", &json!({"update": "sum"})).refused(409, "definition_conflict");
    let mut resp: Vec<RespClient> =
        servers.all.iter().map(|server| RespClient::connect(server.resp())).collect();
    assert_eq!(resp[0].call(&["ZADD", "z", "1", "x"]), Reply::Integer(1));
    assert_eq!(resp[1].call(&["ZADD", "z", "2", "y"]), Reply::Integer(1));
    assert_eq!(resp[2].call(&["ZCARD", "z"]), Reply::Integer(2));
    // Who is taken out is taken out once.
    assert!(
        matches!(&resp[2].call(&["ZPOPMIN", "z"]), Reply::Array(two) if two[0] == Reply::Bulk(b"x".into()))
    );
    assert!(
        matches!(&resp[0].call(&["ZPOPMIN", "z"]), Reply::Array(two) if two[0] == Reply::Bulk(b"y".into()))
    );
    assert_eq!(resp[1].call(&["ZCARD", "z"]), Reply::Integer(0));
    // The same request at two servers is one.
    let same = Request::new("POST", "/v1/leaderboards/b/scores").json(&json!({"player": "dan", "score": 1}));
    let same = same.idempotent("once");
    let first = send(a, &same);
    let again = send(b, &same);
    assert!(!first.is_replay() && again.is_replay(), "{}", again.text());
    assert_eq!(first.expect(200)["score"], again.expect(200)["score"]);
    // Erased everywhere, by whom it is not known yet on which boards.
    put(a, "new", &json!({})).expect(201);
    submit(a, "new", "ann", 5).expect(200);
    send(c, &Request::new("DELETE", "/v1/players/ann")).expect(204);
    assert_eq!(names(&page(b, "new")), [] as [&str; 0]);
    // Deleted: gone everywhere, and its name is free for any.
    send(b, &Request::new("DELETE", "/v1/leaderboards/b")).expect(204);
    wait_until("it is gone", || a.get("/v1/leaderboards/b").status == 404);
    assert_eq!(submit(c, "b", "ann", 1).status, 404);
    put(a, "b", &json!({"update": "sum"})).expect(201);
    submit(c, "b", "ann", 1).expect(200);
    assert_eq!(submit(b, "b", "ann", 1).expect(200)["score"], 2);
}

#[test]
fn a_key_that_is_revoked_on_one_ends_on_all() {
    let servers = Servers::start(2);
    let [one, other] = &servers.all[..] else { panic!("two") };
    let created = send(&mut one.local(), &Request::new("POST", "/v1/keys").json(&json!({"role": "admin"})));
    let created = created.expect(201);
    let key = created["key"].as_str().expect("it is shown once").to_owned();
    let mut client = other.client().with_key(&key);
    wait_until("the key is known", || client.get("/v1/leaderboards").status == 200);
    let id = created["id"].as_str().expect("an id");
    one.local().delete(&format!("/v1/keys/{id}")).expect(204);
    std::thread::sleep(Duration::from_secs(1));
    // Refused, or not answered at all by a server that cannot know: a busy machine may have kept it from looking.
    let status = client.get("/v1/leaderboards").status;
    assert!([401, 503].contains(&status), "{status}");
    wait_until("it is refused", || client.get("/v1/leaderboards").status == 401);
}

/// One client, each operation at any server: every answer is that of the one model.
#[test]
fn soak_random_operations_at_any_server_equal_one_model() {
    const PLAYERS: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let servers = Servers::start(3);
    let mut clients = servers.clients();
    let mut rng = Rng::of("servers");
    let mut boards: BTreeMap<String, Board> = BTreeMap::new();
    for _ in 0..soak(250) {
        let client = &mut clients[usize::try_from(rng.below(3)).unwrap()];
        let name = format!("b{}", rng.below(3));
        let player = *rng.pick(&PLAYERS);
        let Some(board) = boards.get_mut(&name) else {
            let definition = Definition { score: "int64", subscore: "none", ..Definition::random(&mut rng) };
            put(client, &name, &definition.json()).expect(201);
            boards.insert(name, Board::new(definition));
            continue;
        };
        let of_player = format!("/v1/leaderboards/{name}/players/{player}");
        match rng.below(100) {
            0..55 => {
                let score = rng.between(-4, 4);
                let answer = submit(client, &name, player, score).expect(200);
                let changed = answer["changed"] == json!(true);
                let at = if changed { answer["at"].as_str().unwrap_or("9") } else { "9" };
                let new =
                    Record { player: player.into(), score: Score::Int(score), subscore: 0, at: at.into() };
                let mut wanted = board.submit(new).expect("sums are small");
                (wanted["board"], wanted["period"]) = (json!(name), json!("all_time"));
                assert_eq!(answer, wanted, "on {name}");
            }
            55..70 => {
                let entries = &page(client, &name)["entries"];
                assert_eq!(entries, &json!(board.entries(&Range::default())), "on {name}");
            }
            70..80 => {
                let answer = get(client, &of_player);
                match board.rank(player) {
                    Some(rank) => assert_eq!(answer.expect(200)["rank"], rank),
                    None => answer.refused(404, "player_not_ranked"),
                }
            }
            80..88 => {
                let there = board.remove(player);
                assert_eq!(
                    send(client, &Request::new("DELETE", &of_player)).status,
                    if there { 204 } else { 404 }
                );
            }
            88..93 => {
                board.ban(player);
                send(client, &Request::new("POST", format!("{of_player}/ban"))).expect(200);
            }
            93..98 => {
                board.restore(player);
                send(client, &Request::new("POST", format!("{of_player}/restore"))).expect(200);
            }
            _ => {
                boards.remove(&name);
                send(client, &Request::new("DELETE", format!("/v1/leaderboards/{name}"))).expect(204);
            }
        }
    }
}

/// What a client of a sum board has done: for each player, what was added for certain.
type Added = BTreeMap<String, i64>;

/// Adds to players that all clients share until it is told to stop, each addition under a key, tried again at the others
/// where a server is gone.
fn add_until(stop: &AtomicBool, (nth, mut clients): (usize, Vec<Client>)) -> Added {
    let (mut rng, mut added, mut sent) = (Rng::of(&format!("adds {nth}")), Added::new(), 0_u64);
    let mut at = nth;
    while !stop.load(Ordering::SeqCst) {
        let (player, score) = (format!("p{}", rng.below(30)), rng.between(1, 9));
        sent += 1;
        let body = json!({"player": player, "score": score});
        let request = Request::new("POST", "/v1/leaderboards/sum/scores").json(&body);
        let request = request.idempotent(&format!("{nth}-{sent}"));
        loop {
            let count = clients.len();
            match clients[at % count].try_send(&request) {
                Ok(answer) if answer.status == 200 => break,
                Ok(answer) => assert!([409, 503].contains(&answer.status), "{}", answer.text()),
                Err(_) => at += 1,
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        *added.entry(player).or_default() += score;
    }
    added
}

/// The board as it must be at a server in the end.
#[track_caller]
fn wait_for(client: &mut Client, added: &[Added]) {
    let mut wanted: BTreeMap<String, i64> = BTreeMap::new();
    for (player, score) in added.iter().flatten() {
        *wanted.entry(player.clone()).or_default() += score;
    }
    wait_until("every server has the order of what is stored", || {
        let page = page(client, "sum");
        let entries = page["entries"].as_array().expect("entries");
        let scores: Vec<i64> =
            entries.iter().map(|entry| entry["score"].as_i64().expect("a score")).collect();
        assert!(scores.is_sorted_by(|one, next| one >= next), "{scores:?}");
        let found = names(&page).into_iter().zip(scores).collect::<BTreeMap<_, _>>();
        found == wanted
    });
}

/// One of three is disturbed while three clients write at all of them.
fn disturb(servers: &mut Servers, with: impl FnOnce(&mut Vec<TestTally>)) -> Vec<Added> {
    put(&mut servers.clients()[0], "sum", &json!({"update": "sum"})).expect(201);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..3).map(|nth| (nth, servers.clients())).collect();
        let stop = &stop;
        let adding: Vec<_> =
            clients.into_iter().map(|client| scope.spawn(move || add_until(stop, client))).collect();
        std::thread::sleep(Duration::from_millis(500));
        with(&mut servers.all);
        std::thread::sleep(Duration::from_millis(300));
        stop.store(true, Ordering::SeqCst);
        adding.into_iter().map(|adding| adding.join().unwrap()).collect()
    })
}

#[test]
fn one_is_killed_while_all_write_and_nothing_acknowledged_is_lost() {
    let mut servers = Servers::start(3);
    let added = disturb(&mut servers, |all| all[1].kill9());
    for at in [0, 2] {
        wait_for(&mut servers.all[at].client(), &added);
    }
    // It comes back, and is ready with what is there.
    servers.all[1].restart();
    wait_for(&mut servers.all[1].client(), &added);
}

#[test]
fn one_is_frozen_while_all_write_and_goes_on() {
    let mut servers = Servers::start(3);
    let gone: BTreeSet<String> = (0..30).map(|nth| format!("p{nth}")).collect();
    let mut added = disturb(&mut servers, |all| {
        // A client that waits for its answer goes on when the server does.
        all[1].signal("STOP");
        std::thread::sleep(Duration::from_secs(4));
        all[1].signal("CONT");
    });
    for server in &servers.all {
        wait_for(&mut server.client(), &added);
    }
    // What it may have published late is old: who was removed since stays away.
    let mut client = servers.all[0].client();
    for player in &gone {
        send(&mut client, &Request::new("DELETE", format!("/v1/leaderboards/sum/players/{player}")));
    }
    added.clear();
    for server in &servers.all {
        wait_for(&mut server.client(), &added);
    }
}

#[test]
fn what_redis_loses_is_loaded_once_for_all() {
    let mut servers = Servers::start(3);
    let mut direct = servers.redis.client();
    let added = disturb(&mut servers, |_| {
        assert_eq!(direct.call(&["FLUSHALL"]), Reply::Simple(b"OK".to_vec()));
        std::thread::sleep(Duration::from_secs(1));
    });
    for server in &servers.all {
        wait_for(&mut server.client(), &added);
    }
}

#[test]
fn what_a_dead_server_left_is_published_by_another() {
    let mut servers = Servers::start(2);
    let mut clients = servers.clients();
    put(&mut clients[0], "b", &json!({})).expect(201);
    submit(&mut clients[1], "b", "ann", 1).expect(200);
    servers.redis.freeze();
    let stored = submit(&mut clients[0], "b", "bob", 2).expect(200);
    assert_eq!((&stored["score"], &stored["rank"]), (&json!(2), &Value::Null), "stored, and no more");
    servers.all[0].kill9();
    servers.redis.thaw();
    let mut other = servers.all[1].client();
    wait_until("the other one publishes it", || names(&page(&mut other, "b")) == ["bob", "ann"]);
    servers.all[0].restart();
    assert_eq!(names(&page(&mut servers.all[0].client(), "b")), ["bob", "ann"]);
}

/// Members with that much each, made at any server.
fn members(client: &mut Client, count: usize, units: i64) -> Vec<String> {
    let make = |number: usize| {
        let body = json!({"login_id": format!("m{number}"), "name": "one"});
        let made = client.post("/v1/members", &body).expect(201);
        let id = made["id"].as_str().expect("an id").to_owned();
        client.post("/v1/deposits", &json!({"to": id, "amount": units})).expect(201);
        id
    };
    (0..count).map(make).collect()
}

/// Every server shows the same books, and the ledger replays.
fn check_money(servers: &Servers, members: &[String], sum: i64) -> Vec<i64> {
    let seen: Vec<(Value, Vec<i64>)> = servers
        .clients()
        .iter_mut()
        .map(|client| {
            let balance = |member: &String| -> i64 {
                let shown = client.get(&format!("/v1/wallets/{member}")).expect(200);
                shown["wallets"][0]["balance"].as_str().expect("text").parse().expect("a number")
            };
            let balances: Vec<i64> = members.iter().map(balance).collect();
            (client.get("/v1/ledger/trial-balance").expect(200), balances)
        })
        .collect();
    assert!(seen.iter().all(|one| one == &seen[0]), "{seen:?}");
    let (trial, balances) = &seen[0];
    assert_eq!((&trial["balanced"], balances.iter().sum::<i64>()), (&json!(true), sum));
    servers.all[0].run(&["verify"]).expect(0);
    balances.clone()
}

/// Opposite ways between two, a ring in both directions, and chains all round: money comes at every server or is not there,
/// and nobody hears that somebody else was in the way.
#[test]
fn a_member_is_the_same_on_every_server() {
    let servers = Servers::start(3);
    let mut clients = servers.clients();
    let post =
        |client: &mut Client, path: &str, body: &Value| send(client, &Request::new("POST", path).json(body));
    let member = |name: &str, phone: &str| json!({"login_id": name, "password": "correct horse", "pin": "0042", "phone_number": phone, "name": name});
    let ann = post(&mut clients[0], "/v1/members", &member("ann", "010-1")).expect(201);
    let bob = post(&mut clients[1], "/v1/members", &member("bob", "010-2")).expect(201);
    let (ann, bob) = (ann["id"].as_str().expect("an id"), bob["id"].as_str().expect("an id"));
    post(&mut clients[2], "/v1/deposits", &json!({"to": ann, "amount": 100})).expect(201);
    let sign_in = |client: &mut Client| {
        let body = json!({"loginId": "ann", "password": "correct horse"});
        post(client, "/auth/signin", &body).expect(200)["data"]["accessToken"]
            .as_str()
            .expect("a token")
            .to_owned()
    };
    // A token of one server is good at another, and pays whoever has the number now, wherever that was changed.
    let token = format!("Bearer {}", sign_in(&mut clients[1]));
    let pay = |client: &mut Client, phone: &str, key: &str| {
        let body = json!({"phoneNumber": phone, "amount": 1, "password": 42});
        let request = Request::new("POST", "/transfer/phone-num").json(&body).idempotent(key);
        send(client, &request.header("Authorization", &token))
    };
    pay(&mut clients[2], "0102", "first").expect(201);
    let changed = Request::new("PATCH", format!("/v1/members/{bob}")).json(&json!({"phone_number": "010-3"}));
    send(&mut clients[0], &changed).expect(200);
    pay(&mut clients[2], "0103", "second").expect(201);
    pay(&mut clients[2], "0102", "third").refused(404, "recipient_not_found");
    assert!(pay(&mut clients[0], "0102", "first").is_replay(), "the same request at another server");
    // What is only shown may be as old as is said; a token ends with its password everywhere.
    let me =
        |client: &mut Client| send(client, &Request::new("GET", "/v1/me").header("Authorization", &token));
    me(&mut clients[1]).expect(200);
    let changes = json!({"name": "Ann", "password": "another one"});
    send(&mut clients[0], &Request::new("PATCH", format!("/v1/members/{ann}")).json(&changes)).expect(200);
    assert_eq!(me(&mut clients[0]).status, 401);
    wait_until("a token ends on every server", || clients.iter_mut().all(|client| me(client).status == 401));
    pay(&mut clients[1], "0103", "fourth").refused(401, "unauthorized");
}

#[test]
fn soak_opposite_transfers_at_several_servers_are_in_nobodys_way() {
    const CALLERS: usize = 32;
    let servers = Servers::start(3);
    let all = members(&mut servers.clients()[0], 5, 60);
    std::thread::scope(|scope| {
        for caller in 0..CALLERS {
            let (mut client, all) = (servers.all[caller % 3].client(), &all);
            scope.spawn(move || {
                let mut rng = Rng::of(&format!("money at servers {caller}"));
                for _ in 0..soak(8) {
                    let units = rng.between(1, 40);
                    let at = if rng.percent(50) { 0 } else { caller % all.len() };
                    let next = (at + 1) % all.len();
                    let (from, to) = if (caller / 3).is_multiple_of(2) { (at, next) } else { (next, at) };
                    let row = |from: usize, to: usize, linked: bool| {
                        json!({"from": all[from], "to": all[to], "amount": units, "linked": linked})
                    };
                    if rng.percent(70) {
                        let body = json!({"from": all[from], "to": all[to], "amount": units});
                        let answer = client.post("/v1/transfers", &body);
                        if answer.status != 201 {
                            answer.refused(422, "insufficient_funds");
                        }
                        continue;
                    }
                    let ring: Vec<Value> = (0..all.len())
                        .map(|one| row((from + one) % all.len(), (from + one + 1) % all.len(), one + 1 < all.len()))
                        .collect();
                    let answer = client.post("/v1/transfers/batch", &json!({"transfers": ring})).expect(200);
                    for row in answer["results"].as_array().expect("results") {
                        let code = row["error"]["code"].as_str().unwrap_or("insufficient_funds");
                        assert!(["insufficient_funds", "linked_failed"].contains(&code), "{row}");
                    }
                }
            });
        }
    });
    check_money(&servers, &all, 300);
}

/// The same request at all servers at one moment: one does it, the others repeat it or hear that it is running.
#[test]
fn a_storm_of_equal_transfers_at_several_servers_has_one_effect() {
    const STORM: usize = 99;
    let servers = Servers::start(3);
    let all = members(&mut servers.clients()[0], 2, 1_000);
    let body = json!({"from": all[0], "to": all[1], "amount": 10});
    for round in 1..=5 {
        let request = Request::new("POST", "/v1/transfers").json(&body).idempotent(&format!("k{round}"));
        let barrier = std::sync::Barrier::new(STORM);
        let answers: Vec<_> = std::thread::scope(|scope| {
            let asked: Vec<_> = (0..STORM)
                .map(|number| {
                    let (mut client, barrier, request) =
                        (servers.all[number % 3].client(), &barrier, &request);
                    scope.spawn(move || {
                        // Connected already.
                        client.get("/healthz").expect(200);
                        barrier.wait();
                        client.send(request)
                    })
                })
                .collect();
            asked.into_iter().map(|asked| asked.join().expect("it is answered")).collect()
        });
        let done: Vec<_> = answers.iter().filter(|one| one.status == 201 && !one.is_replay()).collect();
        assert_eq!(done.len(), 1, "one is not a repetition");
        for answer in &answers {
            if answer.status == 409 {
                answer.refused(409, "idempotency_in_progress");
            } else {
                assert_eq!(answer.expect(201), done[0].json());
            }
        }
        assert_eq!(check_money(&servers, &all, 2_000), [1_000 - 10 * round, 1_000 + 10 * round]);
    }
}

/// Moves money round between three until it is told to stop, each time under a key, tried again at the others where a server
/// is gone; the lines that it was told.
fn move_until(stop: &AtomicBool, all: &[String], (nth, mut clients): (usize, Vec<Client>)) -> Vec<Value> {
    let (mut lines, mut at) = (Vec::new(), nth);
    while !stop.load(Ordering::SeqCst) {
        let number = lines.len();
        let body = json!({"from": all[(nth + number) % 3], "to": all[(nth + number + 1) % 3], "amount": 1});
        let request =
            Request::new("POST", "/v1/transfers").json(&body).idempotent(&format!("{nth}-{number}"));
        let started = Instant::now();
        loop {
            let count = clients.len();
            match clients[at % count].try_send(&request) {
                Ok(answer) if answer.status == 201 => break lines.push(answer.json()),
                Ok(answer) => assert!([409, 503].contains(&answer.status), "{}", answer.text()),
                Err(_) => at += 1,
            }
            assert!(started.elapsed() < GIVE_UP, "it is never done");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    lines
}

#[test]
fn one_is_killed_while_money_moves_at_all_and_each_movement_is_done_once() {
    let mut servers = Servers::start(3);
    let all = members(&mut servers.clients()[0], 3, 100_000);
    let stop = AtomicBool::new(false);
    let told: Vec<Value> = std::thread::scope(|scope| {
        let (stop, all) = (&stop, &all);
        let clients: Vec<_> = (0..6).map(|nth| (nth, servers.clients())).collect();
        let moving: Vec<_> =
            clients.into_iter().map(|clients| scope.spawn(move || move_until(stop, all, clients))).collect();
        for at in [1, 2] {
            std::thread::sleep(Duration::from_millis(300));
            servers.all[at].kill9();
        }
        std::thread::sleep(Duration::from_millis(300));
        stop.store(true, Ordering::SeqCst);
        moving.into_iter().flat_map(|moving| moving.join().expect("a mover ends")).collect()
    });
    for at in [1, 2] {
        servers.all[at].restart();
    }
    check_money(&servers, &all, 300_000);
    let mut client = servers.all[1].client();
    let walk = |member: &String| {
        let target = format!("/v1/wallets/{member}/transactions?limit=1000");
        tally_testkit::audit::walk(&mut client, &target, "items").0
    };
    let lines: Vec<Value> = all.iter().flat_map(walk).collect();
    assert_eq!(lines.len(), 2 * told.len() + all.len(), "each is done once, and no other");
    let shown: BTreeSet<String> = lines.iter().map(Value::to_string).collect();
    assert!(told.iter().all(|line| shown.contains(&line.to_string())), "what was acknowledged is there");
}
