-- Whatever was published before loads were counted has been loaded.
INSERT INTO gate_loads (voucher_id, loads, told)
SELECT v.id, 1, 1 FROM vouchers v WHERE v.status <> 'draft'
ON DUPLICATE KEY UPDATE gate_loads.loads = gate_loads.loads;
