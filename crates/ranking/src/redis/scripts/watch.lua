-- Reads which players of a partition have changed since the last read, and prolongs the watch. ARGV: run, the time of the last
-- read ('' for the first), how many at most, how long to watch in milliseconds.
-- Returns the time to continue from, whether unread changes were dropped (1), and the fields of the players. Two reads return a
-- change of that very microsecond.
local at = string.format('%.0f', now())
redis.call('SET', watched, '1', 'PX', ARGV[4])
local since, most = ARGV[2], tonumber(ARGV[3])
if since == '' then return { at, 0 } end
local fields = redis.call('ZRANGEBYSCORE', changed, since, '+inf', 'LIMIT', 0, most)
local forgotten = 0
if #fields == most then
  local oldest = redis.call('ZRANGE', changed, 0, 0, 'WITHSCORES')[2]
  if redis.call('ZCARD', changed) >= NAMES_MAX and tonumber(oldest) > tonumber(since) then forgotten = 1 end
  -- The next read returns the rest, unless all of these have one time.
  local last = string.format('%.0f', tonumber(redis.call('ZSCORE', changed, fields[most])))
  if last ~= since then at = last end
end
local answer = { at, forgotten }
for i = 1, #fields do answer[i + 2] = fields[i] end
return answer
