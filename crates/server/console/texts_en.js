// The texts of the console in English, by page. A key is on one line; `{name}` is a value, `{one, other}` are plural categories.

export default {
  // language
  "language.name": "English",

  // common: dialogs, forms, tables, numbers, errors
  "common.cancel": "Cancel",
  "common.close_message": "Close this message",
  "common.type_to_go_on": "Type {name} to go on",
  "common.reason": "Reason",
  "common.reason_hint": "May stay empty. {who}",
  "common.reason_kept": "The audit log keeps it.",
  "common.needed": "This is needed.",
  "common.more": "Show more",
  "common.shown": "{n} shown",
  "common.request": "Request {id}",
  "common.answered": "the server answered {status}",
  "common.unreachable": "The server cannot be reached. It is asked again.",
  "common.no_answer": "There was no answer",
  "common.no_answer_change": "It may have been done or not. Do the same again when the server is back: it counts once.",
  "unit.longest": "> 10 s",
  "unit.seconds": "{seconds} s",
  "unit.minutes": "{minutes} min {seconds} s",
  "unit.hours": "{hours} h {minutes} min",
  "unit.days": "{days} d {hours} h",
  "error.unauthorized": "A key is needed",
  "error.forbidden": "Permission denied",
  "error.invalid_field": "A field is wrong",
  "error.invalid_parameter": "A parameter is wrong",
  "error.not_found": "There is nothing here",
  "error.leaderboard_not_found": "No such leaderboard",
  "error.period_not_found": "No such period",
  "error.period_closed": "The period is closed",
  "error.player_not_found": "No such player",
  "error.player_not_ranked": "The player has no rank here",
  "error.member_not_found": "No such member",
  "error.member_closed": "The member is closed",
  "error.contest_not_found": "No such contest",
  "error.contest_exists": "There is a contest of this id",
  "error.contest_state": "The contest is in another state",
  "error.contest_full": "The contest is full",
  "error.series_not_found": "No such series",
  "error.series_exists": "There is a series of this id",
  "error.invalid_applications": "Some applications are invalid",
  "error.definition_conflict": "There is a leaderboard of this name with another definition",
  "error.invalid_definition": "The definition is wrong",
  "error.reserved_name": "The name is kept for contests",
  "error.insufficient_funds": "The money does not suffice",
  "error.limit_exceeded": "A limit is exceeded",
  "error.mint_cap_reached": "The cap of the key is reached",
  "error.invalid_amount": "The amount is wrong",
  "error.transaction_not_found": "No such transfer",
  "error.not_reversible": "It cannot be taken back",
  "error.exceeds_reversible": "It is more than can be taken back",
  "error.hold_not_found": "No such hold",
  "error.hold_resolved": "The hold is resolved",
  "error.exceeds_hold": "It is more than is held",
  "error.login_taken": "The login is taken",
  "error.phone_taken": "The phone number is taken",
  "error.player_taken": "The player has a member",
  "error.last_admin_key": "It is the last admin key",
  "error.key_not_found": "No such key",
  "error.webhook_not_found": "No such webhook",
  "error.payload_too_large": "The body is too large",
  "error.too_many_attempts": "Too many attempts",
  "error.overloaded": "The server is busy",
  "error.store_away": "The store is unavailable",
  "error.outcome_unknown": "The outcome is not known",
  "error.loading": "Ranks are not exact yet",
  "error.internal": "This is a bug",

  // app: frame, key, theme, languages
  "app.skip": "Skip to the page",
  "app.navigation": "Console",
  "app.not_found": "There is no such page",
  "app.to_overview": "Go to the overview",
  "app.key": "key {key}",
  "app.no_key": "no key",
  "app.change_theme": "{now}. Change to: {next}",
  "app.forget_key": "Forget the key",
  "app.enter_key": "Enter a key",
  "app.key_forgotten": "The key is forgotten",
  "app.key_needed": "A key is needed",
  "app.api_key": "API key",
  "app.key_kept": "It is kept for this tab only, and gone when the tab is closed.",
  "app.paste_key": "Paste an API key: the console sends it with everything that it asks.",
  "app.protected_mode": "Protected mode: no API key exists yet. On the server's machine, make one with `tally keys create --role admin`.",
  "app.key_unknown": "The key of this tab is unknown or was revoked.",
  "app.no_api_key": "This is no API key: one begins with `tally_`. Copy the whole line that was shown when it was made.",
  "app.use_key": "Use this key",
  "app.guide": "Guide",
  "app.not_ready": "Not ready: {phase}. Ranks are not shown before they are exact.",
  "nav.overview": "Overview",
  "nav.boards": "Boards",
  "nav.contests": "Contests",
  "nav.players": "Players",
  "nav.wallets": "Wallets",
  "nav.settings": "Settings",
  "theme.system": "Theme of the system",
  "theme.light": "Light theme",
  "theme.dark": "Dark theme",
  "phase.opening": "opening",
  "phase.loading": "loading",
  "phase.building": "building",
  "phase.reloading": "reloading",
  "phase.lease": "another server may have the store",
  "phase.draining": "shutting down",
  "phase.demo": "making the demo",

  // overview

  // server

  // warnings

  // boards

  // board: one leaderboard with its tabs

  // periods: periods and their prizes

  // players

  // player: one player

  // contests
  "contests.row_from": "From place",
  "contests.row_to": "To place",
  "contests.row_amount": "Amount each",
  "contests.row_share": "Per cent each",
  "contests.row_currency": "Currency",
  "contests.row_remove_head": "Remove",
  "contests.row_remove": "Remove prize {n}",
  "contests.row_remove_share": "Remove share {n}",
  "contests.row_input": "{name}, prize {n}",
  "contests.row_input_share": "{name}, share {n}",
  "contests.row_add": "Add a prize",
  "contests.row_add_share": "Add a share",
  "contests.row_total": "Total {total}",
  "contests.row_wrong_from": "Row {n}: the first place must be a whole number from 1.",
  "contests.row_wrong_to": "Row {n}: the last place must be a whole number, and not before the first.",
  "contests.row_wrong_amount": "Row {n}: the amount must be a whole number from 1.",
  "contests.row_wrong_share": "Row {n}: the share must be per cent, with two decimals at most.",

  // contest: one contest

  // series

  // wallets: members, their list, currencies

  // wallet: one member

  // owed

  // settings: settings, keys

  // audit

  // webhooks
};
