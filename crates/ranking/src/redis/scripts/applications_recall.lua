-- The stored outcome of a request, or nothing. KEYS: the request.
return redis.call('GET', KEYS[1])
