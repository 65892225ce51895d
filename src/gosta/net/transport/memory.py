"""A transport in memory, for tests and simulations: no sockets, and the loop says what time it is."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial

from gosta.net.transport.base import Ear, Loop


class Switch:
    """Joins ends by their names; what one says the other hears after a delay, in order."""

    def __init__(self, loop: Loop, delay: float = 0.0) -> None:
        self.loop = loop
        self.delay = delay
        self.ends: dict[str, End] = {}

    def attach(self, name: str, ear: Ear) -> End:
        """A new end, which others can call by its name."""
        self.ends[name] = End(self, name, ear)
        return self.ends[name]

    def detach(self, name: str) -> None:
        """Take an end away, as a crash does: it hears no more, and what it said last is lost."""
        end = self.ends.pop(name)
        end.crashed = True
        for line in end.lines:
            line.other.cut = True
            line.other.expect(line.other.lose, "the connection broke")


class End:
    """The transport of one name."""

    def __init__(self, switch: Switch, name: str, ear: Ear) -> None:
        self.switch = switch
        self.name = name
        self.ear = ear
        self.crashed = False
        self.lines: dict[Line, None] = {}

    def dial(self, neighbour: str, address: str) -> None:  # noqa: ARG002
        """Call a neighbour; the ear will hear `opened` or `failed`."""
        self.switch.loop.call_later(self.switch.delay, self._reach, neighbour)

    def close(self) -> None:
        """Close all connections, and take no more."""
        if self._attached():
            del self.switch.ends[self.name]
        for line in list(self.lines):
            line.close()

    def _attached(self) -> bool:
        return self.switch.ends.get(self.name) is self

    def _reach(self, neighbour: str) -> None:
        other = self.switch.ends.get(neighbour)
        if not self._attached():
            return
        if other is None:
            self.ear.failed(neighbour, "nobody is there")
        elif not other.ear.knows(self.name):
            other.ear.refused("not a neighbour", repr(self.name))
            self.ear.failed(neighbour, "it hung up")
        else:
            mine, theirs = Line(self, neighbour), Line(other, self.name)
            mine.other, theirs.other = theirs, mine
            mine.expect(mine.begin)
            theirs.begin()


class Line:
    """One end of a connection: a link."""

    other: Line

    def __init__(self, end: End, neighbour: str) -> None:
        self.neighbour = neighbour
        self.cut = False  # the other end crashed
        self._end = end
        self._open = False
        self._coming: deque[Callable[[], None]] = deque()
        end.lines[self] = None

    def send(self, message: bytes) -> bool:
        """Send a message."""
        if self._open:
            self.other.expect(self.other.hear, message)
        return self._open

    def close(self) -> None:
        """Close the connection; both ears hear of it."""
        if self in self._end.lines:
            self._end.switch.loop.call_later(0.0, self._tell_closed, self._open, "closed here")
            self._forget()
            self.other.expect(self.other.lose, "closed by the other end")

    def expect(self, step: Callable[..., None], *about: str | bytes) -> None:
        """Take a step when all that is on its way has arrived."""
        self._coming.append(partial(step, *about))
        self._end.switch.loop.call_later(self._end.switch.delay, self._arrive)

    def begin(self) -> None:
        """Both ends are there."""
        if self._end.crashed or self not in self._end.lines:
            return
        if self.cut:
            self._end.ear.failed(self.neighbour, "it hung up")
            return
        self._open = True
        self._end.ear.opened(self)

    def hear(self, message: bytes) -> None:
        """A message arrives."""
        if self._open and not self.cut and not self._end.crashed:
            self._end.ear.received(self, message)

    def lose(self, why: str) -> None:
        """The other end is no more."""
        was_open = self._open
        self._forget()
        self._tell_closed(was_open, why)

    def _arrive(self) -> None:
        self._coming.popleft()()

    def _forget(self) -> None:
        self._open = False
        self._end.lines.pop(self, None)

    def _tell_closed(self, was_open: bool, why: str) -> None:
        if was_open and not self._end.crashed:
            self._end.ear.closed(self, why)
