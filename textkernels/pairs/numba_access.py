"""Reading and writing flat arrays in loops that have to vectorize.

Numba counts negative indices from the end, and LLVM must assume that two arrays overlap: either keeps a loop over a
dozen rows scalar. These three functions take plain offsets, and promise something about overlap.
"""

from __future__ import annotations

from typing import Any

from numba.core import cgutils, types
from numba.extending import intrinsic


def _address(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    data = cgutils.create_struct_proxy(signature.args[0])(context, builder, args[0]).data
    return builder.gep(data, [args[1]])


def _scope(builder: Any) -> Any:
    """The scope of all reads. LLVM makes it anew wherever it inlines, so the promise ends with the function."""
    domain = builder.module.add_metadata(["rows"])
    return builder.module.add_metadata([builder.module.add_metadata(["read", domain])])


def _emit_held(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return builder.load(_address(context, builder, signature, args))


def _emit_read(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    value = _emit_held(context, builder, signature, args)
    value.set_metadata("alias.scope", _scope(builder))
    return value


def _emit_write(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    address = _address(context, builder, signature, args)
    store = builder.store(context.cast(builder, args[2], signature.args[2], signature.args[0].dtype), address)
    store.set_metadata("noalias", _scope(builder))
    return context.get_dummy_value()


def _read(typingctx: Any, x: Any, i: Any) -> Any:
    """x[i], which nothing that ``write`` writes in the same loop overlaps."""
    return x.dtype(x, i), _emit_read


def _held(typingctx: Any, x: Any, i: Any) -> Any:
    """x[i], which ``write`` may write in the same loop, at the same place or at none."""
    return x.dtype(x, i), _emit_held


def _write(typingctx: Any, x: Any, i: Any, value: Any) -> Any:
    """x[i] = value."""
    return types.void(x, i, x.dtype), _emit_write


# For compiled code: read(x, i), held(x, i), write(x, i, value).
read: Any = intrinsic(_read)
held: Any = intrinsic(_held)
write: Any = intrinsic(_write)
