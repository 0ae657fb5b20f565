-- Groups that exist by the modern rules, and of what type: what its newest record of the group itself says, or else a
-- commit behind the record that removed it, even one that is pending (J-6, J-15).
with told as (
  select offsets_partition, "group" as g, max(n) as n, arg_max(is_tombstone, n) as is_removed,
    lower(regexp_extract(arg_max(name, n), '^(Consumer|Share|Streams)?GroupMetadata$', 1)) as kind
  from records where regexp_matches(name, '^(Consumer|Share|Streams)?GroupMetadata$') and error is null group by all
),
offsets as (select offsets_partition, g, max(n) as n from commits group by all)
select offsets_partition, g, if(is_removed or kind is null or kind = '', 'classic', kind)
from told full join offsets using (offsets_partition, g)
where not coalesce(is_removed, true) or offsets.n > coalesce(told.n, -1)
