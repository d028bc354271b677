-- Publishes changes that need no ranks, each of another player, with a few commands for all of them.
-- ARGV: run, bytes of a head, bytes of a score, the epoch of the load that they are part of ('' for none), and for each change:
--   field, version, the value to keep ('' removes the player).
-- Returns the state, the total, and for each change the version that was there ('' for none).
local state, total, epoch = open()
if not state then return redis.status_reply('LOST') end
-- A superseded load has read its rows before the newer load began.
if ARGV[4] ~= '' and (state ~= 'L' or epoch ~= ARGV[4]) then return redis.status_reply('SUPERSEDED') end

local head, width = tonumber(ARGV[2]), tonumber(ARGV[3])

local fields = {}
for i = 5, #ARGV, 3 do fields[#fields + 1] = ARGV[i] end
local all = redis.call('HMGET', m, unpack(fields))

local answer, gone = { state, 0 }, 0
local sets, adds, removals, scores, left, published = {}, {}, {}, {}, {}, {}
-- A load is not a change: watchers are not notified.
local is_watched = ARGV[4] == '' and redis.call('EXISTS', watched) == 1
for at, field in ipairs(fields) do
  local version, keep, kept = ARGV[3 + 3 * at], ARGV[4 + 3 * at], all[at]
  answer[#answer + 1] = kept and string.sub(kept, 1, 8) or ''
  if not kept or newer(version, string.sub(kept, 1, 8)) then
    local value = version .. keep
    sets[#sets + 1], sets[#sets + 2] = field, value
    local was, now = kept and member(field, kept, head), member(field, value, head)
    if was ~= now then
      if was then
        removals[#removals + 1] = was
        if d then left[#left + 1] = string.sub(was, 1, width) end
      end
      if now then
        adds[#adds + 1], adds[#adds + 2] = '0', now
        if d then scores[#scores + 1], scores[#scores + 2] = '0', string.sub(now, 1, width) end
      end
    end
    if kept and not was then gone = gone - 1 end
    if not now then gone = gone + 1 end
    if is_watched then published[#published + 1] = field end
  end
end

if #removals > 0 then redis.call('ZREM', z, unpack(removals)) end
if #adds > 0 then redis.call('ZADD', z, unpack(adds)) end
if #scores > 0 then redis.call('ZADD', d, unpack(scores)) end
for _, score in ipairs(left) do
  if same(score) == 0 then redis.call('ZREM', d, score) end
end
if #sets > 0 then
  redis.call('HSET', m, unpack(sets))
end
if gone ~= 0 then redis.call('HINCRBY', m, GONE, gone) end
record_changed(published)
answer[2] = redis.call('ZCARD', z)
return answer
