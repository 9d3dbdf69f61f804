-- Who holds units: a hash from buyer to his orders, `order[:quantity[:p][:key]]` each, the first
-- one first; `p` if he waited for it. Short forms because there is one per order in flight.
--
-- KEYS[5] holders. Needs lib/partition.
-- luacheck: globals partition
local holders = { of = {}, changed = {} } -- luacheck: ignore 241

local ID_MAX, QUANTITY_MAX = '18446744073709551615', 4294967295

-- Whether this is an id as ids are written.
local function is_id(text)
  local digits = string.match(text, '^[1-9]%d*$')
  return digits ~= nil and (#digits < #ID_MAX or (#digits == #ID_MAX and digits <= ID_MAX))
end

-- One order of a buyer; nil if it cannot be read: it was not written here.
local function parse(token)
  local order, quantity, rest = string.match(token, '^(%d+):?(%d*)(.*)$')
  local units = quantity == '' and 1 or tonumber(quantity or '0')
  if not order or not is_id(order) or units < 1 or units > QUANTITY_MAX then
    return nil
  end
  local promoted, key = string.match(rest, '^:(p?):([!-~]+)$')
  if rest ~= '' and rest ~= ':p' and not key then
    return nil
  end
  return { order = order, quantity = units, promoted = promoted == 'p' or rest == ':p', token = token }
end

-- A buyer's orders in this text; nil if they cannot all be read.
local function parse_all(text)
  local list = {}
  for token in string.gmatch(text, '[^ ]+') do
    local held = parse(token)
    if not held then
      return nil
    end
    list[#list + 1] = held
  end
  return list[1] ~= nil and list or nil
end

-- Whether somebody is there and what he holds can be read.
function holders.readable(buyer, text)
  return (buyer == '0' or is_id(buyer)) and parse_all(text) ~= nil
end

-- Reads the orders of these buyers. Returns false if some cannot be read: the data is damaged.
function holders.load(buyers)
  local whole = true
  for from = 1, #buyers, 1000 do
    local upto = math.min(from + 999, #buyers)
    local texts = redis.call('HMGET', KEYS[5], unpack(buyers, from, upto))
    for at = from, upto do
      local buyer, text = buyers[at], texts[at - from + 1]
      local list = holders.of[buyer] or (text and parse_all(text))
      whole = whole and (list ~= nil or not text)
      holders.of[buyer] = list or {}
    end
  end
  return whole
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

-- Writes what changed. Returns by how many there are more holders now.
function holders.save()
  local set, gone = {}, {}
  for buyer in pairs(holders.changed) do
    local list = holders.of[buyer]
    local text = list[1] and list[1].token
    for at = 2, #list do
      text = text .. ' ' .. list[at].token
    end
    if text then
      set[#set + 1] = buyer
      set[#set + 1] = text
    else
      gone[#gone + 1] = buyer
    end
  end
  return partition.many('HSET', KEYS[5], set, 2) - partition.many('HDEL', KEYS[5], gone, 1)
end
