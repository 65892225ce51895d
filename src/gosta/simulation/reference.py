"""The oracle: a protocol in plain Python, one meeting at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gosta.datasets.data import Floats
from gosta.datasets.deal import Counts
from gosta.problem import Problem
from gosta.protocols import Protocol
from gosta.statistics.definition import as_floats

Arrays = dict[str, Any]
ALIKE: Floats = np.ones(1)  # the paces of edges that fire equally often


def offsets(sizes: Counts) -> Counts:
    """Where each of consecutive stretches begins, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(sizes)])


class Reference:
    """Nodes are lists of states, one for each number that is estimated; visitors are numbers of rows."""

    def __init__(self, problem: Problem, protocol: Protocol) -> None:
        self.problem, self.protocol = problem, protocol
        self.x = problem.x.tolist()
        self.first = offsets(problem.rows).tolist()
        self.own_means = problem.own_means.tolist()
        self.rows, self.samples = problem.rows.tolist(), problem.samples.tolist()

    def start(self) -> Arrays:
        """All nodes at the beginning: every visitor is at home."""
        problem, protocol = self.problem, self.protocol
        numbers = problem.first_states(protocol).tolist()
        return {
            "states": [[protocol.state(*one) for one in node] for node in numbers],
            "visitors": [[k] * protocol.visitors for k in range(problem.nodes)],
            "upcoming": [0] * problem.nodes,
            "missing": np.zeros((problem.nodes, problem.width)).tolist(),
            "meetings": [0.0] * problem.nodes,
            "totals": [[0.0, 0.0] for _ in numbers],
            "met": np.zeros((problem.nodes, problem.nodes, 1 + problem.width)).tolist() if self.by_home else [],
            "seen": np.zeros((problem.n, 2, problem.width)).tolist(),
        }

    def kernel(self, first: int, second: int) -> tuple[float, ...]:
        """The kernel of two rows."""
        return as_floats(self.problem.statistic.kernel(self.x[first], self.x[second], **self.problem.parts["kernel"]))

    def visit(self, arrays: Arrays, row: int, home: int) -> list[float]:
        """Means of a row × the sample that a visitor is, and what that misses of its home."""
        upcoming, rows = arrays["upcoming"][home], self.rows[home]
        sample = [self.first[home] + (upcoming + k) % rows for k in range(self.samples[home])]
        means = _means([self.kernel(row, guest) for guest in sample])
        return [mean + missing for mean, missing in zip(means, arrays["missing"][home], strict=True)]

    def over(self, arrays: Arrays, k: int) -> list[float]:
        """Means of own rows × visitor; visitor × visitor where there are two."""
        guests = arrays["visitors"][k]
        if len(guests) == 2:
            return list(self.kernel(*guests))
        return _means([self.visit(arrays, row, guests[0]) for row in self.own(k)])

    def own(self, k: int) -> range:
        """A node's own rows."""
        return range(self.first[k], self.first[k + 1])

    def advance(self, arrays: Arrays, edges: Any, start: int, paces: Floats = ALIKE) -> None:
        """Let the pairs meet, from tick start + 1 on."""
        protocol, meetings = self.protocol, arrays["meetings"]
        for t, ends in enumerate(edges.tolist()):
            now = float(start + t // protocol.draws + 1)
            i, j = ends
            for k in ends:
                meetings[k] += 1.0
            given: list[dict[str, Any]] = [{"now": now, "fewest": min(meetings[i], meetings[j])} for _ in ends]
            pace = float(paces[min(t, len(paces) - 1)])
            for side, (k, other) in enumerate(((i, j), (j, i))):
                share = self.rows[other] / (self.rows[k] + self.rows[other])
                given[side] |= {"meetings": meetings[k], "share": share, "pace": pace}
            if protocol.visitors:
                self._swap(arrays, ends, t % protocol.draws, given)
            for c in range(len(arrays["states"][0])):
                states = [arrays["states"][k][c] for k in ends]
                for side, k in enumerate(ends):
                    samples = [given[side][name] for name in protocol.samples]
                    samples = [sample[c] if isinstance(sample, list) else sample for sample in samples]
                    told = protocol.tell(states[1 - side], now)
                    arrays["states"][k][c] = protocol.meet(states[side], told, *samples)

    def _swap(self, arrays: Arrays, ends: list[int], slot: int, given: list[dict[str, Any]]) -> None:
        """Swap visitors, and evaluate the kernel before and after."""
        visitors, samples = arrays["visitors"], self.protocol.samples
        for k in ends:
            if visitors[k][slot] == k:
                self._leave(arrays, k)

        def see(name: str) -> None:
            for side, k in enumerate(ends):
                given[side][name] = self.over(arrays, k)
                if "weight" in samples or not self.by_home:
                    given[side]["weight"] = self._weight(arrays, k)

        if "held" in samples:
            see("held")
        i, j = ends
        cross = self.kernel(visitors[i][0], visitors[j][0]) if self.mixes else ()
        visitors[i][slot], visitors[j][slot] = visitors[j][slot], visitors[i][slot]
        if "fresh" in samples or "known" in samples:
            see("fresh")
        if "known" in samples:
            for side, k in enumerate(ends):
                known = self._node_known if self.problem.statistic.local is None else self._rows_known
                given[side]["known"] = known(arrays, k, given[side], cross)

    def _leave(self, arrays: Arrays, k: int) -> None:
        """The next sample of a node's rows, as its visitor is about to leave home."""
        arrays["upcoming"][k] = (arrays["upcoming"][k] + self.samples[k]) % self.rows[k]
        if self.samples[k] < self.rows[k]:
            arrays["missing"][k] = [0.0] * self.problem.width
            found = _means([self.visit(arrays, row, k) for row in self.own(k)])
            arrays["missing"][k] = [a - b for a, b in zip(self.own_means[k], found, strict=True)]

    @property
    def mixes(self) -> bool:
        """Whether visitor × visitor is mixed in."""
        return self.protocol.cross > 0 and not self.problem.tables

    def _half(self, arrays: Arrays, k: int) -> int:
        return int(arrays["meetings"][k]) // 2 % 2 if self.problem.statistic.local else 0

    def _weight(self, arrays: Arrays, k: int) -> float:
        """What a visitor weighs among those seen so far."""
        worth, totals, half = float(self.rows[arrays["visitors"][k][0]]), arrays["totals"][k], self._half(arrays, k)
        totals[half] += worth
        return worth / float(totals[half])

    def _node_known(self, arrays: Arrays, k: int, given: dict[str, Any], cross: tuple[float, ...]) -> list[float]:
        """Fold what was seen into what the node knows."""
        known: list[float] = arrays["seen"][k][0]
        if self.by_home:
            return self._home_known(arrays, k, given, known)
        for c, fresh in enumerate(given["fresh"]):
            share, sample = self.protocol.cross, fresh
            if self.mixes:
                home = arrays["visitors"][k][0] == k
                sample = cross[c] if home else (1 - share) * fresh + share * cross[c]
            known[c] += given["weight"] * (sample - known[c])
        return known

    @property
    def by_home(self) -> bool:
        """Whether nodes keep what came from each home apart."""
        return self.problem.sizes is not None and self.problem.statistic.local is None

    def _home_known(self, arrays: Arrays, k: int, given: dict[str, Any], known: list[float]) -> list[float]:
        """The mean over homes of visitors, by their rows, of what came from each."""
        home = arrays["visitors"][k][0]
        met, totals, worth = arrays["met"][k][home], arrays["totals"][k], float(self.rows[home])
        met[0] += 1.0
        if met[0] == 1.0:
            totals[0] += worth
        for c, fresh in enumerate(given["fresh"]):
            step = fresh - (met[c + 1] if met[0] > 1.0 else known[c])
            known[c] += worth / totals[0] * step / met[0]
            met[c + 1] += (fresh - met[c + 1]) / met[0]
        return known

    def _rows_known(self, arrays: Arrays, k: int, given: dict[str, Any], _: tuple[float, ...]) -> list[float]:
        """Fold what was seen into what is known of each row."""
        local, half, (first, second) = self.problem.statistic.local, self._half(arrays, k), arrays["totals"][k]
        assert local is not None
        scale, shift = self.problem.row_scale
        share = second / (first + second)
        found = []
        for row in self.own(k):
            halves = arrays["seen"][row]
            for c, h in enumerate(self.visit(arrays, row, arrays["visitors"][k][0])):
                halves[half][c] += given["weight"] * (h - halves[half][c])
            pooled = [a + share * (b - a) for a, b in zip(*halves, strict=True)]
            means = [
                [scale * m - float(s) for m, s in zip(part, shift[row], strict=True)] for part in (*halves, pooled)
            ]
            a, b, whole = (as_floats(local(tuple(part))) for part in means)
            both = [2.0 * w - 0.5 * (p + q) for w, p, q in zip(whole, a, b, strict=True)]
            found.append(list(a) if share == 0.0 else both)
        return _means(found)

    def means(self, arrays: Arrays, now: int) -> Floats:
        """Each node's estimates of the means."""
        read = self.protocol.read
        return np.array([[read(state, float(now)) for state in node] for node in arrays["states"]])

    def visitors(self, arrays: Arrays) -> Any:
        """The number of each visitor's own row."""
        return np.array(arrays["visitors"])


def _means(rows: Sequence[Sequence[float]]) -> list[float]:
    """The mean of each column, added up from first to last."""
    totals = [0.0] * len(rows[0])
    for row in rows:
        totals = [total + value for total, value in zip(totals, row, strict=True)]
    return [total / len(rows) for total in totals]
