-- Takes a lease that is free or already this owner's, and counts one hold more.
--
-- KEYS[1] lease: hash
-- ARGV[1] owner: word
-- ARGV[2] ttl_ms: integer
-- RETURN HELD: it is this owner's
-- RETURN BUSY: another holds it

local kind = redis.call('TYPE', KEYS[1]).ok
if kind == 'hash' and redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then
  return { 'BUSY' }
elseif kind ~= 'hash' and kind ~= 'none' then
  redis.call('DEL', KEYS[1])
end
redis.call('HSET', KEYS[1], 'owner', ARGV[1])
redis.call('HINCRBY', KEYS[1], 'holds', 1)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return { 'HELD' }
