-- As the modern replay, but a plain tombstone ends what was applied before it, and one in a transaction only what its
-- own producer has pending (L-13, L-18, L-19).
with plain as (
  select offsets_partition, g, topic, partition, max(n) as n from tombstones where not in_transaction group by all
),
live as (
  select t.* from taken t left join plain e using (offsets_partition, g, topic, partition)
  where t.applied > coalesce(e.n, -1) and not (t.in_transaction and exists (
    from tombstones o where o.in_transaction and o.producer_id = t.producer_id and o.g = t.g and o.topic = t.topic
      and o.partition = t.partition and o.offsets_partition = t.offsets_partition and o.n between t.n and t.applied
  ))
)
select offsets_partition, g, topic, partition, arg_max(record_offset, n) as record_offset,
  arg_max(committed_offset, n) as committed_offset, max(n) as n
from live group by all
