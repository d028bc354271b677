-- What was kept of a request, or nothing. KEYS: of the request.
return redis.call('GET', KEYS[1])
