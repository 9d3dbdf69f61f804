//! Harm done to the gate by hand, as with `redis-cli`: single differences that only a comparison
//! with the ledger finds. Each is one step, so that it can be done while the sale goes on, and
//! leaves the gate's own counts in agreement: what they tell by themselves is no difference.

use redis::Script;
use seckill_domain::{BuyerId, OrderId, PartitionId, VoucherId};

use super::gate::Gate;

/// KEYS: sale, holders. ARGV: buyer.
const DROP_HOLDER: &str = "\
    if redis.call('HDEL', KEYS[2], ARGV[1]) == 0 then return 0 end
    redis.call('HINCRBY', KEYS[1], 'holders', -1)
    return 1";

/// KEYS: sale, holders. ARGV: buyer, order and quantity as they are kept, units to take.
const PLANT_HOLDER: &str = "\
    if tonumber(redis.call('HGET', KEYS[1], 'free') or '0') < tonumber(ARGV[3])
      or redis.call('HSETNX', KEYS[2], ARGV[1], ARGV[2]) == 0 then return 0 end
    redis.call('HINCRBY', KEYS[1], 'holders', 1)
    redis.call('HINCRBY', KEYS[1], 'free', -ARGV[3])
    return 1";

/// KEYS: sale, holders. ARGV: buyer, what he is to hold as it is kept, units to take.
const WRITE_HOLDER: &str = "\
    local new = redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
    redis.call('HINCRBY', KEYS[1], 'holders', new)
    redis.call('HINCRBY', KEYS[1], 'free', 0 - ARGV[3])
    return 1";

/// KEYS: sale, waiters. ARGV: buyer.
const DROP_WAITER: &str = "\
    if redis.call('ZREM', KEYS[2], ARGV[1]) == 0 then return 0 end
    redis.call('HINCRBY', KEYS[1], 'waiters', -1)
    return 1";

/// KEYS: sale, waiters. ARGV: buyer, whose turn he has: that of another buyer, or none before his.
const PLANT_GHOST: &str = "\
    local turn = redis.call('ZSCORE', KEYS[2], ARGV[2]) or '1125899906842624'
    if redis.call('ZADD', KEYS[2], 'NX', turn, ARGV[1]) == 0 then return 0 end
    redis.call('HINCRBY', KEYS[1], 'waiters', 1)
    return 1";

/// KEYS: sale, waiters, seats. ARGV: turn, buyer, order. The layout is that of `lua/lib/seats.lua`.
const PLANT_WAITER: &str = "\
    local block, slot = math.floor(ARGV[1] / 16), string.format('%x', ARGV[1] % 16)
    if redis.call('HEXISTS', KEYS[3], block) == 1
      or redis.call('ZADD', KEYS[2], 'NX', ARGV[1], ARGV[2]) == 0 then return 0 end
    redis.call('HSET', KEYS[3], block, slot .. ' ' .. ARGV[3])
    redis.call('HINCRBY', KEYS[1], 'waiters', 1)
    redis.call('HINCRBY', KEYS[1], 'seats', 1)
    return 1";

/// KEYS: sale, waiters, seats. ARGV: two buyers, who change places.
const SWAP_WAITERS: &str = "\
    local turns = redis.call('ZMSCORE', KEYS[2], ARGV[1], ARGV[2])
    if not turns[1] or not turns[2] then return 0 end
    redis.call('ZADD', KEYS[2], turns[2], ARGV[1], turns[1], ARGV[2])
    local function line(turn)
      local block = string.format('%.0f', math.floor(turn / 16))
      local text = redis.call('HGET', KEYS[3], block)
      local mark, rest = string.match('\\n' .. text, string.format('\\n%x([ .])([^\\n]+)', turn % 16))
      local shared = mark == '.' and string.match(text, '^%d+') or ''
      return block, text, string.format('\\n%x', turn % 16) .. mark .. rest, ' ' .. shared .. rest
    end
    local function put(turn, seat)
      local block, text, old = line(turn)
      local from, upto = string.find('\\n' .. text, old, 1, true)
      text = string.sub('\\n' .. text, 1, from) .. string.format('%x', turn % 16) .. seat
        .. string.sub('\\n' .. text, upto + 1)
      redis.call('HSET', KEYS[3], block, string.sub(text, 2))
    end
    local _, _, _, one = line(turns[1])
    local _, _, _, other = line(turns[2])
    put(turns[1], other)
    put(turns[2], one)
    return 1";

/// KEYS: sale. ARGV: units.
const SHIFT_FREE: &str = "\
    local free = tonumber(redis.call('HGET', KEYS[1], 'free') or '-1')
    if free < 0 or free + tonumber(ARGV[1]) < 0 then return 0 end
    redis.call('HINCRBY', KEYS[1], 'free', ARGV[1])
    return 1";

/// KEYS: meta, stream, and for a grant sale and holders. ARGV: a decision, and for a grant of one
/// unit the buyer and his order.
const DECIDE: &str = "\
    if KEYS[3] then
      if redis.call('HSETNX', KEYS[4], ARGV[2], ARGV[3]) == 0 then return 0 end
      redis.call('HINCRBY', KEYS[3], 'holders', 1)
      redis.call('HINCRBY', KEYS[3], 'free', -1)
    end
    local seq = redis.call('HINCRBY', KEYS[1], 'seq', 1)
    local id = redis.call('XADD', KEYS[2], '*', 'v', '1', 'e', redis.call('HGET', KEYS[1], 'epoch'),
      's', string.format('%.0f', seq), 'd', ARGV[1])
    local order = string.match(ARGV[1], '^granted %d+ (%d+) ')
    if order then
      local new = redis.call('HSET', string.gsub(KEYS[1], 'meta$', 'decided'), order,
        'g' .. string.gsub(id, '%-0$', ''))
      redis.call('HINCRBY', KEYS[1], 'decided', new)
    end
    return 1";

impl Gate {
    /// The gate forgets whoever holds units, and no unit becomes free. `false` if he held none.
    pub async fn drop_holder(&self, voucher: VoucherId, buyer: BuyerId) -> bool {
        let keys = self.keys_of(voucher, ["sale", "holders"]).await;
        self.eval(DROP_HOLDER, &keys, &[buyer.to_string()]).await
    }

    /// The gate believes that a buyer holds an order's units, and has taken them from its free
    /// ones. `false` if there are fewer, or he holds something.
    pub async fn plant_holder(
        &self,
        voucher: VoucherId,
        buyer: BuyerId,
        order: OrderId,
        units: u32,
    ) -> bool {
        let keys = self.keys_of(voucher, ["sale", "holders"]).await;
        let held = format!("{order}:{units}");
        let arguments = [buyer.to_string(), held, units.to_string()];
        self.eval(PLANT_HOLDER, &keys, &arguments).await
    }

    /// The gate has this text for what a buyer holds, whatever it had, and has taken so many units for
    /// it.
    pub async fn write_holder(
        &self,
        voucher: VoucherId,
        buyer: BuyerId,
        text: &str,
        taken: u32,
    ) -> bool {
        let keys = self.keys_of(voucher, ["sale", "holders"]).await;
        let arguments = [buyer.to_string(), text.to_owned(), taken.to_string()];
        self.eval(WRITE_HOLDER, &keys, &arguments).await
    }

    /// The gate forgets that somebody waits. `false` if he does not.
    pub async fn drop_waiter(&self, voucher: VoucherId, buyer: BuyerId) -> bool {
        let keys = self.keys_of(voucher, ["sale", "waiters"]).await;
        self.eval(DROP_WAITER, &keys, &[buyer.to_string()]).await
    }

    /// The gate believes that a buyer waits for a unit since this turn, which is far from any other.
    /// `false` if he waits.
    pub async fn plant_waiter(
        &self,
        voucher: VoucherId,
        turn: u64,
        buyer: BuyerId,
        order: OrderId,
    ) -> bool {
        let keys = self.keys_of(voucher, ["sale", "waiters", "seats"]).await;
        let arguments = [turn, buyer.get(), order.get()].map(|it| it.to_string());
        self.eval(PLANT_WAITER, &keys, &arguments).await
    }

    /// The gate has somebody in the line who waits for nothing: at the turn of another one, if that
    /// one waits, or as the last. `false` if he waits.
    pub async fn plant_ghost(&self, voucher: VoucherId, ghost: BuyerId, beside: BuyerId) -> bool {
        let keys = self.keys_of(voucher, ["sale", "waiters"]).await;
        let arguments = [ghost, beside].map(|it| it.to_string());
        self.eval(PLANT_GHOST, &keys, &arguments).await
    }

    /// The gate believes that each of two who wait for a unit came when the other did. `false` if
    /// one does not wait.
    pub async fn swap_waiters(&self, voucher: VoucherId, buyers: [BuyerId; 2]) -> bool {
        let keys = self.keys_of(voucher, ["sale", "waiters", "seats"]).await;
        let arguments = buyers.map(|buyer| buyer.to_string());
        self.eval(SWAP_WAITERS, &keys, &arguments).await
    }

    /// The gate believes that so many more units are free. `false` if there would be fewer than
    /// none.
    pub async fn shift_free(&self, voucher: VoucherId, by: i32) -> bool {
        let keys = self.keys_of(voucher, ["sale"]).await;
        self.eval(SHIFT_FREE, &keys, &[by.to_string()]).await
    }

    /// A partition writes a decision down, with the next number, that no sale took part in. The
    /// words are those of the stream's format.
    pub async fn decide(&self, partition: PartitionId, decision: &str) {
        let keys = self.keys_to_decide(partition).await;
        assert!(self.eval(DECIDE, &keys, &[decision.to_owned()]).await);
    }

    /// The gate grants a unit, as it does, of an order id that it did not draw.
    pub async fn grant(
        &self,
        partition: PartitionId,
        voucher: VoucherId,
        buyer: BuyerId,
        order: OrderId,
    ) {
        let mut keys = self.keys_to_decide(partition).await;
        keys.extend(self.keys_of(voucher, ["sale", "holders"]).await);
        let decision = format!("granted {voucher} {order} {buyer} 1 -");
        let arguments = [decision, buyer.to_string(), order.to_string()];
        assert!(self.eval(DECIDE, &keys, &arguments).await);
    }

    async fn keys_to_decide(&self, partition: PartitionId) -> Vec<String> {
        let stem = format!("{{{}}}", self.name(&format!("p{partition}")));
        let meta = format!("{stem}:meta");
        let epoch: String = self.run(redis::cmd("HGET").arg(&meta).arg("epoch")).await;
        vec![meta, format!("{stem}:stream:{epoch}")]
    }

    /// The entry that names this order is deleted from its stream. `false` if there is none.
    pub async fn remove_entry(&self, order: OrderId) -> bool {
        type Entry = (String, Vec<String>);
        let word = format!(" {order} ");
        for stream in self.keys_of_type("stream").await {
            let mut range = redis::cmd("XREVRANGE");
            let entries: Vec<Entry> = self.run(range.arg(&stream).arg("+").arg("-")).await;
            let named = |(_, fields): &Entry| fields.iter().any(|field| field.contains(&word));
            if let Some((id, _)) = entries.into_iter().find(named) {
                let removed: i64 = self.run(redis::cmd("XDEL").arg(&stream).arg(&id)).await;
                return removed == 1;
            }
        }
        false
    }

    /// A consumer that is going to do nothing with them is given what nobody was given yet. Returns
    /// how many entries.
    pub async fn hang(&self, consumer: &str) -> usize {
        let mut taken = 0;
        for stream in self.keys_of_type("stream").await {
            for group in self.groups(&stream).await {
                let mut read = redis::cmd("XREADGROUP");
                read.arg("GROUP").arg(&group.name).arg(consumer);
                read.arg("COUNT")
                    .arg(100)
                    .arg("STREAMS")
                    .arg(&stream)
                    .arg(">");
                let reply: redis::Value = self.run(&read).await;
                taken += entries_in(&reply);
            }
        }
        taken
    }

    /// The delay queue believes that these orders are due, whoever has claimed them.
    pub async fn hurry_delays(&self, orders: &[OrderId]) {
        for order in orders {
            let mut hurry = redis::cmd("ZADD");
            hurry
                .arg(self.name("delays"))
                .arg("XX")
                .arg(1)
                .arg(order.to_string());
            self.run::<i64>(&hurry).await;
        }
    }

    /// The names of some of a voucher's keys.
    pub async fn keys_of<const N: usize>(
        &self,
        voucher: VoucherId,
        pieces: [&str; N],
    ) -> [String; N] {
        let mark = format!(":v{voucher}:sale");
        let keys = self.keys().await;
        let sale = keys.keys().find(|name| name.ends_with(&mark));
        let sale = sale.unwrap_or_else(|| panic!("voucher {voucher} is not at the gate"));
        let stem = sale.strip_suffix("sale").expect("its end");
        pieces.map(|piece| format!("{stem}{piece}"))
    }

    async fn eval(&self, script: &str, keys: &[String], arguments: &[String]) -> bool {
        let script = Script::new(script);
        let mut call = script.prepare_invoke();
        for key in keys {
            call.key(key);
        }
        for argument in arguments {
            call.arg(argument);
        }
        let mut connection = self.connection();
        let answer: i64 = call
            .invoke_async(&mut connection)
            .await
            .unwrap_or_else(|error| panic!("{error}"));
        answer == 1
    }
}

/// Entries of a reply of XREADGROUP: `[[stream, [entry...]]]`, or nil.
fn entries_in(reply: &redis::Value) -> usize {
    let redis::Value::Array(streams) = reply else {
        return 0;
    };
    let entries = streams.iter().map(|stream| match stream {
        redis::Value::Array(pair) => match pair.last() {
            Some(redis::Value::Array(entries)) => entries.len(),
            _ => 0,
        },
        _ => 0,
    });
    entries.sum()
}
