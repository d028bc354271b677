-- Prefix of the scripts of an application store. KEYS: its counters, the pending, the accepted, the rejected, and the
-- applications by player; all in one slot. ARGV[1]: the expected process of the Redis server.
local about, bodies = KEYS[1], KEYS[5]
local lists = { p = KEYS[2], a = KEYS[3], r = KEYS[4] }

-- Returns how many are pending, accepted and rejected, the revision of the decisions, the number of the start that froze
-- them (-1 for none), and the mark of the last decision. Returns nothing when the data is not what was written: flushed,
-- restored by another process from a file, copied from a newer master, or a whole key evicted.
local function open()
  local kept = redis.call('HMGET', about, 'run', 'all', 'revision', 'frozen', 'last')
  if kept[1] ~= ARGV[1] then return nil end
  local p, a, r = redis.call('ZCARD', lists.p), redis.call('ZCARD', lists.a), redis.call('ZCARD', lists.r)
  local all = tonumber(kept[2])
  if p + a + r ~= all or redis.call('HLEN', bodies) ~= all then return nil end
  return { p, a, r, tonumber(kept[3]), tonumber(kept[4] or '-1'), kept[5] or '' }
end
