//! Rows of the audit log for money that administrators move, in the transaction that moves it. Not here: which callers are administrators
//! (`audit::of_admin`).

use tally_rules::audit::{AuditAction, AuditEntry, AuditId, Audited, STORE};
use tally_rules::ledger::{Currency, EntryKind, MemberId, TransferId, TransferRequest};

/// From a member, and to a member, if these are no accounts of the operator.
pub(super) type Sides = (Option<MemberId>, Option<MemberId>);

/// The row of a transfer. Its subject is the member that pays, or the one that gets the money.
pub(super) fn of_transfer(act: &Audited, order: &TransferRequest, id: TransferId) -> (AuditId, AuditEntry) {
    let action = match order.what.kind() {
        EntryKind::Withdrawal => AuditAction::MoneyWithdrawn,
        EntryKind::TransferOut => AuditAction::MoneyTransferred,
        _ => AuditAction::MoneyDeposited,
    };
    let (from, to) = order.what.sides();
    let subject = from.or(to).map_or_else(|| STORE.to_owned(), |member| member.0.to_string());
    act.row(action, subject, Some(detail(order.amount.units(), order.currency, (from, to), id).into()))
}

/// The row of a reversal. Its subject is the reversed transfer.
pub(super) fn of_reversal(
    act: &Audited,
    original: TransferId,
    (units, currency): (i64, Currency),
    sides: Sides,
    id: TransferId,
) -> (AuditId, AuditEntry) {
    let detail = detail(units, currency, sides, id).into();
    act.row(AuditAction::MoneyReversed, original.0.to_string(), Some(detail))
}

/// How much money went where, and by which transfer.
fn detail(units: i64, currency: Currency, (from, to): Sides, id: TransferId) -> String {
    let side = |word: &str, member: Option<MemberId>| {
        member.map_or_else(String::new, |member| format!(" {word} {}", member.0))
    };
    format!("{units} {currency}{}{}, transaction {}", side("from", from), side("to", to), id.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tally_rules::ledger::{Amount, TransferKind, Uuid};
    use tally_rules::{Actor, Micros, Origin};

    #[test]
    fn a_row_says_what_was_moved_and_where() {
        let act = Audited::new(Origin::from(Actor::CommandLine), Micros(1), 7);
        let (a, b, id) = (MemberId(Uuid([1; 16])), MemberId(Uuid([2; 16])), TransferId(Uuid([3; 16])));
        let row = |what| {
            let (currency, amount) = (Currency::parse("KRW").unwrap(), Amount::new(5).unwrap());
            let order = TransferRequest { what, currency, amount, reference: None };
            let (_, row) = of_transfer(&act, &order, id);
            (row.action, row.subject.to_string(), row.detail.unwrap().to_string())
        };
        let ends = format!(", transaction {}", id.0);
        let (from, to) = (a.0.to_string(), b.0.to_string());
        for (what, wanted, subject, sides) in [
            (TransferKind::Deposit { to: b }, AuditAction::MoneyDeposited, &to, format!(" to {to}")),
            (
                TransferKind::Withdrawal { from: a },
                AuditAction::MoneyWithdrawn,
                &from,
                format!(" from {from}"),
            ),
            (
                TransferKind::Transfer { from: a, to: b },
                AuditAction::MoneyTransferred,
                &from,
                format!(" from {from} to {to}"),
            ),
        ] {
            assert_eq!(row(what), (wanted, subject.clone(), format!("5 KRW{sides}{ends}")));
        }
        let (_, back) = of_reversal(&act, id, (5, Currency::parse("KRW").unwrap()), (Some(b), None), id);
        assert_eq!((&*back.subject, back.action), (id.0.to_string().as_str(), AuditAction::MoneyReversed));
        assert!(back.names_side(&to) && !back.names_side(&from), "{back:?}");
    }
}
