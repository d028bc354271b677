-- In front of the scripts of a contest's applications. KEYS: what is known of them, the pending, the accepted, the rejected,
-- and the applications by player; all in one slot. ARGV[1]: the process of the server that we believe to talk to.
local about, bodies = KEYS[1], KEYS[5]
local lists = { p = KEYS[2], a = KEYS[3], r = KEYS[4] }

-- How many are pending, accepted and rejected, how often they were decided on, the number of the start that holds them still
-- (-1 for none), and what the last decision was marked with. Nothing where they are not what was written: flushed, restored
-- by another process from a file or from a master that had gone further, or a whole key evicted.
local function open()
  local kept = redis.call('HMGET', about, 'run', 'all', 'revision', 'frozen', 'last')
  if kept[1] ~= ARGV[1] then return nil end
  local p, a, r = redis.call('ZCARD', lists.p), redis.call('ZCARD', lists.a), redis.call('ZCARD', lists.r)
  local all = tonumber(kept[2])
  if p + a + r ~= all or redis.call('HLEN', bodies) ~= all then return nil end
  return { p, a, r, tonumber(kept[3]), tonumber(kept[4] or '-1'), kept[5] or '' }
end
