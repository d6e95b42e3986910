"""Duplicates among problems, and training problems that the held-out set contains too."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from components.data_prep.rows import Entry

_PERMUTATIONS = 128
_MISS = 1e-3


def jaccard(left: np.ndarray, right: np.ndarray) -> float:
    """Of two sorted arrays of distinct hashes."""
    common = len(np.intersect1d(left, right, assume_unique=True))
    return common / (len(left) + len(right) - common)


def bands(threshold: float) -> tuple[int, int]:
    """Bands and rows of the LSH: as many rows as leave a pair at the threshold a chance of _MISS to be overlooked."""
    best = _PERMUTATIONS, 1
    for rows in range(1, _PERMUTATIONS // 2 + 1):  # the library wants two bands at least
        count = _PERMUTATIONS // rows
        if (1 - threshold**rows) ** count > _MISS:
            break
        best = count, rows
    return best


class Index:
    """Problems seen so far, to be asked for one that is the same.

    MinHash LSH proposes, the exact Jaccard similarity of the shingles decides: no error of the sketch, no chance.
    """

    def __init__(self, threshold: float) -> None:
        from datasketch import MinHashLSH  # brings scipy: a second that other steps need not pay

        self._lsh = MinHashLSH(num_perm=_PERMUTATIONS, params=bands(threshold))
        self._threshold = threshold
        self._entries: list[Entry] = []
        self._by_statement: dict[str, Entry] = {}
        self._by_tests: dict[str, Entry] = {}

    def add(self, entry: Entry) -> None:
        """Remember a problem."""
        self._lsh.insert(len(self._entries), _minhash(entry.shingles))
        self._entries.append(entry)
        self._by_statement.setdefault(entry.statement, entry)
        self._by_tests.setdefault(entry.tests_hash, entry)

    def same(self, entry: Entry, versions_differ: bool = False) -> tuple[str, Entry] | None:
        """How a problem is like a remembered one, and which: ("same statement", …), or None.

        Args:
            entry: the problem.
            versions_differ: let the easy and the hard version of a problem, whose statements are nearly equal, pass
                as two problems.
        """
        if found := self._by_statement.get(entry.statement):
            return "same statement", found
        if found := self._by_tests.get(entry.tests_hash):
            return "same tests", found
        best: tuple[float, int] | None = None
        for number in sorted(self._lsh.query(_minhash(entry.shingles))):
            other = self._entries[number]
            if versions_differ and entry.version and other.version and entry.version != other.version:
                continue
            similarity = jaccard(entry.shingles, other.shingles)
            if similarity >= self._threshold and (best is None or similarity > best[0]):
                best = similarity, number
        if best is None:
            return None
        return f"statement similarity {best[0]:.2f}", self._entries[best[1]]


def _minhash(shingles: np.ndarray) -> object:
    from datasketch import MinHash

    # The shingles are hashes already: the low half serves as the 32-bit value that a MinHash wants.
    sketch = MinHash(num_perm=_PERMUTATIONS, hashfunc=_low_half)
    sketch.update_batch(shingles)
    return sketch


def _low_half(value: np.uint64) -> int:
    return int(value) & 0xFFFFFFFF


def drop_contaminated(entries: Iterable[Entry], held_out: Iterable[Entry], threshold: float) -> None:
    """Drop training problems that are the same as a held-out one, kept or not."""
    index = Index(threshold)
    for entry in held_out:
        index.add(entry)
    for entry in entries:
        if (match := index.same(entry)) is not None:
            entry.drop("contaminated", f"{match[0]} as held-out {match[1].problem_id}")


def drop_duplicates(entries: Iterable[Entry], threshold: float) -> None:
    """Of the same problems keep the first; to be called on one split, in order of precedence."""
    index = Index(threshold)
    for entry in entries:
        match = index.same(entry, versions_differ=True)
        if match is None:
            index.add(entry)
        else:
            exact = match[0].startswith("same")
            entry.drop("duplicate" if exact else "near_duplicate", f"{match[0]} as {match[1].problem_id}")
