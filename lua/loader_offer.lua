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
-- luacheck: globals partition sale standing offers

local stop = partition.refusal()
if stop then
  return stop
end
stop = sale.refusal()
local is_loading = stop and stop[2] == 'loading'
if stop and not is_loading then
  return stop
end
local VOUCHER, seen = ARGV[2], {}

for at = 3, #ARGV, 5 do
  local ticket, order, buyer, quantity, key = unpack(ARGV, at, at + 4)
  local known, told = seen[order] or partition.stands(order), nil
  if is_loading then
    -- A survivor is the loader's to look at: it may have become more than is remembered of it.
    known = known or standing.holds(KEYS[5], buyer, order) or standing.place(KEYS[6], KEYS[7], buyer, order)
    told = ticket == '-' and 'g' or 'w'
  elseif not known then
    known = offers.knows(order, buyer)
    if known == nil then
      return sale.spoilt()
    end
    told = not known and offers.take(ticket, order, buyer, quantity, key)
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
offers.save()
return { 'TAKEN' }
