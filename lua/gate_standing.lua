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
-- luacheck: globals standing

local buyer, order = ARGV[1], ARGV[2]
if standing.holds(KEYS[1], buyer, order) then
  return { 'HOLDS' }
end
local place = standing.place(KEYS[2], KEYS[3], buyer, order)
if place then
  return { 'WAITS', tostring(place) }
end
return { 'NEITHER' }
