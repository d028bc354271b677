-- The members at some positions, for searches that take several rounds. ARGV: run, positions.
-- Returns the total and a member for each position, nothing for a position behind the end.
local state, total = open()
if not state then return redis.status_reply('LOST') end
if state == 'L' then return redis.status_reply('LOADING') end
local answer = { total }
for i = 2, #ARGV do
  answer[i] = redis.call('ZRANGE', z, ARGV[i], ARGV[i])[1] or false
end
return answer
