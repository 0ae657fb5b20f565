"""Releases as options take them."""

from __future__ import annotations

from typing import Any

import click

from offsets_log.release_names import AskedRelease, release_asked


class Release(click.ParamType):  # type: ignore[type-arg]
    """``X.Y`` or ``X.Y.Z`` → the release."""

    name = "X.Y"
    previews = False

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> AskedRelease:
        """Return the value; fail for a release that never was."""
        try:
            return (
                value if isinstance(value, AskedRelease) else release_asked(str(value).strip(), previews=self.previews)
            )
        except ValueError as error:
            self.fail(str(error), param, ctx)


class AnyRelease(Release):
    """``X.Y``, ``X.Y.Z``, ``3.7-java`` → the release, which may be a preview."""

    previews = True


class ReleaseLine(Release):
    """``X.Y`` or ``X.Y.Z`` → (X, Y)."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value; fail for a release that never was."""
        return value if isinstance(value, tuple) else super().convert(value, param, ctx).version[:2]
