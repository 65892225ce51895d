"""Rows of an array as compiled kernels take them: a pointer and a length.

numba's own array rows count references on every use, which costs five times the arithmetic of a
distance.
A row made here must not outlive its array, which it cannot in a loop over the array.
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba.core import cgutils
from numba.core import types as numba_types
from numba.extending import intrinsic, models, overload, register_model

Row = Any  # a row of floats in compiled code
types: Any = numba_types  # its type stubs are incomplete


class RowType(numba_types.Type):
    """The type of a row of contiguous floats."""


ROW = RowType("gosta.Row")


@register_model(RowType)
class _RowModel(models.StructModel):
    def __init__(self, manager: Any, of: Any) -> None:
        super().__init__(
            manager, of, [("data", types.CPointer(types.float64)), ("size", types.intp)]
        )


@intrinsic
def row(context: Any, array: Any, i: Any) -> Any:  # noqa: ARG001
    """Return row i of an array of floats in C order."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        made = cgutils.create_struct_proxy(ROW)(context, builder)
        made.data, made.size = _place(context, builder, signature, args)
        return made._getvalue()

    return ROW(array, types.intp), generate


@intrinsic
def part(context: Any, array: Any, i: Any, start: Any, size: Any) -> Any:  # noqa: ARG001
    """Return a slice of row i of an array of floats in C order."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        made = cgutils.create_struct_proxy(ROW)(context, builder)
        made.data, made.size = _place(context, builder, signature, args)[0], args[3]
        return made._getvalue()

    return ROW(array, types.intp, types.intp, types.intp), generate


@intrinsic
def prefetch(context: Any, array: Any, i: Any, c: Any) -> Any:  # noqa: ARG001
    """Prefetch the memory around array[i, c], which will be written soon."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [place, flag, flag, flag])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        at = builder.bitcast(_place(context, builder, signature, args)[0], place)
        builder.call(function, [at, flag(1), flag(3), flag(1)])
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp), generate


def _place(context: Any, builder: Any, signature: Any, args: Any) -> tuple[Any, Any]:
    """Return a pointer to array[i], or array[i, c] with an argument c, and the array's width."""
    array = context.make_array(signature.args[0])(context, builder, args[0])
    width = builder.extract_value(array.shape, 1)
    begin = builder.mul(args[1], width)
    return builder.gep(array.data, [builder.add(begin, args[2]) if len(args) > 2 else begin]), width


@intrinsic
def store(context: Any, row: Any, c: Any, value: Any) -> Any:  # noqa: ARG001
    """Set number c of a row, without a bounds check."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        made = cgutils.create_struct_proxy(ROW)(context, builder, value=args[0])
        builder.store(args[2], builder.gep(made.data, [args[1]]))
        return context.get_dummy_value()

    return types.void(row, types.intp, types.float64), generate


@intrinsic
def load(context: Any, row: Any, c: Any) -> Any:  # noqa: ARG001
    """Return number c of a row, without a bounds check."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        made = cgutils.create_struct_proxy(ROW)(context, builder, value=args[0])
        return builder.load(builder.gep(made.data, [args[1]]))

    return types.float64(row, types.intp), generate


@intrinsic
def load_bits(context: Any, row: Any, c: Any) -> Any:  # noqa: ARG001
    """Return the bits of number c of a row as a whole number."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        return builder.load(_integers(context, builder, args, 64))

    return types.int64(row, types.intp), generate


@intrinsic
def store_bits(context: Any, row: Any, c: Any, value: Any) -> Any:  # noqa: ARG001
    """Set the bits of number c of a row, without a bounds check."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        builder.store(args[2], _integers(context, builder, args, 64))
        return context.get_dummy_value()

    return types.void(row, types.intp, types.int64), generate


@intrinsic
def _size(context: Any, row: Any) -> Any:  # noqa: ARG001
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        return cgutils.create_struct_proxy(ROW)(context, builder, value=args[0]).size

    return types.intp(row), generate


@intrinsic
def cut(context: Any, row: Any, start: Any, size: Any) -> Any:  # noqa: ARG001
    """Return a slice of a row, without a bounds check."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        made = cgutils.create_struct_proxy(ROW)(context, builder, value=args[0])
        made.data, made.size = builder.gep(made.data, [args[1]]), args[2]
        return made._getvalue()

    return ROW(row, types.intp, types.intp), generate


@intrinsic
def store_short(context: Any, row: Any, c: Any, k: Any, value: Any) -> Any:  # noqa: ARG001
    """Set whole number k of a row from column c on; two of them take the room of one float."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        builder.store(args[3], builder.gep(_integers(context, builder, args, 32), [args[2]]))
        return context.get_dummy_value()

    return types.void(row, types.intp, types.intp, types.int32), generate


@intrinsic
def is_among(context: Any, value: Any, row: Any, c: Any, size: Any) -> Any:  # noqa: ARG001
    """Return whether a whole number is among `size`, a constant, in a row from column c on."""
    if not isinstance(size, types.IntegerLiteral):
        return None

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        short = ir.IntType(32)
        vector = ir.VectorType(short, size.literal_value)
        numbers = builder.load(
            builder.bitcast(_integers(context, builder, args[1:], 32), vector.as_pointer())
        )
        numbers.align = 4
        first = builder.insert_element(ir.Constant(vector, ir.Undefined), args[0], short(0))
        copies = builder.shuffle_vector(first, first, ir.Constant(vector, None))
        mask = ir.IntType(vector.count)
        equal = builder.bitcast(builder.icmp_signed("==", numbers, copies), mask)
        return builder.icmp_unsigned("!=", equal, mask(0))

    return types.boolean(types.int32, row, types.intp, size), generate


def _integers(context: Any, builder: Any, args: Any, bits: int) -> Any:
    """Return a pointer to column c of a row, given both, as to whole numbers of so many bits."""
    made = cgutils.create_struct_proxy(ROW)(context, builder, value=args[0])
    return builder.bitcast(builder.gep(made.data, [args[1]]), ir.IntType(bits).as_pointer())


@intrinsic
def choose(context: Any, condition: Any, one: Any, other: Any) -> Any:  # noqa: ARG001
    """Return one of two numbers without a branch, which is slow where it cannot be predicted."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        return builder.select(*args)

    kind = types.unliteral(other)
    return kind(types.boolean, kind, kind), generate


@overload(operator.getitem)
def _getitem(row, c):  # numba compares signatures, annotations and all
    if not isinstance(row, RowType):
        return None
    if isinstance(c, types.SliceType):
        return None if c.has_step else _slice
    return _checked if isinstance(c, types.Integer) else None


def _slice(row, c):
    size, start, stop = _size(row), c.start, c.stop
    if start < 0:
        start = max(start + size, 0)
    if stop < 0:
        stop += size
    stop = min(stop, size)
    return cut(row, start, max(stop - start, 0))


def _checked(row, c):
    size = _size(row)
    if c < 0:
        c += size
    if c < 0 or c >= size:
        raise IndexError("an observation has fewer numbers")
    return load(row, c)


@overload(len)
def _len(row):
    return (lambda row: _size(row)) if isinstance(row, RowType) else None
