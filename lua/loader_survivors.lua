-- What is left of a voucher, a page at a time: first the holders, then the seats. Keys of the wrong
-- type count as empty. Changes nothing.
--
-- KEYS[1] holders: hash
-- KEYS[2] waiters: sorted set
-- KEYS[3] seats: hash
-- ARGV[1] phase: word, holders or seats
-- ARGV[2] cursor: integer, 0 at first
-- ARGV[3] count: integer, how many to look at
-- RETURN PAGE cursor word...: where the next page starts (0 at the end), then buyer and orders as
--   stored of each holder, or ticket, order, buyer, quantity and key of each seat
-- luacheck: globals seats

local function scan(command, key)
  local page = redis.pcall(command, key, ARGV[2], 'COUNT', ARGV[3])
  return page.err and { '0', {} } or page
end

if ARGV[1] == 'holders' then
  local page = scan('HSCAN', KEYS[1])
  return { 'PAGE', page[1], unpack(page[2]) }
end

local page = scan('ZSCAN', KEYS[2])
local names, at_block, out = {}, {}, { 'PAGE', page[1] }
for at = 2, #page[2], 2 do
  local name = seats.place_of(tonumber(page[2][at]))
  if not at_block[name] then
    at_block[name], names[#names + 1] = {}, name
  end
end
local texts = #names > 0 and redis.pcall('HMGET', KEYS[3], unpack(names)) or {}
for at, name in ipairs(texts.err and {} or names) do
  at_block[name] = seats.read(texts[at] or '')
end
for at = 1, #page[2], 2 do
  local buyer, ticket = page[2][at], tonumber(page[2][at + 1])
  local _, order, quantity, key = seats.find(at_block[seats.place_of(ticket)], buyer, ticket)
  if order then
    for _, word in ipairs({ string.format('%.0f', ticket), order, buyer, tostring(quantity), key }) do
      out[#out + 1] = word
    end
  end
end
return out
