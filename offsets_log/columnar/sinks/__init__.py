"""Rows as lines of text, of every format: one kernel, and templates cut from lines that the format itself makes.

templates  `marks` values that stand for others, `letters` how texts stand in lines, `kinds` of records
kernels    `kernels` lines of columns, `json_kernels` and `json_programs` raw keys and values, `writers` numbers, texts
text       `text` rows as pieces of text, `known` embedded bytes, `forms` the formats; `lines` all records of logs
"""
