-- Who waits: a sorted set of buyers by ticket, and what each of them wants.
--
-- KEYS[6] waiters, KEYS[7] seats: a hash from block (ticket / 16) to one line per seat,
-- `slot order[ quantity key]` with the slot in hex. A hash field per buyer would cost as much again
-- as his place in the sorted set; tickets are drawn one after the other, so blocks fill up. A Redis
-- that went back draws tickets again that it had drawn; whoever finds his slot taken by another has
-- his line at `slot:buyer`.
-- luacheck: globals partition
local waitlist = { of = {}, blocks = {}, changed = {}, gone = {}, come = {}, left = {} } -- luacheck: ignore 241

local BLOCK = 16

local function place_of(ticket)
  return partition.text(math.floor(ticket / BLOCK)), string.format('%x', ticket % BLOCK)
end

local function load_blocks(names)
  if #names == 0 then
    return
  end
  local texts = redis.call('HMGET', KEYS[7], unpack(names))
  for at, name in ipairs(names) do
    local lines = {}
    for slot, rest in string.gmatch(texts[at] or '', '(%x:?%d*) ([^\n]+)') do
      lines[slot] = rest
    end
    waitlist.blocks[name] = lines
  end
end

-- Reads what these buyers want who wait at these tickets (false for one who does not wait). Returns
-- false if a seat is missing: the data contradicts itself.
function waitlist.load(buyers, tickets)
  local wanted, names, whole = {}, {}, true
  for at in ipairs(buyers) do
    local ticket = tonumber(tickets[at] or '')
    if ticket then
      local name = place_of(ticket)
      if not waitlist.blocks[name] and not wanted[name] then
        wanted[name], names[#names + 1] = true, name
      end
    end
  end
  load_blocks(names)
  for at, buyer in ipairs(buyers) do
    local ticket = tonumber(tickets[at] or '')
    if ticket then
      local name, slot = place_of(ticket)
      local lines, own = waitlist.blocks[name], slot .. ':' .. buyer
      slot = lines[own] and own or slot
      local order, quantity, key = string.match(lines[slot] or '', '^(%d+) ?(%d*) ?(.*)$')
      whole = whole and order ~= nil
      waitlist.of[buyer] = order and {
        buyer = buyer, ticket = ticket, slot = slot, order = order,
        quantity = tonumber(quantity) or 1, key = key == '' and '-' or key,
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
  local name, slot = place_of(ticket)
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
  local name = place_of(seat.ticket)
  waitlist.blocks[name][seat.slot] = nil
  waitlist.changed[name] = true
  waitlist.gone[#waitlist.gone + 1] = seat.buyer
  waitlist.of[seat.buyer], waitlist.left[seat.buyer] = nil, true
end

-- Writes what changed. Returns by how many there are more waiters and blocks now.
function waitlist.save()
  local set, empty = {}, {}
  for name in pairs(waitlist.changed) do
    local lines = {}
    for slot, rest in pairs(waitlist.blocks[name]) do
      lines[#lines + 1] = slot .. ' ' .. rest
    end
    if #lines > 0 then
      set[#set + 1] = name
      set[#set + 1] = table.concat(lines, '\n')
    else
      empty[#empty + 1] = name
    end
  end
  local many = partition.many
  return many('ZADD', KEYS[6], waitlist.come, 2) - many('ZREM', KEYS[6], waitlist.gone, 1),
    many('HSET', KEYS[7], set, 2) - many('HDEL', KEYS[7], empty, 1)
end
