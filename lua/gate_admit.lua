-- Decides a batch of attempts on one voucher, one after the other, in one step. The order of
-- questions is that of `Sale::admit`, preceded by: was this order id decided before?
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
-- ARGV[3] backlog: integer, as many decisions behind the ledger may not be
-- ARGV[4...] attempts: order, buyer, quantity, key (`-` for none) of each
-- RETURN DECIDED free waiting open version answer...: the sale after the batch (open is 1 if the
--   waitlist takes more), then per attempt one of: granted order; waitlisted order position
--   ticket; replayed order g|w; key_reused order; already_held order...; already_waiting order position;
--   limit_exceeded remaining; not_open opens_at; paused; closed; sold_out
-- RETURN BACKLOG_FULL: the ledger is too far behind; nothing changed
-- RETURN NOT_LOADED reason: voucher, loading or retired
-- RETURN PARTITION: the partition needs a new epoch
-- RETURN STALE epoch: it lives in this one
-- luacheck: globals partition sale holders waitlist repeats

local stop = partition.refusal() or sale.refusal()
if stop then
  return stop
end
if partition.seq - partition.applied >= tonumber(ARGV[3]) then
  return { 'BACKLOG_FULL' }
end

local VOUCHER, shut = ARGV[2], sale.turned_away(partition.now())
local orders, buyers, keys = {}, {}, {}
for at = 4, #ARGV, 4 do
  orders[#orders + 1], buyers[#buyers + 1] = ARGV[at], ARGV[at + 1]
  if ARGV[at + 3] ~= '-' then
    keys[#keys + 1] = ARGV[at + 1] .. ' ' .. ARGV[at + 3]
  end
end
repeats.load(orders, keys)
if not holders.load(buyers) then
  return sale.spoilt()
end
if sale.waiting > 0 and #buyers > 0 then
  if not waitlist.load(buyers, redis.call('ZMSCORE', KEYS[6], unpack(buyers))) then
    return sale.spoilt()
  end
end

-- One concatenation: this line is written once per order of a crowd.
local function line(decided, order, buyer, quantity, key)
  return decided .. ' ' .. VOUCHER .. ' ' .. order .. ' ' .. buyer .. ' ' .. quantity .. ' ' .. key
end

local function admit(order, buyer, quantity, key)
  local use = key ~= '-' and buyer .. ' ' .. key
  local answer = repeats.answer(order, buyer, quantity, use) or shut
  if answer then
    return answer
  end
  local remaining, wanted = sale.limit - holders.units(buyer), tonumber(quantity)
  if wanted > remaining then
    return 'limit_exceeded ' .. remaining
  end
  if sale.waiting == 0 and wanted <= sale.free then
    partition.decide(line('granted', order, buyer, quantity, key), order, 'g')
    sale.free = sale.free - wanted
    holders.add(buyer, order, wanted, false, key)
    repeats.remember(order, 'g', quantity, use)
    return 'granted ' .. order
  end
  if sale.waiting < sale.capacity then
    local ticket = partition.turn()
    partition.decide(line('joined', order, buyer, quantity, key), order, 'w')
    waitlist.join(buyer, ticket, order, wanted, key)
    sale.waiting = sale.waiting + 1
    repeats.position[buyer] = sale.waiting
    repeats.remember(order, 'w', quantity, use)
    return 'waitlisted ' .. order .. ' ' .. sale.waiting .. ' ' .. partition.text(ticket)
  end
  return 'sold_out'
end

local answers = {}
for at = 4, #ARGV, 4 do
  answers[#answers + 1] = admit(ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3])
end
if #partition.lines > 0 then
  partition.append()
  local more_holders, more_waiters, more_seats = holders.save(), waitlist.save()
  sale.save(more_holders, more_waiters, more_seats, repeats.save())
end
return { 'DECIDED', tostring(sale.free), tostring(sale.waiting), sale.waiting < sale.capacity and '1' or '0',
  sale.version, unpack(answers) }
