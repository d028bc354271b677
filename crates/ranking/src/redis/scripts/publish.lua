-- Publishes changes one by one, with ranks for the changes that request them.
-- ARGV: run, bytes of a head, bytes of a score, kind of ranking ('o', 'c', 'd'), and for each change: field, version, whether
--   ranks are requested ('1'), the value to keep ('' removes the player).
-- Returns the state, the total, and for each change: whether it was newer (1), and how many are ahead before and after, -1 for
--   a player that is not there.
local state = open()
if not state then return redis.status_reply('LOST') end

local head, width, kind = tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]

local function ahead(of)
  if not of then return -1 end
  if kind == 'o' then return redis.call('ZRANK', z, of) or -1 end
  local score = string.sub(of, 1, width)
  if kind == 'c' then return before(score) end
  return redis.call('ZRANK', d, score) or -1
end

local function move(was, now)
  if was == now then return end
  if was then redis.call('ZREM', z, was) end
  if now then redis.call('ZADD', z, '0', now) end
  if not d then return end
  local old, new = was and string.sub(was, 1, width), now and string.sub(now, 1, width)
  if old == new then return end
  if old and same(old) == 0 then redis.call('ZREM', d, old) end
  if new then redis.call('ZADD', d, '0', new) end
end

local answer, gone, published = { state, 0 }, 0, {}
local is_watched = redis.call('EXISTS', watched) == 1
for i = 5, #ARGV, 4 do
  local field, version, ranked, keep = ARGV[i], ARGV[i + 1], ARGV[i + 2] == '1', ARGV[i + 3]
  local kept = redis.call('HGET', m, field)
  local was = kept and member(field, kept, head)
  local first = ranked and ahead(was) or -1
  if kept and not newer(version, string.sub(kept, 1, 8)) then
    answer[#answer + 1], answer[#answer + 2], answer[#answer + 3] = 0, first, first
  else
    local value = version .. keep
    local now = member(field, value, head)
    move(was, now)
    redis.call('HSET', m, field, value)
    -- A removed player leaves its version, so that a late, older change does not bring the player back.
    if kept and not was then gone = gone - 1 end
    if not now then gone = gone + 1 end
    if is_watched then published[#published + 1] = field end
    answer[#answer + 1], answer[#answer + 2], answer[#answer + 3] = 1, first, ranked and ahead(now) or -1
  end
end
if gone ~= 0 then redis.call('HINCRBY', m, GONE, gone) end
record_changed(published)
answer[2] = redis.call('ZCARD', z)
return answer
