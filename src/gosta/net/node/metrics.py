"""A node's status as Prometheus metrics, made at each scrape."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from gosta.net.node.status import Status

REJECTED = "rejected: "  # prefix of counters that have a metric of their own


class StatusCollector(Collector):
    """Metrics of a node; unknown values have no sample."""

    def __init__(self, status: Callable[[], Status]) -> None:
        self._status = status

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics; called at each scrape."""
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
        yield from _counters(now.counters)

    def describe(self) -> list[Metric]:
        """Return nothing, so that registering the collector does not need a status."""
        return []


def _numbers(now: Status) -> Iterator[Metric]:
    waiting = now.pending_offer.seconds if now.pending_offer else 0.0
    gauges = {
        "gosta_estimate_low": ("Lower end of the interval", now.low),
        "gosta_estimate_high": ("Upper end of the interval", now.high),
        "gosta_epoch": ("The epoch", now.epoch),
        "gosta_expected_error": ("Relative error of gossip that the node expects", now.expected_error),
        "gosta_max_difference": ("Largest relative difference from a neighbour's estimate", now.max_difference),
        "gosta_waiting_for_reply_seconds": ("Time since the pending offer was sent; 0: none is pending", waiting),
    }
    for name, (text, value) in gauges.items():
        if value is not None:
            yield GaugeMetricFamily(name, text, value=value)
    yield CounterMetricFamily("gosta_exchanges", "Exchanges in this epoch", value=now.exchanges)


def _neighbours(now: Status) -> Iterator[Metric]:
    connected = GaugeMetricFamily("gosta_neighbour_connected", "1 while connected", labels=["neighbour"])
    exchanges = CounterMetricFamily("gosta_neighbour_exchanges", "Exchanges in this epoch", labels=["neighbour"])
    for neighbour in now.neighbours:
        connected.add_metric([neighbour.name], float(neighbour.connected))
        exchanges.add_metric([neighbour.name], neighbour.exchanges)
    yield connected
    yield exchanges


def _counters(counters: dict[str, int]) -> Iterator[Metric]:
    events = CounterMetricFamily("gosta_events", "Events since the node started", labels=["event"])
    rejected = CounterMetricFamily(
        "gosta_rejected", "Connections and messages rejected since the node started", labels=["reason"]
    )
    for name, count in counters.items():
        if name.startswith(REJECTED):
            rejected.add_metric([name.removeprefix(REJECTED)], count)
        else:
            events.add_metric([name], count)
    yield events
    yield rejected
