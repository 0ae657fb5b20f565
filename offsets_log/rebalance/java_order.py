"""The orders in which Java and Scala walk strings and hash tables: some of Kafka's decisions depend on them (``A-3``).

A table is walked bucket by bucket, and inside a bucket in the order of insertion: ``put`` adds at a bucket's end,
``computeIfAbsent`` at its head. What is not told is the order of a bucket of eight and more colliding keys in a table
of 64 and more, which Java turns into a tree.
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
    """A sort key: ``String.compareTo``, which goes by UTF-16 code units and not by code points (``A-1``)."""
    return text.encode("utf-16-be", "surrogatepass")


def spread(number: int) -> int:
    """A hash code as ``HashMap`` uses it."""
    unsigned = number & UINT32
    return unsigned ^ (unsigned >> 16)


def table_capacity(entries: int) -> int:
    """Buckets of a ``HashMap`` that has grown to so many entries; it never shrinks again."""
    capacity = DEFAULT_CAPACITY
    while entries * 4 > capacity * 3:
        capacity *= 2
    return capacity


def java_hash_order(keys: Iterable[str], *, newest_first: bool = False) -> list[str]:
    """Strings as a Java ``HashMap`` or ``HashSet`` gives them back, which they came into one by one in this order.

    Args:
        newest_first: they came by ``computeIfAbsent``, not by ``put``.
    """
    return hash_order(keys, java_hash, newest_first=newest_first)


def hash_order(keys: Iterable[Key], hash_code: Hash[Key], *, newest_first: bool = False) -> list[Key]:
    """`java_hash_order` of anything."""
    distinct = list(dict.fromkeys(keys))
    mask = table_capacity(len(distinct)) - 1
    return sorted(reversed(distinct) if newest_first else distinct, key=lambda key: spread(hash_code(key)) & mask)


class JavaHashSet(Generic[Key]):
    """As much of a ``HashSet`` as a reader of its first element needs.

    Args:
        hash_code: of an element, ``Object.hashCode`` as any integer of the same lowest 32 bits.
    """

    def __init__(self, hash_code: Hash[Key]) -> None:
        self._hash_code = hash_code
        self._keys: dict[Key, None] = {}
        self._capacity = DEFAULT_CAPACITY

    def __bool__(self) -> bool:
        return bool(self._keys)

    def add(self, key: Key) -> None:
        """Put in, unless it is there."""
        self._keys.setdefault(key)
        self._capacity = max(self._capacity, table_capacity(len(self._keys)))

    def remove(self, key: Key) -> None:
        """Take out."""
        del self._keys[key]

    def first(self) -> Key:
        """What an iterator gives first."""
        return min(self._keys, key=lambda key: spread(self._hash_code(key)) & (self._capacity - 1))


# ----------------------------------------------------------------------------------------------- Scala 2.13


def scala_mutable_order(keys: Iterable[str]) -> list[str]:
    """Strings as Scala's ``mutable.HashMap`` gives them: buckets as in Java, inside one by hash, then as inserted."""
    distinct = list(dict.fromkeys(keys))
    mask = table_capacity(len(distinct)) - 1
    return sorted(distinct, key=lambda key: (spread(java_hash(key)) & mask, _signed(spread(java_hash(key)))))


def scala_immutable_order(keys: Iterable[str]) -> list[str]:
    """Strings as Scala's ``immutable.HashMap`` gives them: a trie, five bits of the improved hash a level.

    The single keys of a node come before those of its sub-nodes (``G-3``).
    """
    return list(_walk([(_improved(java_hash(key)), key) for key in dict.fromkeys(keys)]))


def _walk(entries: list[tuple[int, str]]) -> Iterator[str]:
    """Each entry with the bits of its hash that are left."""
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
