//! The events of one stream: live scores of a board, and the stored events after an offset.
//!
//! Not here: when a stream reads them, and its caller (`stream_task`).

use bytes::Bytes;
use std::sync::Arc;
use std::time::Instant;
use tally_rules::contest::ContestId;
use tally_rules::event::{Event, EventKind};
use tally_service::boards::Board;
use tally_service::events::live::{ScoreBatch, TooSlow, Watch};
use tally_service::events::log::{EventLog, Offset, PAGE, StreamItem, StreamStart};
use tally_service::{Failure, Tally};
use tally_wire::api::events;
use tally_wire::api::scores::Style;
use tally_wire::numbers::Int64;

/// The live feed of a board, and the form of integers.
pub(super) type Scores = Option<(Watch, Int64)>;

/// An event as it is sent: its name, and its pieces.
pub(super) struct Sent {
    pub(super) event: &'static str,
    /// The piece of this stream only, before the piece that streams share.
    pub(super) head: Option<Bytes>,
    pub(super) bytes: Bytes,
    /// When it was made, if many streams send it.
    pub(super) made: Option<Instant>,
}

impl Sent {
    fn whole(event: &'static str, text: String) -> Self {
        Self { event, head: None, bytes: text.into(), made: None }
    }
}

/// The events of a stream.
pub(super) struct Source {
    pub(super) scores: Scores,
    /// The stored events.
    pub(super) log: EventLog,
    pub(super) names: Names,
    /// How the stream begins.
    pub(super) start: StreamStart,
}

/// The subject of the events, as users name it.
pub(super) enum Names {
    Board(Arc<Board>),
    Contest(ContestId),
    Own,
}

/// What a source has for its stream.
pub(super) enum SourceEvent {
    /// An event.
    Now(Sent),
    /// There may be new stored events.
    Stored,
}

impl Source {
    /// The first event of the stream.
    pub(super) fn beginning(&self) -> Sent {
        let id = id(&self.log.offset);
        match self.start {
            StreamStart::AtOffset => Sent::whole("", events::beginning(&id)),
            StreamStart::Reset => Sent::whole(events::RESET, events::beginning(&id) + &events::reset(&id)),
        }
    }

    /// Waits for an event.
    pub(super) async fn next(&mut self) -> Result<SourceEvent, TooSlow> {
        let scores = async {
            match &mut self.scores {
                Some((watch, int64)) => {
                    let batch = watch.next().await?;
                    Ok((written(watch, &batch, *int64), batch.made))
                }
                None => std::future::pending().await,
            }
        };
        let (bytes, made) = tokio::select! {
            biased;
            () = self.log.woken() => return Ok(SourceEvent::Stored),
            batch = scores => batch?,
        };
        // Live scores are not stored, so a client that resumes after them resumes at the offset of the stream.
        let head = Some(events::id_line(&id(&self.log.offset)).into());
        Ok(SourceEvent::Now(Sent { event: events::SCORE, head, bytes, made: Some(made) }))
    }

    /// The next stored events in order, and whether there may be more.
    pub(super) async fn stored(&mut self, tally: &Arc<Tally>) -> Result<(Vec<Sent>, bool), Failure> {
        let (reading, reader) = (Arc::clone(tally), self.log.reader());
        let found = tally.events.read(move || reader.next(&reading)).await?;
        if let Some((last, _)) = found.last() {
            self.log.offset = last.clone();
        }
        let sent = found.iter().map(|(offset, item)| self.write(&id(offset), item)).collect();
        Ok((sent, found.len() >= PAGE))
    }

    /// Whether the subject still exists.
    pub(super) fn exists(&self, tally: &Tally) -> bool {
        match &self.names {
            Names::Board(board) => tally.boards.has(board),
            Names::Contest(_) | Names::Own => true,
        }
    }

    fn write(&self, id: &str, item: &StreamItem) -> Sent {
        match (item, &self.names) {
            (StreamItem::Event(Event { what: EventKind::PeriodClosed(closed), .. }), Names::Board(board)) => {
                Sent::whole(events::PERIOD_CLOSED, events::period_closed(id, board.id.as_str(), closed))
            }
            (StreamItem::Event(Event { what: EventKind::PeriodPaid(paid), .. }), Names::Board(board)) => {
                Sent::whole(events::PERIOD_PAID, events::period_paid(id, board.id.as_str(), paid))
            }
            (StreamItem::Event(Event { what: EventKind::Contest(changed), .. }), Names::Contest(contest)) => {
                Sent::whole(events::CONTEST, events::contest(id, contest.as_str(), changed))
            }
            (StreamItem::Entry(currency, entry), _) => {
                Sent::whole(events::TRANSACTION, events::transaction(id, *currency, entry))
            }
            (StreamItem::Event(_), _) => unreachable!("a topic has events of its kind"),
        }
    }
}

fn id(offset: &Offset) -> String {
    match offset {
        Offset::Event(number) => events::event_id(*number),
        Offset::Entries(last) => events::entries_id(last),
    }
}

/// Writes a batch of live scores. It is the same for all streams with this form of integers.
fn written(watch: &Watch, batch: &ScoreBatch, int64: Int64) -> Bytes {
    let board = watch.board();
    let write = || {
        let style = Style { definition: &board.definition, int64 };
        let places = batch.places.iter().map(|place| (place.rank, &place.player, &place.record));
        let of = (board.id.as_str(), batch.period.as_str(), batch.total);
        events::scores(of, &style, places, &batch.unranked, batch.left_out).into_bytes().into()
    };
    let slot = match int64 {
        Int64::Number => 0,
        Int64::String => 1,
    };
    Bytes::from_owner(Arc::clone(batch.written[slot].get_or_init(write)))
}
