//! Information about the server: `INFO`, `CONFIG GET`, `COMMAND`, `TIME`.
//!
//! Sections and fields are those of Redis as far as they apply here; clients and exporters read them by name.

use super::args::Args;
use super::error;
use super::pattern::Pattern;
use super::session::Session;
use super::spec::{self, Spec, TABLE};
use std::fmt::Write;
use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};
use tally_rules::role::Permission;
use tally_wire::resp::Encoder;

/// The version of Redis whose behaviour this is.
pub(super) const REDIS_VERSION: &str = "7.2.0";

/// `TIME`
pub(super) fn time(_: &mut Session, _: Args<'_>, to: &mut Encoder<'_>) -> error::Result {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    to.array(2);
    to.bulk(now.as_secs().to_string());
    to.bulk(now.subsec_micros().to_string());
    Ok(())
}

/// `CONFIG GET pattern [pattern …]`
pub(super) fn config(session: &mut Session, args: Args<'_>, to: &mut Encoder<'_>) -> error::Result {
    let settings = &session.listener.settings;
    let timeout = settings.idle_timeout.map_or(0, |time| time.as_secs());
    let all: [(&str, String); 10] = [
        ("appendfsync", if settings.relaxed { "everysec" } else { "always" }.to_owned()),
        ("appendonly", "yes".to_owned()),
        ("databases", "1".to_owned()),
        ("maxclients", settings.connections.all.to_string()),
        ("maxmemory", "0".to_owned()),
        ("maxmemory-policy", "noeviction".to_owned()),
        ("port", session.listener.port().to_string()),
        ("proto-max-bulk-len", (512 << 10).to_string()),
        ("save", String::new()),
        ("timeout", timeout.to_string()),
    ];
    // One pattern at a time: there may be many, and each takes more memory than its text.
    let mut meant = [false; 10];
    for pattern in args.from(2) {
        let pattern = Pattern::new(&pattern.to_ascii_lowercase());
        let each = meant.iter_mut().zip(&all);
        each.for_each(|(meant, (name, _))| *meant |= pattern.fits(name.as_bytes()));
    }
    let found = || meant.iter().zip(&all).filter(|(meant, _)| **meant).map(|(_, pair)| pair);
    to.map(found().count());
    for (name, value) in found() {
        to.bulk(name);
        to.bulk(value);
    }
    Ok(())
}

/// `COMMAND [COUNT | DOCS [name …] | INFO [name …] | LIST]`
pub(super) fn command(_: &mut Session, args: Args<'_>, to: &mut Encoder<'_>) -> error::Result {
    if args.len() == 1 {
        to.array(TABLE.len());
        TABLE.iter().for_each(|spec| describe(spec, to));
        return Ok(());
    }
    let named = |to: &mut Encoder<'_>, write: fn(&Spec, &mut Encoder<'_>)| {
        if args.len() == 2 {
            to.array(TABLE.len());
            TABLE.iter().for_each(|spec| write(spec, to));
            return;
        }
        to.array(args.len() - 2);
        for name in args.from(2) {
            match spec::find(name) {
                Some(spec) => write(spec, to),
                None => to.null_array(),
            }
        }
    };
    match args.get(1) {
        word if word.eq_ignore_ascii_case(b"count") => to.integer(TABLE.len() as i64),
        word if word.eq_ignore_ascii_case(b"list") => {
            to.array(TABLE.len());
            TABLE.iter().for_each(|spec| to.bulk(spec.name));
        }
        word if word.eq_ignore_ascii_case(b"info") => named(to, describe),
        // `DOCS`: the arity check refuses other words.
        _ => {
            let wanted: Vec<&Spec> = if args.len() == 2 {
                TABLE.iter().collect()
            } else {
                args.from(2).filter_map(spec::find).collect()
            };
            to.map(wanted.len());
            for spec in wanted {
                to.bulk(spec.name);
                to.map(2);
                to.bulk("summary");
                to.bulk(spec.summary);
                to.bulk("group");
                to.bulk(spec.group);
            }
        }
    }
    Ok(())
}

fn describe(spec: &Spec, to: &mut Encoder<'_>) {
    to.array(10);
    to.bulk(spec.name);
    to.integer(i64::from(spec.arity));
    let kind = match spec.permission {
        _ if spec.writes() => "write",
        Some(Permission::Read) if spec.keys.0 > 0 => "readonly",
        _ => "fast",
    };
    let flags: Vec<&str> =
        [Some(kind), spec.loading.then_some("loading"), spec.permission.is_none().then_some("no_auth")]
            .into_iter()
            .flatten()
            .collect();
    to.set(flags.len());
    flags.iter().for_each(|flag| to.simple(flag));
    to.integer(i64::from(spec.keys.0));
    to.integer(i64::from(spec.keys.1));
    to.integer(i64::from(spec.keys.2));
    to.set(1);
    to.simple(&format!("@{}", spec.group.replace("sorted-set", "sortedset")));
    // Tips, key specifications, subcommands.
    to.set(0);
    to.set(0);
    to.set(0);
}

/// `INFO [section …]`
pub(super) fn info(session: &mut Session, args: Args<'_>, to: &mut Encoder<'_>) -> error::Result {
    const DEFAULT: [&[u8]; 4] = [b"default", b"all", b"everything", b""];
    let wanted = |section: &str| {
        args.len() == 1
            || args.from(1).any(|name| {
                let name = name.to_ascii_lowercase();
                name == section.as_bytes() || DEFAULT.contains(&name.as_slice())
            })
    };
    let mut text = String::new();
    for (name, write) in SECTIONS {
        if wanted(&name.to_ascii_lowercase()) {
            if !text.is_empty() {
                text.push_str("\r\n");
            }
            let _ = write!(text, "# {name}\r\n");
            write(session, &mut |field, value| {
                let _ = write!(text, "{field}:{value}\r\n");
            });
        }
    }
    to.verbatim(&text);
    Ok(())
}

/// Writes the fields of one section.
type Section = fn(&Session, &mut dyn FnMut(&str, String));

const SECTIONS: [(&str, Section); 8] = [
    ("Server", server),
    ("Clients", clients),
    ("Memory", memory),
    ("Persistence", persistence),
    ("Stats", stats),
    ("Replication", replication),
    ("Cluster", cluster),
    ("Keyspace", keyspace),
];

fn server(session: &Session, field: &mut dyn FnMut(&str, String)) {
    let up = session.listener.readiness.started.elapsed().as_secs();
    field("redis_version", REDIS_VERSION.into());
    field("tally_version", env!("CARGO_PKG_VERSION").into());
    field("redis_mode", "standalone".into());
    field("os", format!("{} {}", std::env::consts::OS, std::env::consts::ARCH));
    field("arch_bits", usize::BITS.to_string());
    field("process_id", std::process::id().to_string());
    field("tcp_port", session.listener.port().to_string());
    field("uptime_in_seconds", up.to_string());
    field("uptime_in_days", (up / 86_400).to_string());
}

fn clients(session: &Session, field: &mut dyn FnMut(&str, String)) {
    field("connected_clients", session.listener.clients().len().to_string());
    field("maxclients", session.listener.settings.connections.all.to_string());
}

fn memory(session: &Session, field: &mut dyn FnMut(&str, String)) {
    let bytes = session.listener.readiness.loaded().map_or(0, |tally| {
        let boards = tally.boards.list(None, usize::MAX);
        boards.iter().map(|board| board.ranking.bytes()).sum::<u64>()
    });
    field("used_memory", bytes.to_string());
    field("used_memory_dataset", bytes.to_string());
    field("maxmemory", "0".into());
    field("maxmemory_policy", "noeviction".into());
}

fn persistence(session: &Session, field: &mut dyn FnMut(&str, String)) {
    let loading = session.listener.readiness.loaded().is_none();
    field("loading", u8::from(loading).to_string());
    field("aof_enabled", "1".into());
    if loading {
        let at = session.listener.readiness.progress.snapshot();
        field("loading_total_keys", at.total.to_string());
        field("loading_loaded_keys", at.done.to_string());
        if let Some(eta) = at.eta_s {
            field("loading_eta_seconds", eta.to_string());
        }
    }
    if let Some(tally) = session.listener.readiness.loaded() {
        field("store", tally.store.name().into());
        for (name, value) in tally.store.gauges() {
            field(&format!("store_{name}"), value.to_string());
        }
    }
}

fn stats(session: &Session, field: &mut dyn FnMut(&str, String)) {
    let listener = &session.listener;
    field("total_connections_received", listener.served.load(Ordering::Relaxed).to_string());
    field("total_commands_processed", listener.commands.load(Ordering::Relaxed).to_string());
    if let Some(tally) = listener.readiness.loaded() {
        let lane = tally.lane_stats();
        field("tally_lane_queued", lane.queued_requests.to_string());
        field("tally_lane_requests", lane.requests.to_string());
        field("tally_lane_batches", lane.batches.to_string());
        field("tally_lane_refused", lane.refused_full.to_string());
    }
}

fn replication(_: &Session, field: &mut dyn FnMut(&str, String)) {
    field("role", "master".into());
    field("connected_slaves", "0".into());
}

fn cluster(_: &Session, field: &mut dyn FnMut(&str, String)) {
    field("cluster_enabled", "0".into());
}

fn keyspace(session: &Session, field: &mut dyn FnMut(&str, String)) {
    let boards =
        session.listener.readiness.loaded().map_or(0, |tally| tally.boards.list(None, usize::MAX).len());
    if boards > 0 {
        field("db0", format!("keys={boards},expires=0,avg_ttl=0"));
    }
}
