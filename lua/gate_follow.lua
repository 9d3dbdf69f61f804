-- Applies one update of the ledger, once, in the order of versions, then serves the waitlist with
-- what came free. Units come back only from a buyer who is known to hold them.
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
-- ARGV[5...] changes: each `release order buyer quantity`, `add units` or `terms status opens_at
--   closes_at limit capacity`
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
  if words[1] == 'release' then
    buyers[#buyers + 1] = words[3]
  end
end
holders.load(buyers)
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
  else
    return redis.error_reply('ERR unknown change')
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
holders.save()
waitlist.save()
sale.save()
return { 'APPLIED', more and 'more' or 'idle' }
