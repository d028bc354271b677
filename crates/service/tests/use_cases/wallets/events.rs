//! Events read on from a position: of money and of contests, by a clock of the test's.
//!
//! Not here: streams of them (`tally/tests/api/events`), and their contract in a store (`store/tests`).

use crate::wallets::world::{Kind, World, code, order};
use tally_rules::contest::definition::ContestSpec;
use tally_rules::contest::{ContestId, ContestState};
use tally_rules::event::{Event, EventKind};
use tally_rules::ledger::{MemberId, TransferKind};
use tally_service::contests::execute::ContestActor;
use tally_service::contests::{change, finish, read, scheduler};
use tally_service::events::KEEP_MICROS;
use tally_service::events::hub::Subject;
use tally_service::events::log::{EventLog, Offset, PAGE, StreamItem, StreamStart};

const SECOND: i64 = 1_000_000;

fn deposit(world: &World, to: MemberId, units: i64) {
    let done = world.post_all(vec![(order(TransferKind::Deposit { to }, units), false)]);
    done.into_iter().for_each(|one| drop(one.unwrap()));
}

fn mine(world: &World, member: MemberId, after: Option<Offset>) -> (EventLog, StreamStart) {
    EventLog::of_subject(&world.tally, Subject::Member(member), after).unwrap()
}

/// All following events, page by page; and the position then.
fn rest(world: &World, log: &mut EventLog) -> Vec<StreamItem> {
    let mut all = Vec::new();
    loop {
        let found = log.reader().next(&world.tally).unwrap();
        assert!(found.len() <= PAGE);
        let Some((last, _)) = found.last() else { return all };
        log.offset = last.clone();
        all.extend(found.into_iter().map(|(_, told)| told));
    }
}

fn amounts(told: &[StreamItem]) -> Vec<i64> {
    let one = |told: &StreamItem| match told {
        StreamItem::Entry(currency, entry) => {
            assert_eq!(*currency, code("KRW"));
            entry.amount
        }
        StreamItem::Event(event) => panic!("{event:?}"),
    };
    told.iter().map(one).collect()
}

#[test]
fn movements_are_read_on_exactly_until_they_are_too_old() {
    for kind in [Kind::Sqlite, Kind::MariaDb] {
        let world = World::new(kind);
        let ann = world.member("ann", 0);
        let (mut log, begun) = mine(&world, ann, None);
        assert_eq!(begun, StreamStart::AtOffset);
        let start = log.offset.clone();
        let many = 2 * PAGE as i64 + 7;
        (1..=many).for_each(|units| deposit(&world, ann, units));
        assert_eq!(amounts(&rest(&world, &mut log)), (1..=many).collect::<Vec<_>>(), "{kind:?}");
        // From any place on.
        let at = |number: u64| Some(Offset::Entries([(code("KRW"), number)].into()));
        let (mut again, begun) = mine(&world, ann, at(many as u64 - 2));
        assert_eq!(
            (amounts(&rest(&world, &mut again)), begun),
            (vec![many - 1, many], StreamStart::AtOffset)
        );
        // A day before the oldest that was missed is too old, and a day after.
        world.advance(KEEP_MICROS - SECOND);
        assert_eq!(mine(&world, ann, Some(start.clone())).1, StreamStart::AtOffset);
        deposit(&world, ann, 1_000);
        world.advance(2 * SECOND);
        let (mut anew, begun) = mine(&world, ann, Some(start));
        assert_eq!((rest(&world, &mut anew).len(), begun), (0, StreamStart::Reset));
        // A subscriber that has all but the newest event goes on.
        let (mut on, begun) = mine(&world, ann, at(many as u64));
        assert_eq!((amounts(&rest(&world, &mut on)), begun), (vec![1_000], StreamStart::AtOffset));
        // A position that this store has never had.
        for offset in [at(many as u64 + 2), Some(Offset::Entries([(code("USD"), 1)].into()))] {
            assert_eq!(mine(&world, ann, offset).1, StreamStart::Reset);
        }
        world.end(&[ann]);
    }
}

#[test]
fn a_contest_is_read_on_exactly_until_something_of_it_is_forgotten() {
    for kind in [Kind::Sqlite, Kind::MariaDb] {
        let world = World::new(kind);
        let (tally, cup) = (&world.tally, ContestId::new("cup").unwrap());
        let now = world.now();
        let at = |seconds: i64| Some(Some(now.plus(seconds * SECOND)));
        let spec = ContestSpec {
            title: Some("Cup".into()),
            opens_at: at(10),
            starts_at: at(20),
            ..ContestSpec::default()
        };
        change::create(tally, &cup, &ContestActor::SERVER, &spec, None).unwrap();
        // Events of the clock count as of their own time, and are kept from when they were written.
        world.advance(100 * SECOND);
        scheduler::do_due(tally).unwrap();
        let subject = Subject::Contest(read::get(tally, &cup).unwrap().no);
        let open = |after: u64| EventLog::of_subject(tally, subject, Some(Offset::Event(after))).unwrap();
        let states = |told: &[StreamItem]| {
            let one = |told: &StreamItem| match told {
                StreamItem::Event(Event { at, what: EventKind::Contest(changed) }) => {
                    (changed.state, (changed.at.0 - now.0) / SECOND, (at.0 - now.0) / SECOND)
                }
                other => panic!("{other:?}"),
            };
            told.iter().map(one).collect::<Vec<_>>()
        };
        let all =
            [(ContestState::Draft, 0, 0), (ContestState::Open, 10, 100), (ContestState::Running, 20, 100)];
        let (mut log, begun) = open(0);
        assert_eq!(
            (&states(&rest(&world, &mut log))[..], begun),
            (&all[..], StreamStart::AtOffset),
            "{kind:?}"
        );
        world.advance(KEEP_MICROS - 50 * SECOND);
        // The tally's own maintenance may have been first.
        let expire = |due: usize| {
            let before = world.now().plus(-KEEP_MICROS);
            let forgotten = tally.store.ledger().expire_events(before, 100).unwrap();
            assert!([0, due].contains(&forgotten), "{kind:?}: {forgotten}");
        };
        expire(1);
        assert_eq!(open(0).1, StreamStart::Reset);
        let (mut log, begun) = open(1);
        assert_eq!((&states(&rest(&world, &mut log))[..], begun), (&all[1..], StreamStart::AtOffset));
        // A subscriber that has had the last event has missed nothing when all are forgotten.
        world.advance(100 * SECOND);
        expire(2);
        assert_eq!(
            [2, 3, 4].map(|after| open(after).1),
            [StreamStart::Reset, StreamStart::AtOffset, StreamStart::Reset]
        );
        let (mut log, _) = open(3);
        finish::cancel(tally, &cup, &ContestActor::ADMIN, None).unwrap();
        assert_eq!(states(&rest(&world, &mut log))[0].0, ContestState::Cancelled);
        assert_eq!(log.offset, Offset::Event(4));
        world.end(&[]);
    }
}
