-- Changes all given applications or none: each must still have the state that the caller observed. KEYS may have a sixth: the
-- request. ARGV: run, a mark of this change, the revision of the decision ('' for any), how many applications there may be
-- before it ('' for any number), how many accepted ones (likewise; with a number this is a decision, too), the outcome to store
-- of the request and for how many milliseconds, and for each application:
--   player, the observed state ('' for none), its list ('' withdraws it), when the player applied.
-- Returns 0 and the new applications ('' for none); or 1 and the stored outcome of the request; or 2 when a start froze the
-- applications; or 3 when something differs from what was observed.
local request = KEYS[6] and redis.call('GET', KEYS[6])
if request then return { 1, request } end
local counts = open()
if not counts then return redis.status_reply('LOST') end
local mark, revision, most, accepted = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local decides = revision ~= '' or accepted ~= ''
if decides and counts[5] ~= -1 then return { 2 } end
if revision ~= '' and counts[4] ~= tonumber(revision) then return { 3 } end
if accepted ~= '' and counts[2] > tonumber(accepted) then return { 3 } end
if most ~= '' and counts[1] + counts[2] + counts[3] > tonumber(most) then return { 3 } end
for i = 8, #ARGV, 4 do
  if (redis.call('HGET', bodies, ARGV[i]) or '') ~= ARGV[i + 1] then return { 3 } end
end

local answer, grown = { 0 }, 0
for i = 8, #ARGV, 4 do
  local player, seen, list, applied = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
  if seen ~= '' then
    redis.call('ZREM', lists[string.sub(seen, 1, 1)], player)
    grown = grown - 1
  end
  local body = ''
  if list == '' then
    redis.call('HDEL', bodies, player)
  else
    local place = redis.call('HINCRBY', about, 'places', 1)
    body = list .. ':' .. place .. ':' .. applied .. ':' .. mark
    redis.call('ZADD', lists[list], place, player)
    redis.call('HSET', bodies, player, body)
    grown = grown + 1
  end
  answer[#answer + 1] = body
end
if grown ~= 0 then redis.call('HINCRBY', about, 'all', grown) end
if decides then
  redis.call('HSET', about, 'revision', counts[4] + 1, 'last', mark)
end
if KEYS[6] then redis.call('SET', KEYS[6], ARGV[6] .. (answer[2] or ''), 'PX', ARGV[7]) end
return answer
