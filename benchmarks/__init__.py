"""Timings, never tests: ``make bench`` prints one table, medians of whole processes on this machine."""
