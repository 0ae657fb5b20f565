-- Of a key's values that are plain or whose producer's next marker commits, the last in the log, if it is behind the
-- key's last tombstone (J-7, J-11, J-12).
with taken as (
  select c.* from commits c asof left join markers m
    on c.offsets_partition = m.offsets_partition and c.producer_id = m.producer_id and c.n < m.n
  where not in_transaction or m.commits
),
ends as (select offsets_partition, g, topic, partition, max(n) as n from tombstones group by all)
select t.offsets_partition, g, topic, partition, arg_max(record_offset, t.n) as record_offset,
  arg_max(committed_offset, t.n) as committed_offset, max(t.n) as n
from taken t left join ends e using (offsets_partition, g, topic, partition)
where t.n > coalesce(e.n, -1)
group by all
