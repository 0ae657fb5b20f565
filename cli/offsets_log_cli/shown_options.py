"""Options for how much of a table is shown."""

from __future__ import annotations

from offsets_log_cli.help_page import OUTPUT, READING, option

WIDE = option("--wide", under=OUTPUT, is_flag=True, help="Tables with all columns, whole. Lines may be long.")
SHOWN = (
    WIDE,
    option("--columns", under=OUTPUT, metavar="A,B,...", help="Only these columns, in this order. In any format."),
    option("--no-pager", under=READING, is_flag=True, help="Show long tables on a terminal without $PAGER (less)."),
)
"""Options for what of an answer is shown; part of `output_option`."""
