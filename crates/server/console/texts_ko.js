// The texts of the console in Korean, by page. A key is on one line; `{name}` is a value, `{one, other}` are plural categories.

export default {
  // language
  "language.name": "한국어",

  // common: dialogs, forms, tables, numbers, errors

  // app: frame, key, theme, languages

  // overview

  // server

  // warnings

  // boards

  // board: one leaderboard with its tabs

  // periods: periods and their prizes

  // players

  // player: one player

  // contests

  // contest: one contest

  // series

  // wallets: members, their list, currencies

  // wallet: one member

  // owed

  // settings: settings, keys

  // audit

  // webhooks
};
