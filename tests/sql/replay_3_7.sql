-- As the modern replay, but the value that was applied last wins, and a tombstone ends what was applied before it
-- (J-11 and J-12 of 3.7).
with ends as (select offsets_partition, g, topic, partition, max(n) as n from tombstones group by all)
select t.offsets_partition, g, topic, partition, arg_max(record_offset, (applied, t.n)) as record_offset,
  arg_max(committed_offset, (applied, t.n)) as committed_offset, arg_max(t.n, (applied, t.n)) as n
from taken t left join ends e using (offsets_partition, g, topic, partition)
where t.applied > coalesce(e.n, -1)
group by all
