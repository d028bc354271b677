"""The shapes of ``tally_client.types`` against the OpenAPI document. Argument: the file with the document."""

from __future__ import annotations

import json
import sys
from typing import Any, Literal, get_args, get_origin, get_type_hints

from tally_client import types

with open(sys.argv[1], encoding="utf-8") as file:
    SCHEMAS = json.load(file)["components"]["schemas"]

ANSWERS = {
    "Board": types.Board,
    "Submitted": types.Submitted,
    "Previous": types.Previous,
    "WindowRank": types.WindowRank,
    "RowError": types.RowError,
    "Profile": types.Profile,
    "Entry": types.Entry,
    "Among": types.Among,
    "AmongEntry": types.AmongEntry,
    "PlayerRank": types.PlayerRank,
    "PeriodItem": types.PeriodInstance,
    "Member": types.Member,
    "Wallet": types.Wallet,
    "Transaction": types.Transaction,
    "Hold": types.Hold,
    "PrizeRange": types.PrizeRange,
    "Contest": types.Contest,
    "Division": types.Division,
    "FailedApplication": types.FailedApplication,
    "StartedContest": types.StartedContest,
    "Application": types.Application,
    "ContestPlayer": types.ContestPlayer,
    "ContestPrize": types.Payout,
}
REQUESTS = {
    "BoardPut": types.BoardDefinition,
    "BatchRow": types.BatchRow,
    "Period": types.Period,
    "PrizeIn": types.Prize,
    "EntryFeeIn": types.EntryFee,
    "NewContest": types.NewContest,
}


def words(schema: dict[str, Any]) -> set[str]:
    """The values that a schema lists."""
    target = schema["$ref"].rsplit("/", 1)[1] if "$ref" in schema else None
    return set((SCHEMAS[target] if target else schema).get("enum", ()))


def compare(name: str, shape: Any, is_answer: bool) -> None:
    schema = SCHEMAS[name]
    needed, given = set(schema.get("required", ())), schema["properties"]
    always, all_names = set(shape.__required_keys__), set(shape.__required_keys__ | shape.__optional_keys__)
    assert all_names <= set(given), f"{name} has no {all_names - set(given)}"
    if is_answer:
        assert always <= needed, f"{name} need not have {always - needed}"
    else:
        assert needed <= always, f"{name} needs {needed - always}"
    for field, hint in get_type_hints(shape).items():
        if get_origin(hint) is Literal:
            assert set(get_args(hint)) == words(given[field]), f"{name}.{field} is one of {words(given[field])}"


for name, shape in ANSWERS.items():
    compare(name, shape, is_answer=True)
for name, shape in REQUESTS.items():
    compare(name, shape, is_answer=False)
print("end")
