-- How an order stands: whether it holds units or waits. Answers for a voucher that is not loaded,
-- too, as far as its data is there. Changes nothing.
--
-- KEYS[1] holders: hash
-- KEYS[2] waiters: sorted set
-- KEYS[3] seats: hash
-- ARGV[1] buyer: integer
-- ARGV[2] order: integer
-- RETURN HOLDS: it has units
-- RETURN WAITS position: it waits
-- RETURN NEITHER: neither

local buyer, order = ARGV[1], ARGV[2]
local held = redis.pcall('HGET', KEYS[1], buyer)
for token in string.gmatch(type(held) == 'string' and held or '', '[^ ]+') do
  if string.match(token, '^%d+') == order then
    return { 'HOLDS' }
  end
end
local rank, ticket = redis.pcall('ZRANK', KEYS[2], buyer), redis.pcall('ZSCORE', KEYS[2], buyer)
if type(rank) == 'number' and type(ticket) == 'string' then
  -- The layout of seats is that of lib/waitlist.
  local block = redis.pcall('HGET', KEYS[3], string.format('%.0f', math.floor(tonumber(ticket) / 16)))
  for slot, seated in string.gmatch(type(block) == 'string' and block or '', '(%x):?%d* (%d+)[^\n]*') do
    if tonumber(slot, 16) == tonumber(ticket) % 16 and seated == order then
      return { 'WAITS', tostring(rank + 1) }
    end
  end
end
return { 'NEITHER' }
