-- What those who wait want, in blocks of sixteen turns: a hash from block (ticket / 16) to one line
-- per seat, `slot order[ quantity key]` with the slot in hex. A hash field per buyer would cost as
-- much again as his place in the sorted set; tickets are drawn one after the other, so blocks fill
-- up. A Redis that went back draws tickets again that it had drawn; whoever finds his slot taken by
-- another has his line at `slot:buyer`.
--
-- Orders of one block begin alike. What they share is said once, in a line before all others, and a
-- line with a point for the space tells the rest of its order, two digits at least: the version
-- before knows lines with a space alone, and finds no seat where it would otherwise read half of one.
local seats = {} -- luacheck: ignore 241

local BLOCK = 16

-- Names the block of a ticket, and its slot there.
function seats.place_of(ticket)
  return string.format('%.0f', math.floor(ticket / BLOCK)), string.format('%x', ticket % BLOCK)
end

-- Reads a block: slot -> `order[ quantity key]`. What is no seat is none, and missing.
function seats.read(text)
  local lines, shared = {}, string.match(text, '^(%d+)\n')
  for slot, mark, rest in string.gmatch('\n' .. text, '\n(%x:?%d*)([ .])(%d[^\n]*)') do
    if mark == ' ' then
      lines[slot] = rest
    elseif shared then
      lines[slot] = shared .. rest
    end
  end
  return lines
end

-- With what all lines begin.
local function common(lines)
  local shared
  for _, rest in pairs(lines) do
    local order = string.match(rest, '^%d*')
    shared = string.sub(shared or order, 1, math.max(#order - 2, 0))
    while string.sub(order, 1, #shared) ~= shared do
      shared = string.sub(shared, 1, -2)
    end
  end
  return shared or ''
end

-- The text of a block; nil if nobody sits there.
function seats.write(lines)
  if not next(lines) then
    return nil
  end
  local shared = common(lines)
  local out = { shared ~= '' and shared or nil }
  local mark = shared ~= '' and '.' or ' '
  for slot, rest in pairs(lines) do
    out[#out + 1] = slot .. mark .. string.sub(rest, #shared + 1)
  end
  return table.concat(out, '\n')
end

-- The slot of a buyer who waits at this ticket; then his order, quantity and key, nil if his seat is
-- missing.
function seats.find(lines, buyer, ticket)
  local _, slot = seats.place_of(ticket)
  local own = slot .. ':' .. buyer
  slot = lines[own] and own or slot
  local order, quantity, key = string.match(lines[slot] or '', '^(%d+) ?(%d*) ?(.*)$')
  return slot, order, tonumber(quantity) or 1, key == '' and '-' or key
end
