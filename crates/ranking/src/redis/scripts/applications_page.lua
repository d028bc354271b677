-- A page of one list in its order. ARGV: run, list ('p', 'a', 'r'), the position behind which it begins, how many.
-- Returns players and applications alternately.
if not open() then return redis.status_reply('LOST') end
local names = redis.call('ZRANGEBYSCORE', lists[ARGV[2]], '(' .. ARGV[3], '+inf', 'LIMIT', 0, ARGV[4])
local answer = {}
-- Redis stores a short hash packed and searches it from its beginning for every field, so the script reads it whole.
if redis.call('HLEN', bodies) <= 512 then
  local all, body = redis.call('HGETALL', bodies), {}
  for i = 1, #all, 2 do body[all[i]] = all[i + 1] end
  for at, name in ipairs(names) do answer[2 * at - 1], answer[2 * at] = name, body[name] or false end
  return answer
end
for first = 1, #names, 1000 do
  local last = math.min(first + 999, #names)
  for at, body in ipairs(redis.call('HMGET', bodies, unpack(names, first, last))) do
    answer[#answer + 1], answer[#answer + 2] = names[first + at - 1], body
  end
end
return answer
