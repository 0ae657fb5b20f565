"""Writes `docs/columns.md`, what the columns of rows mean: ``python -m tools.column_reference`` or ``make docs``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from offsets_log.checking.findings import CHECK_COLUMNS
from offsets_log.cleaner.result import CLEAN_COLUMNS
from offsets_log.data_directory.card import CARD_COLUMNS
from offsets_log.data_directory.lag import GROUP_LAG_COLUMNS, LAG_COLUMNS
from offsets_log.data_directory.open_transactions import TRANSACTION_COLUMNS
from offsets_log.data_directory.share_history import SHARE_HISTORY_COLUMNS
from offsets_log.data_directory.share_offsets import SHARE_OFFSET_COLUMNS
from offsets_log.data_directory.transactions import OUTCOME_COLUMNS
from offsets_log.investigate.diff import DIFF_COLUMNS, WHY_COLUMNS
from offsets_log.investigate.groups import GROUPS_COLUMNS
from offsets_log.investigate.history_rows import HISTORY_COLUMNS
from offsets_log.investigate.where import KEY_COLUMNS, OF_COLUMNS, WHERE_COLUMNS
from offsets_log.investigate.writers import COUNT_COLUMNS, WRITER_COLUMNS
from offsets_log.pulling.facts import PULL_COLUMNS
from offsets_log.rebalance.rows import ASSIGN_COLUMNS, REBALANCE_COLUMNS, ROUND_COLUMNS, VERIFIED_COLUMNS, VOTE_COLUMNS
from offsets_log.repairing.result import REPAIR_COLUMNS
from offsets_log.restore.changes import RESTORE_COLUMNS
from offsets_log.rows.expiry import EXPIRY_COLUMNS
from offsets_log.rows.groups import EXPANDED_COLUMNS, GROUP_COLUMNS, MEMBER_COLUMNS, MEMBER_KIND_COLUMNS, MEMBERS_COUNT
from offsets_log.rows.survey import INFO_COLUMNS
from offsets_log.rows.tables import COMPACT_COLUMNS, DECODE_COLUMNS, PENDING_COLUMNS, Column
from offsets_log.translation.translated_plan import TRANSLATION_COLUMNS

PAGE = Path(__file__).parent.parent / "docs" / "columns.md"
PREFACE = """\
# Columns

What the columns of rows mean, in their order. Types are those of SQL. Times are milliseconds since 1970. If a name is
not UTF-8, one more column, named like its column with `_base64` at the end, has its bytes. `make docs` writes this
page.
"""
CLEAN_IN_JSON = (
    Column("log_start_offset", "bigint", "the first offset that clients may read"),
    Column("log_end_offset", "bigint", "where the log ends"),
)
TABLES: dict[str, Iterable[Column]] = {
    "compact": COMPACT_COLUMNS,
    "compact --lag, rebuild --lag": LAG_COLUMNS,
    "compact --table share-offsets": SHARE_OFFSET_COLUMNS,
    "rebuild --table groups": (*GROUP_COLUMNS, MEMBERS_COUNT),
    "rebuild --table members": (*MEMBER_COLUMNS, *MEMBER_KIND_COLUMNS),
    "rebuild --table members --expand": EXPANDED_COLUMNS,
    "rebuild --table pending": PENDING_COLUMNS,
    "rebuild --table pending, with __transaction_state": OUTCOME_COLUMNS,
    "decode": DECODE_COLUMNS,
    "groups": GROUPS_COLUMNS,
    "groups --lag": GROUP_LAG_COLUMNS,
    "transactions": TRANSACTION_COLUMNS,
    "where": WHERE_COLUMNS,
    "where --of": OF_COLUMNS,
    "where --key": KEY_COLUMNS,
    "history": HISTORY_COLUMNS,
    "history --table share-offsets": SHARE_HISTORY_COLUMNS,
    "diff": DIFF_COLUMNS,
    "diff --why": WHY_COLUMNS,
    "top": COUNT_COLUMNS,
    **{f"top --per {per}": columns for per, columns in WRITER_COLUMNS.items()},
    "rebalances": REBALANCE_COLUMNS,
    "rebalances --verify": VERIFIED_COLUMNS,
    "assign": ASSIGN_COLUMNS,
    "assign --rounds": ROUND_COLUMNS,
    "vote": VOTE_COLUMNS,
    "check": CHECK_COLUMNS,
    "expire": EXPIRY_COLUMNS,
    "clean": CLEAN_COLUMNS,
    "clean, in JSON": CLEAN_IN_JSON,
    "repair": REPAIR_COLUMNS,
    "translation.jsonl of translate": TRANSLATION_COLUMNS,
    "restore": RESTORE_COLUMNS,
    "info": INFO_COLUMNS,
    "info --card": CARD_COLUMNS,
    "pull": PULL_COLUMNS,
}
"""Command, or what it adds with an option → columns."""


def reference() -> str:
    """The whole page."""
    return PREFACE + "".join(f"\n## {title}\n\n{_table(columns)}" for title, columns in TABLES.items())


def _table(columns: Iterable[Column]) -> str:
    rows = (f"| `{column.name}` | `{column.sql_type}` | {column.doc} |\n" for column in columns)
    return "| column | type | |\n|---|---|---|\n" + "".join(rows)


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
