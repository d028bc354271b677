//! What a spec makes of a board's periods: rules that are new, changed or gone, and what happens to their parts.
//!
//! A period that is over is paid what was promised while it ran. So its prizes are written down before its rules change: whoever
//! asks for the change does that first and says which they are, and where another one is over by now nothing is changed.

use super::command::Redefine;
use crate::periods::{Aimed, Periods, RuleState, prizes};
use tally_rules::period::PeriodRule;
use tally_rules::{Definition, Micros, Rejection};
use tally_store::{Part, PartKey, PartRow};

/// What becomes of a spec.
#[derive(Debug)]
pub(super) enum Change {
    /// Nothing: the board is as wished.
    None,
    /// Nothing: prizes are to be written down before.
    Owes,
    /// The board becomes another.
    To(Redefinition),
}

/// A change of a definition.
#[derive(Debug)]
pub(super) struct Redefinition {
    /// As it is now.
    pub(super) definition: Definition,
    /// Present periods of changed schedules: their ends are fixed by the schedule under which they began.
    pub(super) ends: Vec<PartRow>,
    /// Parts of rules that were removed.
    pub(super) gone: Vec<Part>,
}

/// What a spec changes.
pub(super) fn redefine(
    Redefine { board, spec, written, .. }: &Redefine,
    present: &Definition,
    now: Micros,
) -> Result<Change, Rejection> {
    let definition = spec.change(present)?.with_prizes_from(now);
    if definition == *present {
        return Ok(Change::None);
    }
    Periods::new(&definition).map_err(Rejection::InvalidDefinition)?;
    if definition.periods != present.periods && prizes::owes(&board.periods(), now, written) {
        return Ok(Change::Owes);
    }
    let (mut ends, mut gone) = (Vec::new(), Vec::new());
    for state in &board.periods().rules {
        let (old, new) = (&state.rule, definition.periods.iter().find(|rule| rule.no == state.rule.no));
        match new {
            None => gone.extend(parts(state)),
            Some(new) if is_moved(old, new) => {
                let Some(span) = state.span_at(now) else { continue };
                if state.closed(span).is_some() {
                    // What is closed stays so: its end is stored.
                    continue;
                }
                let Aimed { part, .. } = state.aimed(span);
                let rule = old.no;
                ends.push(PartRow { part, rule, span, closed: false, version: 0, stale: false, total: 0 });
            }
            Some(_) => {}
        }
    }
    Ok(Change::To(Redefinition { definition, ends, gone }))
}

/// Present periods that nothing is stored of, and whose schedules change: that stores them.
pub(super) fn begun(Redefine { board, spec, .. }: &Redefine, now: Micros) -> Vec<PartKey> {
    let Ok(definition) = spec.change(&board.present_definition()) else { return Vec::new() };
    let of_rule = |state: &RuleState| {
        definition.periods.iter().find(|rule| rule.no == state.rule.no && is_moved(&state.rule, rule))?;
        let Aimed { part, .. } = state.aimed(state.span_at(now)?);
        state.live(part).is_none().then_some(PartKey { board: board.no, part })
    };
    board.periods().rules.iter().filter_map(of_rule).collect()
}

/// Whether a rule has other boundaries.
fn is_moved(old: &PeriodRule, new: &PeriodRule) -> bool {
    (&new.schedule, &new.time_zone) != (&old.schedule, &old.time_zone)
}

fn parts(state: &RuleState) -> impl Iterator<Item = Part> + '_ {
    state.live.iter().map(|live| live.part).chain(state.closed.iter().map(|row| row.part))
}
