-- The mark that a voucher is being loaded: a hash of token, epoch, the last decision that the
-- ledger has to have applied before the sale opens, and how many chunks were loaded. It expires.
--
-- KEYS[9] loading; ARGV[3] the token. Needs lib/partition.
-- luacheck: globals partition
local loading = {} -- luacheck: ignore 241

-- Whether the mark is alive and carries this token.
function loading.mine()
  local got = partition.read('HMGET', KEYS[9], 'token', 'epoch', 'seq', 'staged') or {}
  loading.seq, loading.staged = tonumber(got[3] or ''), tonumber(got[4] or '')
  return got[1] == ARGV[3] and got[2] == partition.epoch and loading.seq ~= nil and loading.staged ~= nil
end
