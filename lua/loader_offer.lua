-- Offers grants and places that a process answered and that may be lost. Each is left as it is if
-- the gate knows the order. A grant is taken while the voucher is loading, or if free units and the
-- limit allow; a place, with the turn it had, while the voucher is loading, or if the buyer does
-- not wait, the limit allows and the list has room; neither if the buyer's key has got another order
-- since. Else it is recorded as lost, and its key is known for it.
--
-- KEYS[1] meta: hash
-- KEYS[2] decided: hash
-- KEYS[3] stream: stream
-- KEYS[4] sale: hash
-- KEYS[5] holders: hash
-- KEYS[6] waiters: sorted set
-- KEYS[7] seats: hash
-- KEYS[8] uses: hash
-- KEYS[9] loading: hash
-- ARGV[1] epoch: integer
-- ARGV[2] voucher: integer
-- ARGV[3...] claims: ticket (`-` for a grant), order, buyer, quantity, key (`-` for none) of each
-- RETURN TAKEN: each is on the stream, or known
-- RETURN NOT_LOADED reason: voucher, loading or retired
-- RETURN PARTITION: the partition needs a new epoch
-- RETURN STALE epoch: it lives in this one
-- luacheck: globals partition sale holders waitlist standing

local stop = partition.refusal()
if stop then
  return stop
end
stop = sale.refusal()
local is_loading = stop and stop[2] == 'loading'
if stop and not is_loading then
  return stop
end
local VOUCHER, uses, used, seen, taken = ARGV[2], {}, {}, {}, false

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

-- What an open sale makes of an offer: `g` or `w` if it takes it.
local function take(ticket, order, buyer, quantity, key)
  local use = buyer .. ' ' .. key
  local known = key ~= '-' and (used[use] or redis.call('HGET', KEYS[8], use))
  if known and string.match(known, '^%a (%d+)') ~= order then
    return nil
  end
  local told
  if ticket == '-' then
    told = retake(order, buyer, tonumber(quantity), key)
  else
    told = reseat(ticket, order, buyer, tonumber(quantity), key)
  end
  taken = true
  if key ~= '-' and not known then
    used[use] = (ticket == '-' and 'g ' or 'w ') .. order .. ' ' .. quantity
    uses[#uses + 1], uses[#uses + 2] = use, used[use]
  end
  return told
end

-- Whether an open sale knows the order; nil if its data contradicts itself.
local function knows(order, buyer)
  holders.load({ buyer })
  if not waitlist.of[buyer] and not waitlist.load({ buyer }, { redis.call('ZSCORE', KEYS[6], buyer) }) then
    return nil
  end
  local seat = waitlist.of[buyer]
  return holders.find(buyer, order) ~= nil or (seat ~= nil and seat.order == order)
end

for at = 3, #ARGV, 5 do
  local ticket, order, buyer, quantity, key = unpack(ARGV, at, at + 4)
  local known, told = seen[order] or redis.call('HEXISTS', KEYS[2], order) == 1, nil
  if is_loading then
    -- A survivor is the loader's to look at: it may have become more than is remembered of it.
    known = known or standing.holds(KEYS[5], buyer, order) or standing.place(KEYS[6], KEYS[7], buyer, order)
    told = ticket == '-' and 'g' or 'w'
  elseif not known then
    known = knows(order, buyer)
    if known == nil then
      return sale.spoilt()
    end
    told = not known and take(ticket, order, buyer, quantity, key)
  end
  if not known then
    seen[order] = true
    local claim = table.concat({ VOUCHER, order, buyer, quantity, key }, ' ')
    if not told then
      partition.decide('lost ' .. claim, order, 'g')
    elseif told == 'g' then
      partition.decide('granted ' .. claim, order, 'g')
    else
      partition.decide('joined ' .. claim .. ' ' .. ticket, order, 'w')
    end
  end
end
if #partition.lines > 0 then
  partition.append()
  if is_loading then
    redis.call('HSET', KEYS[9], 'seq', partition.text(partition.seq))
  end
end
if taken then
  local more_holders, more_waiters, more_seats = holders.save(), waitlist.save()
  sale.save(more_holders, more_waiters, more_seats, partition.many('HSET', KEYS[8], uses, 2))
end
return { 'TAKEN' }
