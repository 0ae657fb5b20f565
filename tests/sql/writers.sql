-- Who writes, by group; a commit is in vain if the one before it with the same key said the same.
with keyed as (
  select *, lag(committed_offset) over same_key as before, not is_tombstone and record_type in (0, 1) as is_commit
  from records where "group" is not null and error is null
  window same_key as (partition by offsets_partition, record_type, "group", topic, partition order by n)
),
minutes as (
  select "group", timestamp_ms // 60000 as minute, count(*) as commits
  from keyed where is_commit and timestamp_ms is not null group by all
)
select "group", count(*) as records, count(*) filter (is_commit) as commits,
  count(*) filter (is_tombstone) as tombstones, count(*) filter (is_commit and before = committed_offset) as noop_commits,
  min(timestamp_ms) as first_timestamp_ms, max(timestamp_ms) as last_timestamp_ms, any_value(busiest.commits) as peak
from keyed left join (select "group", max(commits) as commits from minutes group by all) busiest using ("group")
group by "group"
