//! Scores spread over two MariaDB by a third one's Spider engine: the whole contract, and tests of three servers.
//!
//! Set up as docs/deploy/spider.md says, with its statements and its settings, so that the page cannot rot. Every other
//! table is the front's own. Not here: how fast it is (the example `spider_upserts`).

use super::*;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use tally_rules::Micros;
use tally_store::{Reads, Transactions};

/// The page of the documentation.
const PAGE: &str = include_str!("../../../../../docs/deploy/spider.md");

/// The lines of the page's block that begins with this word.
fn block(language: &str) -> &'static str {
    let (_, from) = PAGE.split_once(&format!("```{language}\n")).expect("the page has this block");
    from.split_once("```").expect("a block ends").0
}

/// Three servers, one in front of two.
struct Servers {
    front: ScratchDatabase,
    nodes: [ScratchDatabase; 2],
    databases: AtomicU64,
}

impl Servers {
    fn start() -> Self {
        let settings: Vec<String> = block("ini")
            .lines()
            .filter(|line| !line.starts_with(['#', '[']) && !line.trim().is_empty())
            .map(|line| format!("--{}", line.replace(' ', "")))
            .collect();
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        let front = ScratchDatabase::start_with_spider(&settings);
        let nodes = [(); 2].map(|()| ScratchDatabase::start(DatabaseKind::MariaDb10));
        Self { front, nodes, databases: AtomicU64::new(0) }
    }

    /// Those that all tests of this process share.
    fn shared() -> &'static Self {
        static SHARED: OnceLock<Servers> = OnceLock::new();
        SHARED.get_or_init(Self::start)
    }

    /// A database on each, of one name, as the page makes it; returns the front's address and the name.
    fn database(&self) -> (String, String) {
        self.database_of(|statements| statements.to_owned())
    }

    /// The same with other statements.
    fn database_of(&self, page: impl Fn(&str) -> String) -> (String, String) {
        let name = format!("tally_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        let create = format!("CREATE DATABASE {name}; USE {name};");
        self.front.sql(&create);
        let url = self.front.url(&name);
        drop(open(&url));
        let (on_nodes, on_front) = (page(block("sql")), page(block("mysql")));
        for node in &self.nodes {
            node.sql(&format!("{create} {on_nodes}"));
        }
        // Two hosts by name: Spider's two-phase commit distinguishes nodes by that alone.
        let place = |host: &str, at: usize| format!("'{host}', PORT {}", self.nodes[at].address().port());
        let on_front = on_front
            .replace("'node1.example', PORT 3306", &place("127.0.0.1", 0))
            .replace("'node2.example', PORT 3306", &place("127.1", 1))
            .replace(
                "USER 'tally', PASSWORD 'PASSWORD', DATABASE 'tally'",
                &format!("USER 'root', DATABASE '{name}'"),
            )
            .replace("tally_node", &format!("{name}_node"));
        self.front.sql(&format!("USE {name}; {on_front}"));
        (url, name)
    }
}

struct Spider {
    url: String,
    /// The folder of its archives.
    archives: TempDir,
}

fn fresh() -> Spider {
    Spider { url: Servers::shared().database().0, archives: tempfile::tempdir().unwrap() }
}

impl Backend for Spider {
    fn name(&self) -> &'static str {
        "mariadb"
    }

    fn another(&self) -> Box<dyn Backend> {
        Box::new(fresh())
    }

    fn open(&self) -> Box<dyn Store> {
        let archives = Some(self.archives.path().to_owned());
        Box::new(MySqlStore::open(&self.url, &Options { archives, ..patient() }).unwrap())
    }
}

store_contract!(fresh);

fn batch(score: i64) -> WriteSet {
    scores((0..PLAYERS).map(|number| (key(1, 0, &format!("player{number}")), Some(record(score)))).collect())
}

const PLAYERS: u32 = 400;

/// A number that a node counts.
fn counted(node: &ScratchDatabase, name: &str) -> u64 {
    let row = node.sql(&format!("SHOW GLOBAL STATUS LIKE '{name}'"));
    row.rsplit('\t').next().expect("a value").parse().expect("a number")
}

/// The reason for the settings: with Spider's own a node gets a statement for each row.
#[test]
fn a_batch_is_one_statement_at_each_node() {
    let servers = Servers::start();
    let (url, name) = servers.database();
    let store = open(&url);
    for score in [1, 2] {
        let before = servers.nodes.each_ref().map(|node| counted(node, "Com_insert"));
        store.run(&ReadSet::default(), &mut |_| batch(score)).unwrap();
        for (node, before) in servers.nodes.iter().zip(before) {
            assert_eq!(counted(node, "Com_insert") - before, 1);
        }
    }
    let rows = |server: &ScratchDatabase| -> u32 {
        server.sql(&format!("SELECT COUNT(*) FROM {name}.scores WHERE score = 2")).parse().unwrap()
    };
    let of_nodes = servers.nodes.each_ref().map(rows);
    assert!(of_nodes.iter().all(|rows| *rows > PLAYERS / 4), "{of_nodes:?}");
    assert_eq!((of_nodes.iter().sum(), rows(&servers.front)), (PLAYERS, PLAYERS));
}

#[test]
fn without_a_node_nothing_is_half_done_and_when_it_is_back_all_goes_on() {
    let mut servers = Servers::start();
    let (url, _) = servers.database();
    let store = open(&url);
    let keys: Vec<_> = batch(0).scores.into_iter().map(|(key, _)| key).collect();
    let all_have =
        |score| store.records(&keys).unwrap().into_iter().all(|found| found == Some(record(score)));
    store.run(&ReadSet::default(), &mut |_| batch(1)).unwrap();
    servers.nodes[1].kill();
    for _ in 0..3 {
        is_away(&store.run(&ReadSet::default(), &mut |_| batch(2)));
        is_away(&store.records(&keys));
    }
    servers.nodes[1].restart();
    // The first statement on a lost connection detects the loss.
    let mut tries = 0;
    while store.records(&keys).is_err() {
        tries += 1;
        assert!(tries < 100, "{:?}", store.records(&keys));
    }
    assert!(all_have(1));
    while store.run(&ReadSet::default(), &mut |_| batch(3)).is_err() {
        tries += 1;
        assert!(tries < 100, "it is written to again");
    }
    assert!(all_have(3));
}

/// With the host's name from the page.
#[test]
fn nodes_that_differ_by_their_port_alone_are_refused_by_two_phases() {
    let servers = Servers::start();
    let (url, name) = servers.database();
    let port = servers.nodes[1].address().port();
    servers.front.sql(&format!(
        "CREATE OR REPLACE SERVER {name}_node2 FOREIGN DATA WRAPPER mysql \
         OPTIONS (HOST '127.0.0.1', PORT {port}, USER 'root', DATABASE '{name}'); FLUSH TABLES"
    ));
    let refused = open(&url).run(&ReadSet::default(), &mut |_| batch(1));
    assert!(
        matches!(&refused, Err(error) if error.to_string().contains("xid member already exists")),
        "{refused:?}"
    );
}

/// Tables of the page from before columns had defaults: the front's is migrated as any other, the nodes' stay as they were.
#[test]
fn older_tables_are_written_to_before_and_after_the_front_is_migrated() {
    let servers = Servers::shared();
    let (url, name) = servers.database_of(|page| page.replace(" DEFAULT 0", ""));
    let plain = |score| scores(vec![(key(1, 0, "p"), Some(Record { score, subscore: 0, at: Micros(9) }))]);
    let both = || {
        let store = open(&url);
        for changes in [batch(1), plain(1), plain(2)] {
            store.run(&ReadSet::default(), &mut |_| changes.clone()).unwrap();
            let (of, wanted) = changes.scores[0].clone();
            assert_eq!(store.records(&[of]).unwrap(), [wanted]);
        }
    };
    both();
    servers
        .front
        .sql(&format!("USE {name}; {}", include_str!("../../../migrations/mysql/0009_plain_scores.sql")));
    let rows = servers.front.sql(&format!("SELECT COUNT(*) FROM {name}.scores"));
    assert_eq!(rows, (PLAYERS + 1).to_string(), "none is touched");
    both();
}
