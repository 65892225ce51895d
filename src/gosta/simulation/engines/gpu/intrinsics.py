"""What compiled code for a GPU needs besides `gosta.runtime.observation`.

A number of a row that is not there is not a number, where compiled code for the CPU raises an
error: a thread that left would leave its exchange undone.
"""

from __future__ import annotations

import math
import operator
from typing import Any

from llvmlite import ir
from numba import cuda, types
from numba.core import cgutils
from numba.cuda.extending import intrinsic, overload
from numba.cuda.np import arrayobj

from gosta.runtime.observation import ROW, RowType, _size, load

ALL_LANES = 0xFFFFFFFF  # of a warp


@overload(operator.getitem, target="cuda")
def _getitem(row, c):  # numba compares signatures, annotations and all
    return _number if isinstance(row, RowType) and isinstance(c, types.Integer) else None


def _number(row, c):
    size = _size(row)
    if c < 0:
        c += size
    if c < 0 or c >= size:
        return math.nan
    return load(row, c)


def _view(numba_type: Any, item_bytes: int) -> Any:
    """Return an intrinsic that makes a table out of a part of shared memory."""

    @intrinsic
    def table(context: Any, shared: Any, start: Any, rows: Any, width: Any) -> Any:  # noqa: ARG001
        made = types.Array(numba_type, 2, "C")

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            flat = context.make_array(signature.args[0])(context, builder, args[0])
            array = context.make_array(made)(context, builder)
            size = context.get_constant(types.intp, item_bytes)
            arrayobj.populate_array(
                array,
                data=builder.bitcast(builder.gep(flat.data, [args[1]]), array.data.type),
                shape=(args[2], args[3]),
                strides=(builder.mul(args[3], size), size),
                itemsize=size,
                meminfo=None,
            )
            return array._getvalue()

        return made(shared, types.intp, types.intp, types.intp), generate

    return table


floats_at = _view(types.float64, 8)  # shared, number of the first float, rows, width
integers_at = _view(types.int32, 4)  # likewise
shorts_at = _view(types.uint16, 2)


@intrinsic
def is_among(context: Any, value: Any, row: Any, c: Any, size: Any) -> Any:  # noqa: ARG001
    """Do what `observation.is_among` does, one number at a time.

    A GPU would keep a vector in local memory, which is slow.
    """
    if not isinstance(size, types.IntegerLiteral):
        return None

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        short = ir.IntType(32)
        made = cgutils.create_struct_proxy(ROW)(context, builder, value=args[1])
        numbers = builder.bitcast(builder.gep(made.data, [args[2]]), short.as_pointer())
        is_found = ir.IntType(1)(0)
        for k in range(size.literal_value):
            number = builder.load(builder.gep(numbers, [short(k)]))
            is_found = builder.or_(is_found, builder.icmp_signed("==", number, args[0]))
        return is_found

    return types.boolean(types.int32, row, types.intp, size), generate


@cuda.jit(device=True)
def take(counter, is_taking):
    """Return the numbers of a counter from its value on, one for each thread that takes.

    All threads of a warp call this.
    """
    takers = cuda.ballot_sync(ALL_LANES, is_taking)
    lane, first = cuda.laneid, cuda.ffs(takers) - 1
    start = 0
    if lane == first:
        start = cuda.atomic.add(counter, 0, cuda.popc(takers))
    return cuda.shfl_sync(ALL_LANES, start, first) + cuda.popc(takers & ((1 << lane) - 1))
