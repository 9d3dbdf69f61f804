-- Who waits: a sorted set of buyers by ticket, and what each of them wants.
--
-- KEYS[6] waiters, KEYS[7] seats: see lib/seats. Needs lib/partition and lib/seats.
-- luacheck: globals partition seats
local waitlist = { of = {}, blocks = {}, changed = {}, gone = {}, come = {}, left = {} } -- luacheck: ignore 241

local function load_blocks(names)
  if #names == 0 then
    return
  end
  local texts = redis.call('HMGET', KEYS[7], unpack(names))
  for at, name in ipairs(names) do
    waitlist.blocks[name] = seats.read(texts[at] or '')
  end
end

-- Reads what these buyers want who wait at these tickets (false for one who does not wait). Returns
-- false if a seat is missing: the data contradicts itself.
function waitlist.load(buyers, tickets)
  local wanted, names, whole = {}, {}, true
  for at in ipairs(buyers) do
    local ticket = tonumber(tickets[at] or '')
    if ticket then
      local name = seats.place_of(ticket)
      if not waitlist.blocks[name] and not wanted[name] then
        wanted[name], names[#names + 1] = true, name
      end
    end
  end
  load_blocks(names)
  for at, buyer in ipairs(buyers) do
    local ticket = tonumber(tickets[at] or '')
    if ticket then
      local slot, order, quantity, key = seats.find(waitlist.blocks[seats.place_of(ticket)], buyer, ticket)
      whole = whole and order ~= nil
      waitlist.of[buyer] = order and {
        buyer = buyer, ticket = ticket, slot = slot, order = order, quantity = quantity, key = key,
      }
    end
  end
  return whole
end

-- A buyer's place in words: `ticket order buyer quantity key`; empty if he has none.
function waitlist.told(buyer)
  local seat = waitlist.of[buyer]
  return seat and table.concat({ partition.text(seat.ticket), seat.order, buyer, seat.quantity, seat.key }, ' ') or ''
end

-- Takes a place.
function waitlist.join(buyer, ticket, order, quantity, key)
  local name, slot = seats.place_of(ticket)
  if not waitlist.blocks[name] then
    load_blocks({ name })
  end
  local plain = quantity == 1 and key == '-'
  slot = waitlist.blocks[name][slot] and slot .. ':' .. buyer or slot
  waitlist.blocks[name][slot] = plain and order or (order .. ' ' .. quantity .. ' ' .. key)
  waitlist.changed[name] = true
  waitlist.come[#waitlist.come + 1] = partition.text(ticket)
  waitlist.come[#waitlist.come + 1] = buyer
  waitlist.of[buyer] = {
    buyer = buyer, ticket = ticket, slot = slot, order = order, quantity = quantity, key = key,
  }
end

-- Gives a place up.
function waitlist.leave(seat)
  local name = seats.place_of(seat.ticket)
  waitlist.blocks[name][seat.slot] = nil
  waitlist.changed[name] = true
  waitlist.gone[#waitlist.gone + 1] = seat.buyer
  waitlist.of[seat.buyer], waitlist.left[seat.buyer] = nil, true
end

-- Writes what changed. Returns by how many there are more waiters and blocks now.
function waitlist.save()
  local set, empty = {}, {}
  for name in pairs(waitlist.changed) do
    local text = seats.write(waitlist.blocks[name])
    if text then
      set[#set + 1], set[#set + 2] = name, text
    else
      empty[#empty + 1] = name
    end
  end
  local many = partition.many
  return many('ZADD', KEYS[6], waitlist.come, 2) - many('ZREM', KEYS[6], waitlist.gone, 1),
    many('HSET', KEYS[7], set, 2) - many('HDEL', KEYS[7], empty, 1)
end
