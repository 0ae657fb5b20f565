"""How kernels are declared, compiled, kept between runs and shipped with a wheel.

Numbers and tables that kernels share are subclasses of `records.Record`, annotated as ``X`` or ``Table[X]``, so that
mypy knows their fields; `Table.column` is one field of all rows, `Table.copy` copies rows ten times as fast as NumPy
does. What always travels together is a `NamedTuple` and one parameter (`kinds`): machine code takes of it only what
it uses.
"""
