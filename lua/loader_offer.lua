-- Offers grants that a process answered and that may be lost. Each is left as it is if the gate
-- knows it; taken as a grant while the voucher is loading, or if free units and the limit allow;
-- else recorded as lost.
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
-- ARGV[3...] claims: order, buyer, quantity, key (`-` for none) of each
-- RETURN TAKEN: each is on the stream, or known
-- RETURN NOT_LOADED reason: voucher, loading or retired
-- RETURN PARTITION: the partition needs a new epoch
-- RETURN STALE epoch: it lives in this one
-- luacheck: globals partition sale holders waitlist

local stop = partition.refusal()
if stop then
  return stop
end
stop = sale.refusal()
local is_loading = stop and stop[2] == 'loading'
if stop and not is_loading then
  return stop
end
local VOUCHER, uses, seen, taken = ARGV[2], {}, {}, false

-- As `Sale::retake`: nobody waits longer for it, the grant is older than the waitlist.
local function retake(order, buyer, quantity, key)
  if quantity > sale.free or holders.units(buyer) + quantity > sale.limit then
    return false
  end
  sale.free, taken = sale.free - quantity, true
  holders.add(buyer, order, quantity, false, key)
  if key ~= '-' then
    uses[#uses + 1], uses[#uses + 2] = buyer .. ' ' .. key, 'g ' .. order .. ' ' .. quantity
  end
  return true
end

for at = 3, #ARGV, 4 do
  local order, buyer, quantity, key = unpack(ARGV, at, at + 3)
  local known = seen[order] or redis.call('HEXISTS', KEYS[2], order) == 1
  if not known and not is_loading then
    holders.load({ buyer })
    known = holders.find(buyer, order)
    local ticket = not known and redis.call('ZSCORE', KEYS[6], buyer)
    if ticket then
      if not waitlist.load({ buyer }, { ticket }) then
        return sale.spoilt()
      end
      known = waitlist.of[buyer].order == order
    end
  end
  if not known then
    seen[order] = true
    local granted = is_loading or retake(order, buyer, tonumber(quantity), key)
    local claim = table.concat({ VOUCHER, order, buyer, quantity, key }, ' ')
    partition.decide((granted and 'granted ' or 'lost ') .. claim, order, 'g')
  end
end
if #partition.lines > 0 then
  partition.append()
end
if is_loading then
  redis.call('HSET', KEYS[9], 'seq', partition.text(partition.seq))
elseif taken then
  holders.save()
  if #uses > 0 then
    redis.call('HSET', KEYS[8], unpack(uses))
  end
  sale.save()
end
return { 'TAKEN' }
