-- Who has changed in a partition since the last look, and that somebody goes on to look. ARGV: run, the moment of the last look ('' for
-- the first), how many at most, how long to be told in milliseconds.
-- Gives the moment to go on from, whether some were forgotten that nobody was told of (1), and the players' fields. What happens in the
-- moment itself is told by two looks.
local at = string.format('%.0f', now())
redis.call('SET', watched, '1', 'PX', ARGV[4])
local since, most = ARGV[2], tonumber(ARGV[3])
if since == '' then return { at, 0 } end
local fields = redis.call('ZRANGEBYSCORE', changed, since, '+inf', 'LIMIT', 0, most)
local forgotten = 0
if #fields == most then
  local oldest = redis.call('ZRANGE', changed, 0, 0, 'WITHSCORES')[2]
  if redis.call('ZCARD', changed) >= NAMES_MAX and tonumber(oldest) > tonumber(since) then forgotten = 1 end
  -- The rest at the next look, unless all of these are of one moment.
  local last = string.format('%.0f', tonumber(redis.call('ZSCORE', changed, fields[most])))
  if last ~= since then at = last end
end
local answer = { at, forgotten }
for i = 1, #fields do answer[i + 2] = fields[i] end
return answer
