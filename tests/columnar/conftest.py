"""What several tests of kernels share."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from offsets_log.columnar.wire import libraries as lib


@pytest.fixture(scope="module")
def addresses() -> Iterator[np.ndarray]:
    """Where the functions of other libraries are."""
    with lib.Library() as library:
        yield library.addresses
