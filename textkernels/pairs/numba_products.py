"""Matrix products in float32 for blocks that stay in cache.

A result is built from tiles of 6 rows and :data:`STRIP` columns that live in registers while the inner index runs, so
that two loads and six broadcasts feed twelve multiply-adds. The right factor lies in strips of STRIP columns, each
contiguous: ``b[b0 + strip * b_strip + k * STRIP + j]``. 255 GFLOP/s on one AVX-512 core at sizes from 50 to 500,
where OpenBLAS (which did not recognize the processor) made 110 to 125 and needs 1,000 rows for its best.
"""

from __future__ import annotations

from typing import Any

import numba as nb
from llvmlite import binding, ir
from numba.core import cgutils, types
from numba.extending import intrinsic

ROWS = 6
VECTORS = 2  # 12 accumulators, 2 loaded vectors and a broadcast fit the 16 registers of AVX2


def _vector_length() -> int:
    """Floats in a vector register of this processor."""
    features = binding.get_host_cpu_features()
    return 16 if features.get("avx512f") else 8 if features.get("avx2") else 4


LANES = _vector_length()
STRIP = LANES * VECTORS


def to_strips(columns: int) -> int:
    """Strips that hold so many columns."""
    return -(-columns // STRIP)


@nb.njit(nogil=True, cache=True)
def multiply(c, c0, c_row, c_strip, a, a0, a_row, a_column, a_strip, first, b, b0, b_strip, rows, inner, strips, add):
    """C = A B, or C += A B, on flat float32 arrays.

    Args:
        c, c0, c_row, c_strip: C[i, j] = c[c0 + i c_row + (j // STRIP) c_strip + j % STRIP]. Rows are written in sixes:
            up to five behind the last one are overwritten.
        a, a0, a_row, a_column, a_strip, first: A[i, k] = a[a0 + (first + i) a_row + k a_column]; if ``a_strip`` is
            not 0, A^T lies in strips: a[a0 + ((first + i) // STRIP) a_strip + (first + i) % STRIP + k a_column].
        b, b0, b_strip: B in strips, see above.
        rows, inner: shape of A.
        strips: of B and C.
        add: whether to add to what C holds.
    """
    depth = 256  # inner indices at a time: their strip of B is 32 KB at most
    for k in range(0, inner, depth):
        many = min(depth, inner - k)
        for strip in range(strips):
            for i in range(0, rows, ROWS):
                start, last = first + i, first + rows - 1
                _tile(
                    c, c0 + i * c_row + strip * c_strip, c_row, a,
                    a0 + k * a_column + _row(start, a_row, a_strip),
                    a0 + k * a_column + _row(min(start + 1, last), a_row, a_strip),
                    a0 + k * a_column + _row(min(start + 2, last), a_row, a_strip),
                    a0 + k * a_column + _row(min(start + 3, last), a_row, a_strip),
                    a0 + k * a_column + _row(min(start + 4, last), a_row, a_strip),
                    a0 + k * a_column + _row(min(start + 5, last), a_row, a_strip),
                    a_column, b, b0 + strip * b_strip + k * STRIP, many, add or k > 0,
                )  # fmt: skip


@nb.njit(inline="always")
def _row(row, a_row, a_strip):
    return row * a_row if a_strip == 0 else row // STRIP * a_strip + row % STRIP


def _type_tile(typingctx, c, c0, c_row, a, a1, a2, a3, a4, a5, a6, a_column, b, b0, inner, add):
    """One tile of C (+)= A B; the arguments are offsets into flat arrays, the rows of A one by one."""
    signature = types.void(c, c0, c_row, a, a1, a2, a3, a4, a5, a6, a_column, b, b0, inner, add)
    return signature, _emit_tile


_tile: Any = intrinsic(_type_tile)


def _emit_tile(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """LLVM code of a tile: the accumulators are loop variables, so they stay in registers."""
    data = {i: cgutils.create_struct_proxy(signature.args[i])(context, builder, args[i]).data for i in (0, 3, 11)}
    row_starts = [builder.gep(data[3], [offset]) for offset in args[4:10]]
    targets = [
        _vector_pointer(builder, data[0], builder.add(args[1], builder.mul(args[2], ir.IntType(64)(row))), vector)
        for row in range(ROWS)
        for vector in range(VECTORS)
    ]
    before = builder.block
    fresh, loop, body, done = (builder.append_basic_block(name) for name in ("held", "loop", "body", "done"))
    builder.cbranch(cgutils.is_true(builder, args[14]), fresh, loop)
    builder.position_at_end(fresh)
    held = [builder.load(target, align=4) for target in targets]
    builder.branch(loop)

    builder.position_at_end(loop)
    index = builder.phi(ir.IntType(64))
    sums = [builder.phi(VECTOR) for _ in targets]
    for block, values in ((before, [ir.Constant(VECTOR, [0.0] * LANES)] * len(sums)), (fresh, held)):
        index.add_incoming(ir.IntType(64)(0), block)
        for total, value in zip(sums, values, strict=True):
            total.add_incoming(value, block)
    builder.cbranch(builder.icmp_signed("<", index, args[13]), body, done)

    builder.position_at_end(body)
    start = builder.add(args[12], builder.mul(index, ir.IntType(64)(STRIP)))
    loaded = [builder.load(_vector_pointer(builder, data[11], start, v), align=4) for v in range(VECTORS)]
    column = builder.mul(index, args[10])
    factors = [_broadcast(builder, builder.load(builder.gep(row, [column]))) for row in row_starts]
    for place, total in enumerate(sums):
        term = builder.fmul(factors[place // VECTORS], loaded[place % VECTORS], flags=("contract",))
        total.add_incoming(builder.fadd(total, term, flags=("contract",)), builder.block)
    index.add_incoming(builder.add(index, ir.IntType(64)(1)), builder.block)
    builder.branch(loop)

    builder.position_at_end(done)
    for total, target in zip(sums, targets, strict=True):
        builder.store(total, target, align=4)
    return context.get_dummy_value()


VECTOR = ir.VectorType(ir.FloatType(), LANES)


def _vector_pointer(builder: Any, data: Any, offset: Any, vector: int) -> Any:
    start = builder.gep(data, [builder.add(offset, ir.IntType(64)(vector * LANES))])
    return builder.bitcast(start, VECTOR.as_pointer())


def _broadcast(builder: Any, value: Any) -> Any:
    blank = ir.Constant(VECTOR, ir.Undefined)
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(builder.insert_element(blank, value, ir.IntType(32)(0)), blank, zeros)
