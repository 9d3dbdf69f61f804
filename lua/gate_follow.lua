-- Applies one update of the ledger, once, in the order of versions, then serves the waitlist with
-- what came free. Units come back only from a buyer who is known to hold them. A holder who is put
-- back takes no unit: he has long had it. A grant that the gate still holds is appended again.
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
-- ARGV[3] version: integer, the update's
-- ARGV[4] max: integer, most promotions
-- ARGV[5...] changes: each `release order buyer quantity`, `drop order buyer` (its place), `add units`,
--   `terms status opens_at closes_at limit capacity`, `restore order buyer quantity key` or
--   `append order buyer quantity key`
-- RETURN APPLIED more|idle: whether the waitlist could be served further
-- RETURN ALREADY_APPLIED: nothing changed
-- RETURN GAP version: nothing changed, this is how far the gate has followed
-- RETURN NOT_LOADED reason: voucher, loading or retired
-- RETURN PARTITION: the partition needs a new epoch
-- RETURN STALE epoch: it lives in this one
-- luacheck: globals partition sale holders waitlist promotion

local stop = partition.refusal() or sale.refusal()
if stop then
  return stop
end

local version, have = tonumber(ARGV[3]), tonumber(sale.version)
if version <= have then
  return { 'ALREADY_APPLIED' }
elseif version ~= have + 1 then
  return { 'GAP', sale.version }
end

local changes, buyers = {}, {}
for at = 5, #ARGV do
  local words = {}
  for word in string.gmatch(ARGV[at], '[^ ]+') do
    words[#words + 1] = word
  end
  changes[#changes + 1] = words
  if words[1] == 'release' or words[1] == 'restore' or words[1] == 'append' then
    buyers[#buyers + 1] = words[3]
  end
end
if not holders.load(buyers) then
  return sale.spoilt()
end

-- Has a buyer wait no more under this order, ended or given its units. Returns false if the data
-- contradicts itself.
local function drop(order, buyer)
  local waits = sale.waiting > 0 and not waitlist.left[buyer] and redis.call('ZSCORE', KEYS[6], buyer)
  if not waitlist.load({ buyer }, { waits }) then
    return false
  end
  local seat = waitlist.of[buyer]
  if seat and seat.order == order then
    waitlist.leave(seat)
    sale.waiting = sale.waiting - 1
  end
  return true
end

-- Appends a grant again, if the gate holds it. It keeps what it was told at first.
local function append(order, buyer, quantity, key)
  local at = holders.find(buyer, order)
  if at then
    local told = redis.call('HGET', KEYS[2], order) or (holders.of[buyer][at].promoted and 'w' or 'g')
    local claim = table.concat({ ARGV[2], order, buyer, quantity, key }, ' ')
    partition.decide('granted ' .. claim, order, string.sub(told, 1, 1))
  end
end

for _, words in ipairs(changes) do
  if words[1] == 'release' then
    if holders.remove(words[3], words[2]) then
      sale.free = sale.free + tonumber(words[4])
    end
  elseif words[1] == 'add' then
    sale.free, sale.total = sale.free + tonumber(words[2]), sale.total + tonumber(words[2])
  elseif words[1] == 'terms' then
    sale.status, sale.opens_at, sale.closes_at = words[2], words[3], words[4]
    sale.limit, sale.capacity = tonumber(words[5]), tonumber(words[6])
  elseif words[1] == 'drop' or words[1] == 'restore' then
    if not drop(words[2], words[3]) then
      return sale.spoilt()
    end
    if words[1] == 'restore' and not holders.find(words[3], words[2]) then
      holders.add(words[3], words[2], tonumber(words[4]), false, words[5])
    end
  elseif words[1] ~= 'append' then
    return redis.error_reply('ERR unknown change')
  end
end
for _, words in ipairs(changes) do
  if words[1] == 'append' then
    append(words[2], words[3], words[4], words[5])
  end
end

local now = partition.now()
if not promotion.serve(now, tonumber(ARGV[4])) then
  return sale.spoilt()
end
local more = promotion.more(now)
partition.append()
redis.call('HSET', KEYS[4], 'version', ARGV[3], 'status', sale.status, 'opens_at', sale.opens_at,
  'closes_at', sale.closes_at, 'limit', sale.limit, 'capacity', sale.capacity)
sale.save(holders.save(), waitlist.save())
return { 'APPLIED', more and 'more' or 'idle' }
