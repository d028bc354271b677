//! The beginning, upkeep and end of each fault.
//!
//! A fault hits the first server, the last database or the last node. Not here: when (`run.rs`).

use super::cells::Fault;
use super::world::{NODES, Redis, World};
use tally_testkit::{COMMIT, Cut, Reply};

/// This many messages on the way to each database are held: those of every lane.
const HELD: usize = 3;

/// Begins. Gives what [`keep_up`] needs.
pub(crate) fn begin(world: &mut World) -> Vec<usize> {
    let first = &world.servers[0];
    match world.cell.fault {
        Fault::Frozen => first.tally.signal("STOP"),
        Fault::DatabasePartition => first.to_databases.iter().for_each(|proxy| proxy.freeze()),
        Fault::RedisPartition => first.to_redis.iter().for_each(|proxy| proxy.freeze()),
        Fault::DatabaseKilled => world.databases.last_mut().expect("one").kill(),
        Fault::DatabaseBack => world.databases.last_mut().expect("one").put_copy_back(),
        Fault::RedisEmptied => empty(&world.redis),
        Fault::NodeLost => match &mut world.redis {
            Redis::None => unreachable!("no such cell"),
            Redis::One(redis) => redis.kill(),
            Redis::Cluster(cluster) => cluster.kill(NODES - 1),
        },
        Fault::Clock(hours) => jump(world, hours),
        Fault::CommitUnanswered | Fault::MessageHeld => {}
    }
    if world.cell.has_standby() {
        let standby = &mut world.servers[1].tally;
        standby.launch();
        world.addresses.add(standby.address());
    }
    vec![HELD; world.databases.len()]
}

/// Makes it again if it is a single moment.
pub(crate) fn keep_up(world: &World, held: &mut [usize]) {
    for (proxy, left) in world.servers[0].to_databases.iter().zip(held) {
        match world.cell.fault {
            Fault::CommitUnanswered if !proxy.is_armed() => proxy.cut_at(COMMIT, Cut::Answer),
            Fault::MessageHeld if !proxy.is_armed() && *left > 0 => {
                *left -= 1;
                proxy.cut_at(COMMIT, Cut::Held);
            }
            _ => {}
        }
    }
}

/// Ends it. A server that another one has replaced must end by itself.
pub(crate) fn end(world: &mut World) {
    match world.cell.fault {
        Fault::Frozen => world.servers[0].tally.signal("CONT"),
        Fault::DatabaseKilled => world.databases.last_mut().expect("one").restart(),
        Fault::NodeLost => match &mut world.redis {
            Redis::None => unreachable!("no such cell"),
            Redis::One(redis) => redis.restart(),
            Redis::Cluster(cluster) => cluster.restart(NODES - 1),
        },
        Fault::Clock(hours) => jump(world, -hours),
        Fault::DatabasePartition
        | Fault::RedisPartition
        | Fault::DatabaseBack
        | Fault::RedisEmptied
        | Fault::CommitUnanswered
        | Fault::MessageHeld => {}
    }
    let first = &mut world.servers[0];
    first.to_databases.iter().chain(&first.to_redis).for_each(|proxy| proxy.pass());
    if world.cell.has_standby() {
        assert_eq!(first.tally.wait_exit(), Some(1), "it was replaced");
        world.servers[1].tally.wait_ready();
    }
}

fn jump(world: &mut World, hours: i64) {
    world.clock.as_mut().expect("it has a clock").jump(hours * 3_600);
}

fn empty(redis: &Redis) {
    match redis {
        Redis::None => unreachable!("no such cell"),
        Redis::One(redis) => assert_eq!(redis.client().call(&["FLUSHALL"]), Reply::Simple(b"OK".to_vec())),
        Redis::Cluster(cluster) => cluster.flush(),
    }
}
