"""A node's status as Prometheus metrics, made at each scrape."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from gosta.net.node.status import OWN_STATES, REJECTED, Status, SumStatus


class StatusCollector(Collector):
    """Metrics of a node; unknown values have no sample."""

    def __init__(self, status: Callable[[], Status]) -> None:
        self._status = status

    def describe(self) -> list[Metric]:
        """Return nothing, so that registering the collector does not need a status."""
        return []

    def collect(self) -> Iterator[Metric]:
        now = self._status()
        up = GaugeMetricFamily(
            "gosta_up", "1 unless the node has stopped", labels=["node", "network", "statistic"]
        )
        up.add_metric([now.node, now.network, now.statistic], float(now.state != "stopped"))
        yield up
        states = {state: float(state == now.state) for state in (*OWN_STATES, now.state)}
        yield _family(
            GaugeMetricFamily,
            "gosta_state",
            "1 for the state that the node is in, else 0",
            "state",
            states,
        )
        yield InfoMetricFamily(
            "gosta_build", "Versions", {"version": now.version, "python": platform.python_version()}
        )
        text = "When a certificate of the node, its authority or its coordinator ends"
        ends, name = now.certificate_ends, "gosta_certificate_end_timestamp_seconds"
        yield _family(GaugeMetricFamily, name, text, "certificate", ends)
        parts = {str(part): value for part, value in enumerate(now.estimate or ())}
        yield _family(
            GaugeMetricFamily, "gosta_estimate", "The estimate, number by number", "part", parts
        )
        yield from _statistics(now)
        yield from _numbers(now)
        yield from _neighbours(now)
        if now.sums is not None:
            yield from _sums(now.sums)
        rejected = {
            k.removeprefix(REJECTED): v for k, v in now.counters.items() if k.startswith(REJECTED)
        }
        events = {
            name: count for name, count in now.counters.items() if not name.startswith(REJECTED)
        }
        yield _family(
            CounterMetricFamily, "gosta_events", "Events since the node started", "event", events
        )
        text = "Connections and messages rejected since the node started"
        yield _family(CounterMetricFamily, "gosta_rejected", text, "reason", rejected)


def _statistics(now: Status) -> Iterator[Metric]:
    """Yield the metrics of several statistics."""
    if not now.statistics:
        return
    text, name = "The estimate of each statistic, number by number", "gosta_statistic_estimate"
    family = GaugeMetricFamily(name, text, labels=["statistic", "part"])
    for one in now.statistics:
        for part, value in enumerate(one.value):
            family.add_metric([one.statistic, str(part)], value)
    yield family
    gauges: Gauges = {
        "gosta_statistic_low": (
            "Lower end of its interval",
            {one.statistic: one.low for one in now.statistics},
        ),
        "gosta_statistic_high": (
            "Upper end of its interval",
            {one.statistic: one.high for one in now.statistics},
        ),
        "gosta_statistic_expected_error": (
            "Relative error of gossip that the node expects of it",
            {one.statistic: one.expected_error for one in now.statistics},
        ),
    }
    yield from _known(gauges, "statistic")


def _sums(sums: SumStatus) -> Iterator[Metric]:
    names = {
        "gosta_sums_value": "A result",
        "gosta_sums_low": "Low end of its bracket",
        "gosta_sums_high": "High end",
    }
    for place, (name, text) in enumerate(names.items()):
        labels = ["statistic", "stratum", "label"]  # the label is that of a point of a curve
        family = GaugeMetricFamily(name, f"{text}, by statistic, stratum and label", labels=labels)
        for one in (
            one for one in sums.results if one.has_value and (place == 0 or one.is_certified)
        ):
            numbers = (one.value, one.low, one.high)[place]
            for k, number in enumerate(numbers):
                label = one.labels[k] if one.labels else str(k) if len(numbers) > 1 else ""
                family.add_metric([one.statistic, one.stratum, label], number)
        yield family
    gauges = {
        "gosta_sums_participants": ("Sites in the last release", len(sums.participants)),
        "gosta_sums_left_out": ("Members that were not in it", len(sums.left_out)),
        "gosta_sums_release_timestamp_seconds": ("When it became known", sums.release_time),
        "gosta_sums_epsilon_spent": ("Privacy spent by all contributions", sums.spent_epsilon),
        "gosta_sums_epsilon_budget": ("Privacy that may be spent", sums.epsilon_budget),
    }
    for name, (text, value) in gauges.items():
        if value is not None:
            yield GaugeMetricFamily(name, text, value=value)
    yield CounterMetricFamily(
        "gosta_sums_contributions", "Contributions of this site", value=sums.contributions
    )


def _neighbours(now: Status) -> Iterator[Metric]:
    gauges: Gauges = {
        "gosta_neighbour_connected": (
            "1 while connected",
            {one.name: one.connected for one in now.neighbours},
        ),
        "gosta_neighbour_alive": (
            "1 while its heartbeats arrive",
            {one.name: one.alive for one in now.neighbours},
        ),
        "gosta_neighbour_round_trip_seconds": (
            "Time from a heartbeat to its answer",
            {one.name: one.round_trip_seconds for one in now.neighbours},
        ),
    }
    yield from _known(gauges, "neighbour")
    exchanges, text = {one.name: one.exchanges for one in now.neighbours}, "Exchanges in this epoch"
    yield _family(CounterMetricFamily, "gosta_neighbour_exchanges", text, "neighbour", exchanges)


Family = type[GaugeMetricFamily] | type[CounterMetricFamily]
Gauges = Mapping[str, tuple[str, Mapping[str, float | None]]]  # name: text, values by label


def _known(gauges: Gauges, label: str) -> Iterator[Metric]:
    """Yield gauges with the values that are known, by label."""
    for name, (text, values) in gauges.items():
        known = {key: value for key, value in values.items() if value is not None}
        yield _family(GaugeMetricFamily, name, text, label, known)


def _family(kind: Family, name: str, text: str, label: str, samples: Mapping[str, float]) -> Metric:
    family = kind(name, text, labels=[label])
    for value, number in samples.items():
        family.add_metric([value], number)
    return family


def _numbers(now: Status) -> Iterator[Metric]:
    gauges = {
        "gosta_estimate_low": ("Lower end of the interval", now.low),
        "gosta_estimate_high": ("Upper end of the interval", now.high),
        "gosta_epoch": ("The epoch", now.epoch),
        "gosta_epoch_start_timestamp_seconds": (
            "When the node entered the epoch, or started in it",
            now.epoch_time,
        ),
        "gosta_journal_bytes": ("Size of the journal on the disk", now.journal_bytes),
        "gosta_expected_error": (
            "Relative error of gossip that the node expects",
            now.expected_error,
        ),
        "gosta_max_difference": (
            "Largest relative difference from a neighbour's estimate",
            now.max_difference,
        ),
        "gosta_members": ("Sites in the member list", now.sites or None),
        "gosta_members_seen": ("Sites whose rows count in the estimate", now.sites_seen),
        "gosta_members_missing": (
            "Sites whose rows do not count in the estimate",
            len(now.missing) if now.sites else None,
        ),
        "gosta_member_list_serial": ("Serial number of the member list", now.list_serial or None),
        "gosta_member_list_proposed": (
            "Serial number of a newer one that waits to be accepted; 0: none",
            now.proposed_list,
        ),
        "gosta_rows_own": ("Rows of this site", now.rows),
        "gosta_rows_known": ("Rows that the estimate is over", now.rows_seen),
        "gosta_rows_declared": ("Rows that all sites have declared", now.rows_declared or None),
        "gosta_reload_failed": (
            "1 while changed files are not in use because of an error",
            float(bool(now.reload_error)),
        ),
    }
    for name, (text, value) in gauges.items():
        if value is not None:
            yield GaugeMetricFamily(name, text, value=value)
    yield CounterMetricFamily("gosta_exchanges", "Exchanges in this epoch", value=now.exchanges)
