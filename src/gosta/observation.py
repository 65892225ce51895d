"""A row of a table as compiled kernels see it: a place in memory and a length.

numba's own array rows count references on every use, which costs five times the arithmetic of a distance.
A row made here must not outlive the table, which in a loop over the table it cannot.
"""

from __future__ import annotations

import operator
from typing import Any

from numba.core import cgutils
from numba.core import types as numba_types
from numba.extending import intrinsic, models, overload, register_model

types: Any = numba_types  # its stubs name a part of it only


class RowType(numba_types.Type):
    """The type of a row of floats, stored one after the other."""

    def __init__(self) -> None:
        super().__init__("gosta.Row")


ROW = RowType()


@register_model(RowType)
class _RowModel(models.StructModel):
    def __init__(self, manager: Any, of: Any) -> None:
        super().__init__(manager, of, [("data", types.CPointer(types.float64)), ("size", types.intp)])


@intrinsic
def row(context: Any, table: Any, i: Any) -> Any:  # noqa: ARG001
    """Row i of a table of floats in C order."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        made = cgutils.create_struct_proxy(ROW)(context, builder)
        made.size = builder.extract_value(array.shape, 1)
        made.data = builder.gep(array.data, [builder.mul(args[1], made.size)])
        return made._getvalue()

    return ROW(table, types.intp), generate


@intrinsic
def _component(context: Any, row: Any, c: Any) -> Any:  # noqa: ARG001
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        made = cgutils.create_struct_proxy(ROW)(context, builder, value=args[0])
        return builder.load(builder.gep(made.data, [args[1]]))

    return types.float64(row, types.intp), generate


@intrinsic
def _size(context: Any, row: Any) -> Any:  # noqa: ARG001
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        return cgutils.create_struct_proxy(ROW)(context, builder, value=args[0]).size

    return types.intp(row), generate


@overload(operator.getitem)
def _getitem(row, c):  # numba compares signatures, annotations and all
    if isinstance(row, RowType) and isinstance(c, types.Integer):
        return lambda row, c: _component(row, c if c >= 0 else c + _size(row))
    return None


@overload(len)
def _len(row):
    return (lambda row: _size(row)) if isinstance(row, RowType) else None
