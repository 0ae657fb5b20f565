"""The orders in which Java and Scala iterate strings and hash tables, which some of Kafka's decisions follow (``A-3``).

A table is iterated bucket by bucket, and inside a bucket in the order of insertion: ``put`` adds at a bucket's end,
``computeIfAbsent`` at its head. One order is not reproduced: that of a bucket with eight or more colliding keys in a
table of 64 or more, which Java turns into a tree.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Generic, TypeVar

from offsets_log.replay.partition_for import java_hash

Key = TypeVar("Key", bound=Hashable)
Hash = Callable[[Key], int]
UINT32 = 0xFFFFFFFF
DEFAULT_CAPACITY = 16
BITS_A_LEVEL = 5


def java_string_order(text: str) -> bytes:
    """Return a sort key for ``String.compareTo``, which compares UTF-16 code units, not code points (``A-1``)."""
    return text.encode("utf-16-be", "surrogatepass")


def spread(number: int) -> int:
    """Return a hash code as ``HashMap`` uses it."""
    unsigned = number & UINT32
    return unsigned ^ (unsigned >> 16)


def table_capacity(entries: int) -> int:
    """Return how many buckets a ``HashMap`` has that grew to this many entries; it never shrinks."""
    capacity = DEFAULT_CAPACITY
    while entries * 4 > capacity * 3:
        capacity *= 2
    return capacity


def java_hash_order(keys: Iterable[str], *, newest_first: bool = False) -> list[str]:
    """Return strings as a Java ``HashMap`` or ``HashSet`` iterates them, to which they were added in this order.

    Args:
        newest_first: whether they were added by ``computeIfAbsent``, not by ``put``.
    """
    return hash_order(keys, java_hash, newest_first=newest_first)


def hash_order(keys: Iterable[Key], hash_code: Hash[Key], *, newest_first: bool = False) -> list[Key]:
    """Return keys of any type in the order of `java_hash_order`."""
    distinct = list(dict.fromkeys(keys))
    mask = table_capacity(len(distinct)) - 1
    return sorted(reversed(distinct) if newest_first else distinct, key=lambda key: spread(hash_code(key)) & mask)


class JavaHashSet(Generic[Key]):
    """A ``HashSet`` as far as a reader of its first element needs it.

    Args:
        hash_code: gives an element's ``Object.hashCode``, or any integer with the same lowest 32 bits.
    """

    def __init__(self, hash_code: Hash[Key]) -> None:
        self._hash_code = hash_code
        self._keys: dict[Key, None] = {}
        self._capacity = DEFAULT_CAPACITY

    def __bool__(self) -> bool:
        return bool(self._keys)

    def add(self, key: Key) -> None:
        """Add a key, unless it is there."""
        self._keys.setdefault(key)
        self._capacity = max(self._capacity, table_capacity(len(self._keys)))

    def remove(self, key: Key) -> None:
        """Remove a key."""
        del self._keys[key]

    def first(self) -> Key:
        """Return the first key that an iterator gives."""
        return min(self._keys, key=lambda key: spread(self._hash_code(key)) & (self._capacity - 1))


# ----------------------------------------------------------------------------------------------- Scala 2.13


def scala_mutable_order(keys: Iterable[str]) -> list[str]:
    """Return strings as Scala's ``mutable.HashMap`` iterates them: buckets as in Java, each by hash, then insertion."""
    distinct = list(dict.fromkeys(keys))
    mask = table_capacity(len(distinct)) - 1
    return sorted(distinct, key=lambda key: (spread(java_hash(key)) & mask, _signed(spread(java_hash(key)))))


def scala_immutable_order(keys: Iterable[str]) -> list[str]:
    """Return strings as Scala's ``immutable.HashMap`` iterates them: a trie with five bits of the hash a level.

    The single keys of a node come before those of its sub-nodes (``G-3``).
    """
    return list(_walk([(_improved(java_hash(key)), key) for key in dict.fromkeys(keys)]))


def _walk(entries: list[tuple[int, str]]) -> Iterator[str]:
    """Yield each entry with the remaining bits of its hash."""
    if len({bits for bits, _ in entries}) == 1:
        yield from (key for _, key in entries)
        return
    slots: dict[int, list[tuple[int, str]]] = {}
    for bits, key in entries:
        slots.setdefault(bits & ((1 << BITS_A_LEVEL) - 1), []).append((bits >> BITS_A_LEVEL, key))
    for _, inside in sorted(slots.items(), key=lambda slot: (len(slot[1]) > 1, slot[0])):
        yield from _walk(inside)


def _improved(number: int) -> int:
    number &= UINT32
    number = (number + (~(number << 9) & UINT32)) & UINT32
    number ^= number >> 14
    number = (number + (number << 4)) & UINT32
    return number ^ (number >> 10)


def _signed(number: int) -> int:
    return number - (1 << 32) if number >> 31 else number
