//! Members and contests of a story on paper, and the requests to its contests and processes.

use crate::wallets::histories::amount;
use crate::wallets::histories::dying::DyingStore;
use crate::wallets::histories::paper::FEE;
use crate::wallets::prizes::{DAY, daily};
use crate::wallets::world::{Kind, code, settings, start_set};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use tally_rules::contest::definition::{ContestSpec, Fee, OnInvalid};
use tally_rules::contest::member::UnpaidReason;
use tally_rules::contest::pool::{PoolPrize, PrizePool};
use tally_rules::contest::{ContestId, ContestState, Prize, PrizeTies};
use tally_rules::definition::Ranking;
use tally_rules::ledger::{Currencies, Currency, MemberId};
use tally_rules::period::PeriodPrizes;
use tally_rules::{Definition, Micros, PlayerId};
use tally_service::ledger::LedgerSettings;
use tally_service::{Clock, Failure, Settings, Tally};
use tally_store::Store;
use tally_testkit::Rng;

/// Members at a time.
pub(super) const SLOTS: usize = 5;
/// Contests that are not over, at a time.
pub(super) const CUPS: usize = 4;
/// The prizes of the first ranks of a contest.
pub(crate) const PRIZES: [i64; 2] = [31, 13];
/// What a pool gives the first ranks, in parts of ten thousand; what the operator takes of its fees, and what it guarantees.
const SHARES: [i64; 2] = [6_000, 3_333];
const RAKE: i64 = 500;
const POOL_MIN: i64 = 25;
/// The prize of the first player of a day.
pub(crate) const OF_DAY: i64 = 7;
/// How long leaderboards stay.
pub(crate) const KEEP: i64 = 2 * DAY;
/// A created member.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) member: MemberId,
    pub(crate) name: PlayerId,
    pub(crate) is_closed: bool,
}

/// A contest on paper.
#[derive(Debug)]
pub(crate) struct Cup {
    pub(crate) id: ContestId,
    pub(crate) currency: Currency,
    pub(crate) fee: bool,
    pub(crate) prizes: bool,
    /// Its fees are prizes, too.
    pub(crate) pool: bool,
    pub(crate) days: bool,
    /// Whether players may join it while it runs, and how many scores a member may submit.
    pub(crate) joins: bool,
    pub(crate) attempts_max: Option<u32>,
    pub(crate) attempts: BTreeMap<PlayerId, u32>,
    pub(crate) state: ContestState,
    /// The time since when it is over for good.
    pub(crate) over: Option<i64>,
    /// The players that must have a leaderboard of it.
    pub(crate) members: BTreeMap<PlayerId, Option<MemberId>>,
    pub(crate) scores: BTreeMap<PlayerId, i64>,
    pub(crate) of_day: BTreeMap<PlayerId, i64>,
    pub(crate) banned: BTreeSet<PlayerId>,
    /// Prizes that are due, and the reason for an unpaid one.
    pub(crate) paid: Vec<(PlayerId, i64, Option<UnpaidReason>)>,
}

impl Cup {
    /// A draft, and the spec of its request.
    pub(crate) fn new(no: usize, currency: Currency, rng: &mut Rng) -> (Self, ContestSpec) {
        let [fee, prizes, days, skips, joins] = [60, 60, 80, 50, 50].map(|percent| rng.percent(percent));
        let attempts_max = rng.percent(30).then_some(3);
        let pool = fee && !no.is_multiple_of(3);
        let prize = |(from, units)| Prize { from, to: from, currency, amount: amount(units) };
        let table = PeriodPrizes { table: vec![prize((1, OF_DAY))], ties: PrizeTies::Split, from: None };
        let periods = daily(table, 9).periods.filter(|_| days).unwrap_or_default();
        let spec = ContestSpec {
            title: Some("Cup".into()),
            capacity: Some(4),
            on_invalid: Some(if skips { OnInvalid::Skip } else { OnInvalid::Reject }),
            entry_fee: Some(fee.then(|| Fee { currency, amount: amount(FEE) })),
            prizes: Some((1..).zip(PRIZES).map(prize).filter(|_| prizes).collect()),
            pool: Some(pool.then(of_fees)),
            join_s: Some(joins.then(|| 90_000.try_into().unwrap())),
            attempts_max: Some(attempts_max.and_then(NonZeroU32::new)),
            leaderboard: Some(Definition { ranking: Ranking::Ordinal, periods, ..Definition::default() }),
            ..ContestSpec::default()
        };
        let cup = Self {
            id: ContestId::new(&format!("cup-{no}")).unwrap(),
            currency,
            fee,
            prizes,
            pool,
            days,
            joins,
            attempts_max,
            attempts: BTreeMap::new(),
            state: ContestState::Draft,
            over: None,
            members: BTreeMap::new(),
            scores: BTreeMap::new(),
            of_day: BTreeMap::new(),
            banned: BTreeSet::new(),
            paid: Vec::new(),
        };
        (cup, spec)
    }

    /// The best of some scores, without those that are banned.
    pub(crate) fn ranked(&self, scores: &BTreeMap<PlayerId, i64>) -> Vec<PlayerId> {
        let mut all: Vec<_> = scores.iter().filter(|(name, _)| !self.banned.contains(*name)).collect();
        all.sort_by_key(|(_, score)| std::cmp::Reverse(**score));
        all.into_iter().map(|(name, _)| name.clone()).collect()
    }

    /// What the best players get: prizes of the table, then those of the pool.
    pub(crate) fn payouts(&self) -> Vec<(PlayerId, i64)> {
        let fees = FEE * self.members.len() as i64;
        let to_win = (fees - fees * RAKE / 10_000).max(POOL_MIN);
        let of_pool = SHARES.map(|share| to_win * share / 10_000);
        let ranked = || self.ranked(&self.scores).into_iter();
        let fixed = ranked().zip(PRIZES).filter(|_| self.prizes);
        fixed.chain(ranked().zip(of_pool).filter(|_| self.pool)).collect()
    }

    pub(crate) fn needs_members(&self) -> bool {
        self.fee || self.prizes
    }

    pub(crate) fn uses(&self) -> bool {
        self.needs_members() || self.days
    }
}

fn of_fees() -> PrizePool {
    let share = |(rank, share): (u32, i64)| PoolPrize { from: rank, to: rank, share: share as u32 };
    PrizePool {
        prizes: (1..).zip(SHARES).map(share).collect(),
        rake: RAKE as u32,
        min: Some(amount(POOL_MIN)),
    }
}

pub(crate) fn usd() -> Currency {
    code("USD")
}

pub(crate) fn begin_on(
    store: &DyingStore,
    now: &Arc<AtomicI64>,
    has_usd: bool,
) -> Result<Arc<Tally>, Failure> {
    let currencies = Currencies::new((code("KRW"), 0), has_usd.then(|| (usd(), 2)));
    let (ledger, time) = (LedgerSettings { currencies, ..settings() }, Arc::clone(now));
    let clock = Clock::of(move || Micros(time.load(Ordering::SeqCst)));
    let with = Settings { ledger, contests_keep_micros: Some(KEEP), ..Settings::default() };
    start_set(Arc::clone(store) as Arc<dyn Store>, clock, with)
}

/// Prints which story fails.
pub(crate) struct Named(pub(crate) u64, pub(crate) Kind);

impl Drop for Named {
    fn drop(&mut self) {
        if std::thread::panicking() {
            drop(writeln!(std::io::stderr(), "story {} on {:?}", self.0, self.1));
        }
    }
}
