#!/usr/bin/env bash
# A game server's leaderboard over the Redis protocol, with redis-cli.
#
#   TALLY_KEYS_REQUIRED=false cargo run --release -- serve     in another terminal
#   bash examples/over_redis.sh [127.0.0.1 8421 [http://127.0.0.1:8420]]
set -euo pipefail

# Once there are keys (`tally keys create --role server`): export REDISCLI_AUTH=tally_...
# -e: an error reply ends the script.
ask() { redis-cli -e -h "$host" -p "$port" "$@"; }
host=${1:-127.0.0.1} port=${2:-8421} http=${3:-http://127.0.0.1:8420}

# A board; it may be repeated. Its week is added over HTTP, where periods are defined.
ask LB.CREATE arcade UPDATE best
curl --silent --show-error --fail-with-body --output /dev/null -X PUT "$http/v1/leaderboards/arcade" \
  --header 'content-type: application/json' --data '{"periods":[{"name":"weekly","schedule":"0 0 * * 1"}]}'

# Score, rank, previous score, previous rank. With an ID of your own the same request can be sent again and counts once.
ask LB.SUBMIT arcade ada 1200 ID match-17-ada
ask LB.SUBMIT arcade ada 1200 ID match-17-ada

# A pipeline of any length: commands in, the number of replies out.
for n in $(seq 1 100); do printf 'LB.SUBMIT arcade p%03d %d\r\n' "$n" $((n * 10)); done | ask --pipe | tail -1

# The top 10 (rank, player, score), the players around one, friends among each other (rank among them, overall rank).
ask LB.TOP arcade 10
ask LB.AROUND arcade p050 2 2
ask LB.AMONG arcade ada p007 nobody

# A board is a key and reads like a sorted set; @weekly is its week, read only.
ask ZREVRANGE arcade@weekly 0 0 WITHSCORES
