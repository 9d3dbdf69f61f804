-- Closes the gate of a voucher whose data is known to be wrong, until it is loaded again. What
-- holders and waiters there are stays, for the loader to look at.
--
-- KEYS[1] sale: hash
-- RETURN DONE: nothing is admitted

local kind = redis.call('TYPE', KEYS[1]).ok
if kind == 'hash' then
  redis.call('HSET', KEYS[1], 'epoch', '0', 'status', 'unloaded')
elseif kind ~= 'none' then
  redis.call('DEL', KEYS[1])
end
return { 'DONE' }
