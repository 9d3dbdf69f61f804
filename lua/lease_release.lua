-- Gives one hold back; the last one frees the lease. Never touches another owner's.
--
-- KEYS[1] lease: hash
-- ARGV[1] owner: word
-- RETURN RELEASED: it was this owner's
-- RETURN LOST: it was not

if redis.call('TYPE', KEYS[1]).ok ~= 'hash' or redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then
  return { 'LOST' }
end
if redis.call('HINCRBY', KEYS[1], 'holds', -1) <= 0 then
  redis.call('DEL', KEYS[1])
end
return { 'RELEASED' }
