-- Gives a voucher up for now: the next loader may begin at once.
--
-- KEYS[1] loading: hash
-- ARGV[1] token: word
-- RETURN DONE: the mark is gone if it was this loader's

if redis.call('TYPE', KEYS[1]).ok == 'hash' and redis.call('HGET', KEYS[1], 'token') == ARGV[1] then
  redis.call('DEL', KEYS[1])
end
return { 'DONE' }
