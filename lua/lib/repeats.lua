-- Attempts that are answered whatever the state of the sale, always with the first order id: a
-- repeat of the very same attempt, a known idempotency key, a buyer at his limit, one who waits.
--
-- KEYS[2] decided, KEYS[8] uses. Needs lib/partition, and lib/sale, lib/holders and lib/waitlist as
-- loaded for the buyers.
-- luacheck: globals partition sale holders waitlist
local repeats = { told = {}, used = {}, position = {}, fresh = {} } -- luacheck: ignore 241

local function lookup(key, fields, into)
  if #fields > 0 then
    for at, value in ipairs(redis.call('HMGET', key, unpack(fields))) do
      into[fields[at]] = value
    end
  end
end

-- Reads what was decided about these orders and told for these keys (`buyer key` each).
function repeats.load(orders, keys)
  lookup(KEYS[2], orders, repeats.told)
  lookup(KEYS[8], keys, repeats.used)
end

local function place(seat)
  local position = repeats.position
  position[seat.buyer] = position[seat.buyer] or redis.call('ZRANK', KEYS[6], seat.buyer) + 1
  return ' ' .. seat.order .. ' ' .. position[seat.buyer]
end

-- The answer to an attempt that needs no decision, or nil. `use` is `buyer key`, or false.
function repeats.answer(order, buyer, quantity, use)
  local seat, told, used = waitlist.of[buyer], repeats.told[order], repeats.used[use]
  if told then
    if holders.find(buyer, order) then
      return 'granted ' .. order
    elseif seat and seat.order == order then
      return 'waitlisted' .. place(seat) .. ' ' .. partition.text(seat.ticket)
    end
    return 'replayed ' .. order .. ' ' .. string.sub(told, 1, 1)
  end
  if used then
    local kind, first, wanted = string.match(used, '^(%a) (%d+) (%d+)$')
    if wanted == quantity then
      return 'replayed ' .. first .. ' ' .. kind
    end
    return 'key_reused ' .. first
  end
  if holders.units(buyer) >= sale.limit then
    local words = { 'already_held' }
    for at, held in ipairs(holders.of[buyer]) do
      words[at + 1] = held.order
    end
    return table.concat(words, ' ')
  end
  return seat and 'already_waiting' .. place(seat)
end

-- Notes what an attempt was told, for the rest of the batch and for later ones with its key.
function repeats.remember(order, kind, quantity, use)
  repeats.told[order] = kind
  if use then
    local fresh = repeats.fresh
    repeats.used[use] = kind .. ' ' .. order .. ' ' .. quantity
    fresh[#fresh + 1] = use
    fresh[#fresh + 1] = repeats.used[use]
  end
end

-- Writes what keys were told. Returns by how many there are more now.
function repeats.save()
  return partition.many('HSET', KEYS[8], repeats.fresh, 2)
end
