-- Offers to an open sale of what was answered and may be lost.
--
-- KEYS[6] waiters, KEYS[8] uses. Needs lib/partition, and lib/sale, lib/holders and lib/waitlist,
-- read before.
-- luacheck: globals partition sale holders waitlist
local offers = { uses = {}, used = {}, changed = false } -- luacheck: ignore 241

-- As `Sale::retake`: nobody waits longer for it, the grant is older than the waitlist.
local function retake(order, buyer, quantity, key)
  if quantity > sale.free or holders.units(buyer) + quantity > sale.limit then
    return nil
  end
  sale.free = sale.free - quantity
  holders.add(buyer, order, quantity, false, key)
  return 'g'
end

-- As `Sale::reseat`.
local function reseat(ticket, order, buyer, quantity, key)
  if waitlist.of[buyer] or sale.waiting >= sale.capacity or holders.units(buyer) + quantity > sale.limit then
    return nil
  end
  sale.waiting = sale.waiting + 1
  waitlist.join(buyer, tonumber(ticket), order, quantity, key)
  return 'w'
end

-- What the sale makes of an offer: `g` or `w` if it takes it. A key that has got another order since
-- is that order's; else it is known for this one, taken or lost.
function offers.take(ticket, order, buyer, quantity, key)
  local use = buyer .. ' ' .. key
  local known = key ~= '-' and (offers.used[use] or redis.call('HGET', KEYS[8], use))
  if known and string.match(known, '^%a (%d+)') ~= order then
    return nil
  end
  local told
  if ticket == '-' then
    told = retake(order, buyer, tonumber(quantity), key)
  else
    told = reseat(ticket, order, buyer, tonumber(quantity), key)
  end
  offers.changed = true
  if key ~= '-' and not known then
    local uses = offers.uses
    offers.used[use] = (ticket == '-' and 'g ' or 'w ') .. order .. ' ' .. quantity
    uses[#uses + 1], uses[#uses + 2] = use, offers.used[use]
  end
  return told
end

-- Whether the sale knows the order; nil if its data contradicts itself.
function offers.knows(order, buyer)
  if not holders.load({ buyer }) then
    return nil
  end
  if not waitlist.of[buyer] and not waitlist.load({ buyer }, { redis.call('ZSCORE', KEYS[6], buyer) }) then
    return nil
  end
  local seat = waitlist.of[buyer]
  return holders.find(buyer, order) ~= nil or (seat ~= nil and seat.order == order)
end

-- Writes what was taken, and the keys of what was not.
function offers.save()
  if offers.changed then
    local more_holders, more_waiters, more_seats = holders.save(), waitlist.save()
    sale.save(more_holders, more_waiters, more_seats, partition.many('HSET', KEYS[8], offers.uses, 2))
  end
end
