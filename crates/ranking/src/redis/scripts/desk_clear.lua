-- Takes away everything of a contest's applications under one number: by their names, whatever else there is.
redis.call('UNLINK', unpack(KEYS))
return redis.call('EXISTS', unpack(KEYS))
