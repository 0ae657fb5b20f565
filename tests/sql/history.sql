-- What every commit, tombstone and end of a transaction did to its key by the modern replay, in the log's order.
with own as (
  select r.*, m.n as m_n, m.record_offset as m_offset, m.timestamp_ms as m_timestamp_ms, m.commits
  from (
    select *, "group" as g from records where record_type in (0, 1) and not is_control and error is null
  ) r asof left join markers m
    on r.offsets_partition = m.offsets_partition and r.producer_id = m.producer_id and r.n < m.n
),
alive as (
  select o.*, not is_tombstone and not exists (
    from tombstones t where t.offsets_partition = o.offsets_partition and t.g = o.g and t.topic = o.topic
      and t.partition = o.partition and t.n > o.n and t.n < o.m_n
  ) as is_alive
  from own o where in_transaction and m_n is not null
),
pending as (
  select offsets_partition, g, topic, partition, m_n as n, any_value(m_offset) as record_offset,
    any_value(m_timestamp_ms) as timestamp_ms, any_value(commits) as commits,
    max({'n': n, 'record_offset': record_offset, 'committed_offset': committed_offset}) filter (is_alive) as value
  from alive group by offsets_partition, g, topic, partition, m_n
),
entries as (
  select offsets_partition, g, topic, partition, n, if(is_tombstone, 'tombstone', 'commit') as event, record_offset,
    timestamp_ms, committed_offset,
    case when not in_transaction then null when m_n is null then 'open' when commits then 'committed' else 'aborted' end
      as transaction,
    if(in_transaction or is_tombstone, null,
      {'n': n, 'record_offset': record_offset, 'committed_offset': committed_offset}) as value,
    if(is_tombstone, n, null) as ended
  from own
  union all
  select offsets_partition, g, topic, partition, n, if(commits, 'transaction_committed', 'transaction_aborted'),
    record_offset, timestamp_ms, null, if(commits, 'committed', 'aborted'), if(commits, value, null), null
  from pending
),
served as (
  select *, max(value) over so_far as best, max(ended) over so_far as last_end from entries
  window so_far as (partition by offsets_partition, g, topic, partition order by n)
)
select offsets_partition, g, topic, partition, event, record_offset, timestamp_ms, committed_offset, transaction,
  if(best.n > coalesce(last_end, -1), best.committed_offset, null),
  if(best.n > coalesce(last_end, -1), best.record_offset, null)
from served
