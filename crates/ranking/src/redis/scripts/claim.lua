-- Claims this Redis for the servers of a store, or prolongs their claim. KEYS: the claim, and who has used this Redis last.
-- ARGV: run, the claim, the claim that the caller had before ('' for none), how long it holds, in milliseconds, and whether the
--   Redis is used from now on ('1').
-- Returns 0 if others have the claim, 1, or 2 if the servers of this claim have used the Redis before.
local held = redis.call('GET', KEYS[1])
if held and held ~= ARGV[2] and held ~= ARGV[3] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[4])
local used = redis.call('GET', KEYS[2]) == ARGV[2]
if ARGV[5] == '1' then redis.call('SET', KEYS[2], ARGV[2]) end
return used and 2 or 1
