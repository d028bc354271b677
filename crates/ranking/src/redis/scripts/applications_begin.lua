-- Begins an empty application store under a new number. ARGV: run.
redis.call('UNLINK', unpack(KEYS))
redis.call('HSET', about, 'run', ARGV[1], 'all', 0, 'places', 0, 'revision', 0)
return open()
