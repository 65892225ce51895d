"""Sizes that a graph cannot have, with advice in terms of the argument that the user gave."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from gosta.errors import InputError


class SizeError(InputError):
    """A graph does not exist with so many nodes; `sizes` are the nearest numbers of nodes with which it does."""

    sizes: tuple[int, ...] = ()
    problem = ""

    @classmethod
    def of(cls, problem: str, sizes: Sequence[int], argument: str = "n") -> SizeError:
        """Return the error with advice on an argument, or on the "rows" of data, in Python and on the command line."""
        advice = "take another graph, such as complete"
        if sizes:
            near = (
                f"the nearest sizes are {' and '.join(map(str, sizes))}: " if len(sizes) > 1 else ""
            )
            way_out = f"{argument}={sizes[0]} (--{argument} {sizes[0]})"
            if argument == "rows":
                way_out = (
                    f"the first {sizes[0]} rows (--n {sizes[0]}; in Python data.head({sizes[0]}))"
                )
            advice = f"{near}take {way_out}, or another graph"
        error = cls(f"{problem}; {advice}")
        error.problem, error.sizes = problem, tuple(sizes)
        return error


@contextlib.contextmanager
def sizes_from(argument: str, most: int | None = None) -> Iterator[None]:
    """Within a block, give advice on sizes in terms of an argument, up to a number of nodes that is possible."""
    try:
        yield
    except SizeError as error:
        sizes = [size for size in error.sizes if most is None or size <= most]
        raise SizeError.of(error.problem, sizes, argument) from None
