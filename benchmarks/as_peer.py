"""`compact` as one of the readers of somebody's comparison: segment files in, one line of JSON out.

``python -m benchmarks.as_peer SEGMENT…`` prints how many keys have an offset, the sum of the offsets, and the seconds
from the first import to the written Parquet file.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path


def main(segments: list[str]) -> None:
    """Compact into a file that is read once and left."""
    begin = time.perf_counter()
    from offsets_log_cli.main import main as offsets_log

    with tempfile.TemporaryDirectory() as folder:
        to = Path(folder) / "offsets.parquet"
        try:
            offsets_log(["compact", *segments, "-o", "parquet", "--to", str(to), "--quiet"])
        except SystemExit as end:
            if end.code:
                raise
        seconds = time.perf_counter() - begin
        import pyarrow.compute as pc
        import pyarrow.parquet as pq

        offsets = pq.read_table(to, columns=["committed_offset"])["committed_offset"]
        said = {"keys": len(offsets), "checksum": pc.sum(offsets).as_py(), "inner_seconds": seconds}
    sys.stdout.write(json.dumps(said) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
