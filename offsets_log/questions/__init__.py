"""One module a question: what is asked of a session, and the rows that answer it.

A question knows which columns its rows have, makes rows for few and Arrow tables for many, and remarks what must be
known to trust them. It never prints and never formats. Its main type is `Question`.
"""
