//! What a wish makes of a board's periods: rules that are new, changed or gone, and what happens to their parts.

use crate::boards::Board;
use crate::periods::{Aimed, Periods, RuleState};
use tally_rules::definition::Wish;
use tally_rules::{Definition, Micros, Refusal};
use tally_store::{Part, PartRow};

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

/// What a wish changes; nothing where the board is as wished.
pub(super) fn redefine(
    board: &Board,
    wish: &Wish,
    present: &Definition,
    now: Micros,
) -> Result<Option<Redefinition>, Refusal> {
    let definition = wish.change(present)?.with_prizes_from(now);
    if definition == *present {
        return Ok(None);
    }
    Periods::new(&definition).map_err(Refusal::InvalidDefinition)?;
    let (mut ends, mut gone) = (Vec::new(), Vec::new());
    for state in &board.periods().rules {
        let (old, new) = (&state.rule, definition.periods.iter().find(|rule| rule.no == state.rule.no));
        match new {
            None => gone.extend(parts(state)),
            Some(new) if (&new.schedule, &new.time_zone) != (&old.schedule, &old.time_zone) => {
                let Some(span) = state.span_at(now) else { continue };
                let Aimed { part, .. } = state.aimed(span);
                let rule = old.no;
                ends.push(PartRow { part, rule, span, closed: false, version: 0, stale: false, total: 0 });
            }
            Some(_) => {}
        }
    }
    Ok(Some(Redefinition { definition, ends, gone }))
}

fn parts(state: &RuleState) -> impl Iterator<Item = Part> + '_ {
    state.live.iter().map(|live| live.part).chain(state.closed.iter().map(|row| row.part))
}
