-- Who holds units: a hash from buyer to his orders, `order[:quantity[:p][:key]]` each, the first
-- one first; `p` if he waited for it. Short forms because there is one per order in flight.
--
-- KEYS[5] holders.
local holders = { of = {}, changed = {} } -- luacheck: ignore 241

local function parse(text)
  local list = {}
  for token in string.gmatch(text or '', '[^ ]+') do
    local order, quantity, promoted, key = string.match(token, '^(%d+):?(%d*):?(p?):?(.*)$')
    list[#list + 1] = {
      order = order, quantity = tonumber(quantity) or 1, promoted = promoted == 'p', key = key, token = token,
    }
  end
  return list
end

-- Reads the orders of these buyers.
function holders.load(buyers)
  for from = 1, #buyers, 1000 do
    local upto = math.min(from + 999, #buyers)
    local texts = redis.call('HMGET', KEYS[5], unpack(buyers, from, upto))
    for at = from, upto do
      holders.of[buyers[at]] = holders.of[buyers[at]] or parse(texts[at - from + 1])
    end
  end
end

-- Units that a buyer holds.
function holders.units(buyer)
  local units = 0
  for _, held in ipairs(holders.of[buyer]) do
    units = units + held.quantity
  end
  return units
end

-- Where an order stands among a buyer's orders, or nil.
function holders.find(buyer, order)
  for at, held in ipairs(holders.of[buyer]) do
    if held.order == order then
      return at
    end
  end
  return nil
end

-- How an order is written. `key` is `-` for none.
function holders.token(order, quantity, promoted, key)
  if key ~= '-' then
    return order .. ':' .. quantity .. ':' .. (promoted and 'p' or '') .. ':' .. key
  elseif promoted then
    return order .. ':' .. quantity .. ':p'
  end
  return quantity == 1 and order or (order .. ':' .. quantity)
end

-- Gives a buyer units.
function holders.add(buyer, order, quantity, promoted, key)
  local list = holders.of[buyer]
  list[#list + 1] = {
    order = order, quantity = quantity, promoted = promoted, token = holders.token(order, quantity, promoted, key),
  }
  holders.changed[buyer] = true
end

-- Takes an order from a buyer. Returns whether he had it.
function holders.remove(buyer, order)
  local at = holders.find(buyer, order)
  if at then
    table.remove(holders.of[buyer], at)
    holders.changed[buyer] = true
  end
  return at ~= nil
end

-- Writes what changed.
function holders.save()
  for buyer in pairs(holders.changed) do
    local tokens = {}
    for at, held in ipairs(holders.of[buyer]) do
      tokens[at] = held.token
    end
    if #tokens > 0 then
      redis.call('HSET', KEYS[5], buyer, table.concat(tokens, ' '))
    else
      redis.call('HDEL', KEYS[5], buyer)
    end
  end
end
