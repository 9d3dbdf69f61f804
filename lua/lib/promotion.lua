-- Serving the waitlist: strictly by ticket, free units accumulating for a head that wants several.
--
-- Needs lib/partition, lib/sale, lib/holders and lib/waitlist; ARGV[2] the voucher.
-- luacheck: globals partition sale holders waitlist
local promotion = {} -- luacheck: ignore 241

local queue, turn, fetched = {}, 1, 0

-- The seat whose turn it is; nil if nobody waits, false if the data contradicts itself. Reads up to
-- `want` seats at a time.
local function head(want)
  while turn > #queue do
    local pairs_of = redis.call('ZRANGE', KEYS[6], fetched, fetched + want - 1, 'WITHSCORES')
    if #pairs_of == 0 then
      return nil
    end
    local buyers, tickets = {}, {}
    for at = 1, #pairs_of, 2 do
      -- Who has left in this very script is still in the set.
      if not waitlist.left[pairs_of[at]] then
        buyers[#buyers + 1], tickets[#tickets + 1] = pairs_of[at], pairs_of[at + 1]
      end
    end
    queue, turn, fetched = buyers, 1, fetched + #pairs_of / 2
    if not waitlist.load(buyers, tickets) or not holders.load(buyers) then
      return false
    end
  end
  return waitlist.of[queue[turn]]
end

-- Why a head can never be served, or nil.
local function hopeless(seat)
  if seat.quantity > sale.total then
    return 'not_enough_units'
  elseif holders.units(seat.buyer) + seat.quantity > sale.limit then
    return 'limit_reached'
  end
  return nil
end

local function leave(seat, kind, reason)
  local words = { kind, ARGV[2], seat.order, seat.buyer, seat.quantity, seat.key, reason }
  partition.decide(table.concat(words, ' '), seat.order, 'w')
  waitlist.leave(seat)
  sale.waiting = sale.waiting - 1
  turn = turn + 1
end

-- Serves the head, again and again, at most `max` times. Returns false if the data contradicts
-- itself: then nothing may be written.
function promotion.serve(now, max)
  if sale.turned_away(now) then
    return true
  end
  for served = 0, max - 1 do
    local seat = head(math.min(max - served, sale.free + 1))
    if not seat then
      return seat == nil
    end
    local reason = hopeless(seat)
    if reason then
      leave(seat, 'left', reason)
    elseif seat.quantity > sale.free then
      return true
    else
      leave(seat, 'promoted')
      sale.free = sale.free - seat.quantity
      holders.add(seat.buyer, seat.order, seat.quantity, true, seat.key)
    end
  end
  return true
end

-- Takes buyers off the waitlist of a sale that is over, in order, at most `max`. Returns false if
-- the data contradicts itself.
function promotion.drain(now, max)
  if not sale.over(now) then
    return true
  end
  for drained = 0, max - 1 do
    local seat = head(max - drained)
    if not seat then
      return seat == nil
    end
    leave(seat, 'left', 'closed_out')
  end
  return true
end

-- Whether there is more to serve or to drain.
function promotion.more(now)
  if sale.over(now) then
    return sale.waiting > 0
  elseif sale.turned_away(now) then
    return false
  end
  local seat = head(1)
  return seat and (hopeless(seat) ~= nil or seat.quantity <= sale.free) or false
end
