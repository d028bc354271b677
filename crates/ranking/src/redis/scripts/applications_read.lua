-- Counts, and some applications. ARGV: run, players. Returns the result of `open`, then an application or nothing per player.
local answer = open()
if not answer then return redis.status_reply('LOST') end
if #ARGV > 1 then
  for _, body in ipairs(redis.call('HMGET', bodies, unpack(ARGV, 2))) do answer[#answer + 1] = body end
end
return answer
