"""64-bit digests of the states of tokens: equal states have equal digests, so that a correlation of 1 is known.

Two tokens are in one state behind a layer if all that the layer sees is the same: after a convolution, the words
under the window; after an attention, the document and the place in it.
"""

from __future__ import annotations

import numba as nb
import numpy as np

compiled = nb.njit(nogil=True, cache=True)
PRIME = np.uint64(0x9E3779B97F4A7C15)


@nb.njit(inline="always")
def _stir(x):
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@compiled
def token_digests(bits):
    """Digests of token vectors given as uint32 (L, d), uint64 (L,)."""
    result = np.empty(len(bits), np.uint64)
    for i in range(len(bits)):
        digest = PRIME
        for j in range(bits.shape[1]):
            digest = (digest ^ np.uint64(bits[i, j])) * PRIME
            digest ^= digest >> np.uint64(29)
        result[i] = _stir(digest)
    return result


@compiled
def window_digests(digests, half):
    """Digests of windows of ``half`` tokens to either side; what lies outside the document counts as 0."""
    result = np.empty_like(digests)
    for i in range(len(digests)):
        digest = PRIME
        for j in range(i - half, i + half + 1):
            digest = _stir(digest * PRIME + (digests[j] if 0 <= j < len(digests) else np.uint64(0)))
        result[i] = digest
    return result


@compiled
def pair_digests(first, second):
    """Digests of two states together."""
    result = np.empty_like(first)
    for i in range(len(first)):
        result[i] = _stir(_stir(first[i]) * PRIME + second[i])
    return result


@compiled
def document_digest(digests):
    """One digest of all tokens in order."""
    digest = np.uint64(len(digests)) + PRIME
    for i in range(len(digests)):
        digest = _stir(digest * PRIME + digests[i])
    return digest


@compiled
def placed_digests(digests, located):
    """Digests of tokens behind an attention: equal only inside one document, and at one place if ``located``."""
    whole = document_digest(digests)
    result = np.empty_like(digests)
    for i in range(len(digests)):
        place = np.uint64(i) if located else np.uint64(0)
        result[i] = _stir(_stir(whole + place) * PRIME + digests[i])
    return result


def exact_tokens(tokens: np.ndarray) -> np.ndarray:
    """Digests of token vectors (L, d), in the float32 that the engines compute with."""
    # Adding 0 turns -0 into 0, which has other bits.
    return token_digests((np.ascontiguousarray(tokens, np.float32) + np.float32(0)).view(np.uint32))


def compared(digests: np.ndarray) -> np.ndarray:
    """The half of each digest that fits a float32 loop, int32."""
    return (digests >> np.uint64(32)).astype(np.uint32).view(np.int32)
