-- How an order stands, as far as the data of its voucher is there: what is gone or of the wrong type
-- counts as empty.
local standing = {} -- luacheck: ignore 241

-- Whether it holds units.
function standing.holds(holders, buyer, order)
  local held = redis.pcall('HGET', holders, buyer)
  for token in string.gmatch(type(held) == 'string' and held or '', '[^ ]+') do
    if string.match(token, '^%d+') == order then
      return true
    end
  end
  return false
end

-- Its place on the waitlist, counted from 1; nil if it does not wait.
function standing.place(waiters, seats, buyer, order)
  local rank, ticket = redis.pcall('ZRANK', waiters, buyer), redis.pcall('ZSCORE', waiters, buyer)
  if type(rank) ~= 'number' or type(ticket) ~= 'string' then
    return nil
  end
  -- The layout of seats is that of lib/waitlist.
  local block = redis.pcall('HGET', seats, string.format('%.0f', math.floor(tonumber(ticket) / 16)))
  for slot, seated in string.gmatch(type(block) == 'string' and block or '', '(%x):?%d* (%d+)[^\n]*') do
    if tonumber(slot, 16) == tonumber(ticket) % 16 and seated == order then
      return rank + 1
    end
  end
  return nil
end
