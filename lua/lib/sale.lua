-- The sale of one voucher: what it goes by, and what it counts.
--
-- KEYS[4] sale, KEYS[5] holders, KEYS[6] waiters, KEYS[7] seats, KEYS[8] uses, KEYS[9] loading.
-- Needs lib/partition, read before.
-- luacheck: globals partition
local sale = {} -- luacheck: ignore 241

-- Reads the sale. Returns what to answer if it cannot be worked on. A count that disagrees with
-- its key means that something was lost: not loaded, which is never "sold out".
function sale.refusal()
  local read = partition.read
  if read('HGET', KEYS[9], 'epoch') == partition.epoch then
    return { 'NOT_LOADED', 'loading' }
  end
  local got = read('HMGET', KEYS[4], 'status', 'opens_at', 'closes_at', 'limit', 'capacity', 'total',
    'free', 'version', 'epoch', 'holders', 'waiters', 'seats', 'uses') or {}
  if got[1] == 'retired' then
    return { 'NOT_LOADED', 'retired' }
  end
  if got[9] ~= partition.epoch then
    return { 'NOT_LOADED', 'voucher' }
  end
  for at = 2, 13 do
    if at ~= 9 and not tonumber(got[at] or '') then
      return { 'NOT_LOADED', 'voucher' }
    end
  end
  sale.waiting = tonumber(got[11])
  if read('HLEN', KEYS[5]) ~= tonumber(got[10]) or read('ZCARD', KEYS[6]) ~= sale.waiting
    or read('HLEN', KEYS[7]) ~= tonumber(got[12]) or read('HLEN', KEYS[8]) ~= tonumber(got[13]) then
    return { 'NOT_LOADED', 'voucher' }
  end
  sale.status, sale.opens_at, sale.closes_at = got[1], got[2], got[3]
  sale.limit, sale.capacity, sale.total = tonumber(got[4]), tonumber(got[5]), tonumber(got[6])
  sale.free, sale.version = tonumber(got[7]), got[8]
  return nil
end

-- Closes the gate of a sale whose data contradicts itself, so that it is loaded again.
function sale.spoilt()
  redis.call('HSET', KEYS[4], 'epoch', '0')
  return { 'NOT_LOADED', 'voucher' }
end

-- Whether it is over, by hand or by the clock.
function sale.over(now)
  return sale.status == 'closed' or now >= tonumber(sale.closes_at)
end

-- Why an attempt is turned away whatever the stock, if it is.
function sale.turned_away(now)
  if sale.over(now) then
    return 'closed'
  elseif sale.status ~= 'published' then
    return 'paused'
  elseif now < tonumber(sale.opens_at) then
    return 'not_open ' .. sale.opens_at
  end
  return nil
end

-- Writes what a decision can change, and counts what there is now.
function sale.save()
  redis.call('HSET', KEYS[4], 'free', partition.text(sale.free), 'total', partition.text(sale.total),
    'holders', redis.call('HLEN', KEYS[5]), 'waiters', redis.call('ZCARD', KEYS[6]),
    'seats', redis.call('HLEN', KEYS[7]), 'uses', redis.call('HLEN', KEYS[8]))
end
