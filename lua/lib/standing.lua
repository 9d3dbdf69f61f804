-- How an order stands, as far as the data of its voucher is there: what is gone or of the wrong type
-- counts as empty. Needs lib/seats.
-- luacheck: globals seats
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
function standing.place(waiters, blocks, buyer, order)
  local rank, ticket = redis.pcall('ZRANK', waiters, buyer), redis.pcall('ZSCORE', waiters, buyer)
  if type(rank) ~= 'number' or type(ticket) ~= 'string' then
    return nil
  end
  local block = redis.pcall('HGET', blocks, (seats.place_of(tonumber(ticket))))
  local lines = seats.read(type(block) == 'string' and block or '')
  local _, seated = seats.find(lines, buyer, tonumber(ticket))
  return seated == order and rank + 1 or nil
end
