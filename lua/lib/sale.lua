-- The sale of one voucher: what it goes by, and what it counts.
--
-- KEYS[4] sale, KEYS[5] holders, KEYS[6] waiters, KEYS[7] seats, KEYS[8] uses, KEYS[9] loading.
-- Needs lib/partition, read before.
-- luacheck: globals partition
local sale = {} -- luacheck: ignore 241

local STATUS = { draft = true, published = true, paused = true, closed = true }

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
  if got[9] ~= partition.epoch or not STATUS[got[1]] then
    return { 'NOT_LOADED', 'voucher' }
  end
  for at = 2, 13 do
    -- Only times may lie before 1970; a count below zero is damage, as a missing one is.
    if at ~= 9 and not string.match(got[at] or '', at <= 3 and '^%-?%d+$' or '^%d+$') then
      return { 'NOT_LOADED', 'voucher' }
    end
  end
  sale.waiting = tonumber(got[11])
  sale.counts = { tonumber(got[10]), sale.waiting, tonumber(got[12]), tonumber(got[13]) }
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

-- Writes what a decision can change, and how many there are now: by how many holders, waiters,
-- blocks of seats and uses of keys are more than were read (nil for none).
function sale.save(holders, waiters, seats, uses)
  local counts = sale.counts
  redis.call('HSET', KEYS[4], 'free', sale.free, 'total', sale.total,
    'holders', counts[1] + (holders or 0), 'waiters', counts[2] + (waiters or 0),
    'seats', counts[3] + (seats or 0), 'uses', counts[4] + (uses or 0))
end
