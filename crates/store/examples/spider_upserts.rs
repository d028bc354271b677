//! Measures bulk upserts through MariaDB's Spider engine in front of two servers, beside one server alone.
//!
//! Run it with `--release`; arguments are the number of players and the seconds for each row. Servers are those of the test
//! kit, and each commit is on the disk before it is answered. All of them share the processors of this machine. So the
//! processor time of front and nodes for a row says more than a rate does. Each row of the table adds one of the settings of
//! docs/deploy/spider.md. Not here: a network between them.

use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tally_rules::{Micros, PlayerId, Record};
use tally_store::mysql::{MySqlStore, Options};
use tally_store::plan::ALL_TIME;
use tally_store::{BoardNo, ReadSet, ScoreKey, Transactions, WriteSet};
use tally_testkit::{DatabaseKind, Rng, ScratchDatabase};

const BOARD: BoardNo = BoardNo(1);
const ROWS: u64 = 500;
/// Clock ticks of a second, by which Linux counts the time of a process.
const TICKS: f64 = 100.0;
/// Of the kit's servers, whose small log and pool would be measured instead.
const SIZES: [&str; 2] = ["--innodb-buffer-pool-size=512M", "--innodb-log-file-size=512M"];
const SPIDER: &str = "--plugin-load-add=ha_spider";
/// What each row of the table adds to the one before.
const ADDED: [(&str, &[&str]); 5] = [
    ("Spider as it comes", &[]),
    ("+ direct_dup_insert", &["--spider-direct-dup-insert=1"]),
    ("+ conn_recycle_mode", &["--spider-conn-recycle-mode=1"]),
    ("+ bulk_size", &["--spider-bulk-size=1048576"]),
    ("+ internal_xa", &["--spider-internal-xa=1"]),
];
const COLUMNS: &str = "board INT UNSIGNED NOT NULL, part BIGINT UNSIGNED NOT NULL, player VARBINARY(128) NOT NULL, \
     score BIGINT NOT NULL, subscore BIGINT NOT NULL DEFAULT 0, `at` BIGINT NOT NULL, version BIGINT UNSIGNED NOT NULL, \
     gone TINYINT UNSIGNED NOT NULL DEFAULT 0, PRIMARY KEY (board, part, player)";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let players: u64 = arguments.next().map_or(Ok(200_000), |text| text.parse())?;
    let seconds: u64 = arguments.next().map_or(Ok(5), |text| text.parse())?;
    let time = Duration::from_secs(seconds);
    let nodes = [(); 2].map(|()| ScratchDatabase::start_with(DatabaseKind::MariaDb10, &SIZES));
    let mut out = std::io::stdout();
    writeln!(out, "{:24} connections     rows/s   CPU µs/row: front  nodes", "upserts of 500")?;
    for connections in [1, 4] {
        let url = nodes[0].create_database();
        measure("one server, direct", &url, [None, Some(&nodes[0]), None], (players, connections, time))?;
    }
    let mut settings = vec![SPIDER];
    settings.extend(SIZES);
    for (at, (name, added)) in ADDED.into_iter().enumerate() {
        settings.extend(added);
        let front = ScratchDatabase::start_with_spider(&settings);
        for connections in [1, 4] {
            let url = spread(&front, &nodes, &format!("spread_{at}_{connections}"))?;
            measure(
                name,
                &url,
                [Some(&front), Some(&nodes[0]), Some(&nodes[1])],
                (players, connections, time),
            )?;
        }
    }
    Ok(())
}

/// A store whose scores are in both nodes.
fn spread(
    front: &ScratchDatabase,
    nodes: &[ScratchDatabase; 2],
    name: &str,
) -> Result<String, Box<dyn std::error::Error>> {
    front.sql(&format!("CREATE DATABASE {name}"));
    let url = front.url(name);
    drop(MySqlStore::open(&url, &Options::default())?);
    // Nodes differ by their host's name, which two-phase commit needs.
    for (at, (node, host)) in nodes.iter().zip(["127.0.0.1", "127.1"]).enumerate() {
        node.sql(&format!("CREATE DATABASE {name}; CREATE TABLE {name}.scores ({COLUMNS}) ENGINE = InnoDB"));
        let port = node.address().port();
        front.sql(&format!(
            "CREATE SERVER {name}_{at} FOREIGN DATA WRAPPER mysql \
             OPTIONS (HOST '{host}', PORT {port}, USER 'root', DATABASE '{name}')"
        ));
    }
    front.sql(&format!(
        "USE {name}; DROP TABLE scores; CREATE TABLE scores ({COLUMNS}) ENGINE = SPIDER \
         COMMENT = 'wrapper \"mysql\", table \"scores\"' PARTITION BY KEY (player) \
         (PARTITION a COMMENT = 'srv \"{name}_0\"', PARTITION b COMMENT = 'srv \"{name}_1\"')"
    ));
    Ok(url)
}

/// Fills the store, then upserts random players from so many connections.
fn measure(
    name: &str,
    url: &str,
    [front, one, other]: [Option<&ScratchDatabase>; 3],
    (players, connections, time): (u64, u64, Duration),
) -> Result<(), Box<dyn std::error::Error>> {
    let store = MySqlStore::open(url, &Options::default())?;
    for next in (0..players).step_by(ROWS as usize) {
        write(&store, (next..players.min(next + ROWS)).map(key).collect())?;
    }
    let cpu = || [cpu_s(front), cpu_s(one) + cpu_s(other)];
    let (rows, before, began) = (AtomicU64::new(0), cpu(), Instant::now());
    std::thread::scope(|scope| {
        for thread in 0..connections {
            let (rows, store) = (&rows, &store);
            scope.spawn(move || {
                let mut rng = Rng::new(thread);
                while began.elapsed() < time {
                    let own = |_| key(rng.below(players / connections) * connections + thread);
                    let mut keys: Vec<ScoreKey> = (0..ROWS).map(own).collect();
                    keys.sort_unstable();
                    keys.dedup();
                    rows.fetch_add(keys.len() as u64, Ordering::Relaxed);
                    write(store, keys).expect("nobody is in the way");
                }
            });
        }
    });
    let rows = rows.into_inner() as f64;
    let rate = rows / began.elapsed().as_secs_f64();
    let [of_front, of_nodes] = [0, 1].map(|at| (cpu()[at] - before[at]) * 1e6 / rows);
    let mut out = std::io::stdout();
    Ok(writeln!(out, "{name:24} {connections:11} {rate:10.0} {of_front:19.1} {of_nodes:6.1}")?)
}

fn write(store: &MySqlStore, keys: Vec<ScoreKey>) -> Result<(), tally_store::StoreError> {
    let record = Record { score: 1, subscore: 0, at: Micros(1_700_000_000_000_000) };
    let scores: Vec<_> = keys.into_iter().map(|key| (key, Some(record))).collect();
    store
        .run(&ReadSet::default(), &mut |_| WriteSet { scores: scores.clone(), ..WriteSet::default() })
        .map(drop)
}

fn key(number: u64) -> ScoreKey {
    let player = PlayerId::new(&format!("player-{number:010}")).expect("a good name");
    ScoreKey { board: BOARD, window: ALL_TIME, player }
}

/// Seconds of processor time that a server has used; 0 where there is none, or the system does not tell.
fn cpu_s(server: Option<&ScratchDatabase>) -> f64 {
    let used = |server: &ScratchDatabase| {
        let id = std::fs::read_to_string(server.folder().join("data/pid")).ok()?;
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", id.trim())).ok()?;
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
        let mut next = || fields.next()?.parse::<f64>().ok();
        Some((next()? + next()?) / TICKS)
    };
    server.and_then(used).unwrap_or(0.0)
}
