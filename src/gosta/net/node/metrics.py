"""A node's status as Prometheus wants it, made when it asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from gosta.net.node.status import Status

REFUSED = "refused: "


class StatusCollector(Collector):
    """Metrics of a node; what is not known has no sample."""

    def __init__(self, status: Callable[[], Status]) -> None:
        self._status = status

    def collect(self) -> Iterator[Metric]:
        """What Prometheus calls at each scrape."""
        now = self._status()
        up = GaugeMetricFamily("gosta_up", "1 unless the node has stopped", labels=["node", "network", "statistic"])
        up.add_metric([now.node, now.network, now.statistic], float(now.state != "stopped"))
        yield up
        estimate = GaugeMetricFamily("gosta_estimate", "The estimate, number by number", labels=["part"])
        for part, value in enumerate(now.estimate or ()):
            estimate.add_metric([str(part)], value)
        yield estimate
        yield from _numbers(now)
        yield from _neighbours(now)
        yield from _counts(now.counts)

    def describe(self) -> list[Metric]:
        """Nothing to say before the first scrape: prometheus_client then does not ask for the status."""
        return []


def _numbers(now: Status) -> Iterator[Metric]:
    gauges = {
        "gosta_estimate_low": ("Lower end of the interval", now.low),
        "gosta_estimate_high": ("Upper end of the interval", now.high),
        "gosta_epoch": ("The epoch", now.epoch),
        "gosta_expected_error": ("Relative error of gossip that the node expects", now.expected_error),
        "gosta_agreement": ("Largest relative difference from a neighbour's estimate", now.agreement),
        "gosta_in_doubt_seconds": ("How long an answer is missing; 0: none is", now.doubt.since if now.doubt else 0.0),
    }
    for name, (text, value) in gauges.items():
        if value is not None:
            yield GaugeMetricFamily(name, text, value=value)
    yield CounterMetricFamily("gosta_exchanges", "Exchanges in this epoch", value=now.exchanges)


def _neighbours(now: Status) -> Iterator[Metric]:
    connected = GaugeMetricFamily("gosta_neighbour_connected", "1 while connected", labels=["neighbour"])
    meetings = CounterMetricFamily("gosta_neighbour_meetings", "Meetings in this epoch", labels=["neighbour"])
    for neighbour in now.neighbours:
        connected.add_metric([neighbour.name], float(neighbour.connected))
        meetings.add_metric([neighbour.name], neighbour.meetings)
    yield connected
    yield meetings


def _counts(counts: dict[str, int]) -> Iterator[Metric]:
    events = CounterMetricFamily("gosta_events", "What happened since the node started", labels=["event"])
    refused = CounterMetricFamily("gosta_refused", "Callers turned away since the node started", labels=["reason"])
    for name, count in counts.items():
        if name.startswith(REFUSED):
            refused.add_metric([name.removeprefix(REFUSED)], count)
        else:
            events.add_metric([name], count)
    yield events
    yield refused
