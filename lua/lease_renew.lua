-- Extends a lease that is still this owner's.
--
-- KEYS[1] lease: hash
-- ARGV[1] owner: word
-- ARGV[2] ttl_ms: integer
-- RETURN HELD: it is this owner's
-- RETURN LOST: it is not, and stays lost

if redis.call('TYPE', KEYS[1]).ok ~= 'hash' or redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then
  return { 'LOST' }
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return { 'HELD' }
