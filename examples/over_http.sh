#!/usr/bin/env bash
# A game server's leaderboard over HTTP, with curl alone.
#
#   TALLY_KEYS_REQUIRED=false cargo run --release -- serve     in another terminal
#   bash examples/over_http.sh [http://127.0.0.1:8420]
set -euo pipefail

url=${1:-http://127.0.0.1:8420}/v1

# --fail-with-body: a refusal (4xx) ends the script, and its JSON says why.
# Once there are keys (`tally keys create --role server`), add: --header "Authorization: Bearer tally_..."
ask() { curl --silent --show-error --fail-with-body --header 'content-type: application/json' "$@" && echo; }

# A board, with a weekly one inside it. PUT may be repeated: run it at every start of your game server.
ask -X PUT "$url/leaderboards/arcade" \
  --data '{"update":"best","periods":[{"name":"weekly","schedule":"0 0 * * 1"}]}'

# One submit counts for all time and for this week. A network may lose the answer: with a key of your own (the match, the
# player) the same request can be sent again and counts once.
for attempt in 1 2; do
  ask -X POST "$url/leaderboards/arcade/scores" --header 'Idempotency-Key: match-17-ada' \
    --data '{"player":"ada","score":1200}'
done

# Up to 1000 scores in one request; each has its own result.
rows=$(for n in $(seq 1 100); do printf '{"board":"arcade","player":"p%03d","score":%d},' "$n" $((n * 10)); done)
ask -X POST "$url/scores/batch" --data "{\"scores\":[${rows%,}]}" | grep -o '"rank"' | wc -l

# The top 10, the players around one, friends among each other, and the top of the week.
ask "$url/leaderboards/arcade/scores?limit=10"
ask "$url/leaderboards/arcade/players/p050/around?above=2&below=2"
ask -X POST "$url/leaderboards/arcade/among" --data '{"players":["ada","p007","nobody"]}'
ask "$url/leaderboards/arcade/scores?period=weekly&limit=1"
