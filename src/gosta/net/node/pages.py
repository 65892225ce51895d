"""The HTTP server of a node: an HTML page, its status and logs as JSON, metrics, and its health."""

from __future__ import annotations

import platform
from collections.abc import Callable, Collection, Iterator, Mapping

import msgspec
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from gosta.net import addresses
from gosta.net.node import status_text
from gosta.net.node.status import OWN_STATES, REJECTED, STATES, Status, SumStatus
from gosta.net.storage.journal import Journal
from gosta.runtime.http import TEXT, Response, Server
from gosta.views import html

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
REFRESH_SECONDS = 2  # after which a browser reloads the page

Gauges = Mapping[str, tuple[str, float | None]]  # name: help text, value


class Pages(Server):
    """The pages of a node."""

    def __init__(
        self,
        status: Callable[[], Status],
        journal: Journal | None,
        names: Collection[str],
        release: Callable[[], object],
    ) -> None:
        self.address = ""  # where it listens, once served
        self._status, self._journal = status, journal
        self._registry = CollectorRegistry()
        self._registry.register(StatusCollector(status))
        ProcessCollector(registry=self._registry)
        routes = {
            "/": lambda _: Response(page(status()).encode(), "text/html; charset=utf-8"),
            "/status": lambda _: Response(msgspec.json.encode(status()), "application/json"),
            "/ledger": lambda _: self._ledger(),
            "/contributions": lambda _: self._contributions(),
            "/release": lambda _: Response(msgspec.json.encode(release()), "application/json"),
            "/metrics": lambda _: Response(generate_latest(self._registry), CONTENT_TYPE_LATEST),
            "/healthz": lambda _: self._health(),
        }
        super().__init__(routes, POLICY, names)

    def _ledger(self) -> Response:
        ledger = [] if self._journal is None else self._journal.ledger()
        return Response(msgspec.json.encode(ledger), "application/json")

    def _contributions(self) -> Response:
        log = [] if self._journal is None else self._journal.contributions()
        return Response("".join(f"{entry.line()}\n" for entry in log).encode(), "application/jsonl")

    def _health(self) -> Response:
        """Return whether the node runs and can write its journal."""
        error = self._status().disk_error
        if error:
            return Response(f"disk error: {error}\n".encode(), TEXT, 503)
        return Response(b"ok\n")


def page(status: Status) -> str:
    """Return the page for browsers: the estimate and its accuracy, then tables and events."""
    parts = [
        html.table(status_text.summary(status), titles={"state": STATES.get(status.state, "")}),
        *(html.table(table, heading=True) for table in status_text.tables(status)),
        html.table(status_text.events(status)),
    ]
    return html.page(status.node, "".join(parts), REFRESH_SECONDS)


async def serve(
    address: str,
    status: Callable[[], Status],
    journal: Journal | None = None,
    names: Collection[str] = (),
    release: Callable[[], object] = lambda: None,
) -> Pages:
    """Serve a node's pages at an address; `names` are hosts under which clients may ask.

    `release` returns the report of the last release of private sums, None if there is none.
    """
    listener = addresses.listen(address, "status_page")
    pages = Pages(status, journal, {addresses.parse(address).host, *names}, release)
    pages.address = addresses.listening_address(listener)
    await pages.start(listener)
    return pages


class StatusCollector(Collector):
    """Prometheus metrics of a node, made at each scrape; unknown values have no sample."""

    def __init__(self, status: Callable[[], Status]) -> None:
        self._status = status

    def describe(self) -> list[Metric]:
        """Return nothing, so that registering the collector does not need a status."""
        return []

    def collect(self) -> Iterator[Metric]:
        now = self._status()
        labels = ["node", "network", "statistic"]
        up = GaugeMetricFamily("gosta_up", "1 unless the node has stopped", labels=labels)
        up.add_metric([now.node, now.network, now.statistic], float(now.state != "stopped"))
        yield up
        states = {state: float(state == now.state) for state in (*OWN_STATES, now.state)}
        text = "1 for the state that the node is in, else 0"
        yield _by_label("gosta_state", text, "state", states)
        versions = {"version": now.version, "python": platform.python_version()}
        yield InfoMetricFamily("gosta_build", "Versions", versions)
        text = "When a certificate of the node, its authority or its coordinator ends"
        name, ends = "gosta_certificate_end_timestamp_seconds", now.certificate_ends
        yield _by_label(name, text, "certificate", ends)
        parts = {str(part): value for part, value in enumerate(now.estimate or ())}
        yield _by_label("gosta_estimate", "The estimate, number by number", "part", parts)
        if now.statistics:
            yield from _statistics(now)
        yield from _singles(_numbers(now))
        yield CounterMetricFamily("gosta_exchanges", "Exchanges in this epoch", value=now.exchanges)
        yield from _neighbours(now)
        if now.sums is not None:
            yield from _sums(now.sums)
        rejected = {
            name.removeprefix(REJECTED): count
            for name, count in now.counters.items()
            if name.startswith(REJECTED)
        }
        events = {
            name: count for name, count in now.counters.items() if not name.startswith(REJECTED)
        }
        yield _counts("gosta_events", "Events since the node started", "event", events)
        text = "Connections and messages rejected since the node started"
        yield _counts("gosta_rejected", text, "reason", rejected)


def _by_label(
    name: str, text: str, label: str, samples: Mapping[str, float | None]
) -> GaugeMetricFamily:
    """Return a gauge with the values that are known, by the value of a label."""
    family = GaugeMetricFamily(name, text, labels=[label])
    for value, number in samples.items():
        if number is not None:
            family.add_metric([value], number)
    return family


def _counts(name: str, text: str, label: str, counts: Mapping[str, int]) -> CounterMetricFamily:
    family = CounterMetricFamily(name, text, labels=[label])
    for value, count in counts.items():
        family.add_metric([value], count)
    return family


def _singles(gauges: Gauges) -> Iterator[Metric]:
    """Yield gauges without labels, those whose values are known."""
    for name, (text, value) in gauges.items():
        if value is not None:
            yield GaugeMetricFamily(name, text, value=value)


def _statistics(now: Status) -> Iterator[Metric]:
    """Yield the metrics of several statistics."""
    text, labels = "The estimate of each statistic, number by number", ["statistic", "part"]
    family = GaugeMetricFamily("gosta_statistic_estimate", text, labels=labels)
    for report in now.statistics:
        for part, value in enumerate(report.value):
            family.add_metric([report.statistic, str(part)], value)
    yield family
    low = {report.statistic: report.low for report in now.statistics}
    yield _by_label("gosta_statistic_low", "Lower end of its interval", "statistic", low)
    high = {report.statistic: report.high for report in now.statistics}
    yield _by_label("gosta_statistic_high", "Upper end of its interval", "statistic", high)
    errors = {report.statistic: report.expected_error for report in now.statistics}
    text = "Relative error of gossip that the node expects of it"
    yield _by_label("gosta_statistic_expected_error", text, "statistic", errors)


def _numbers(now: Status) -> Gauges:
    missing = len(now.missing) if now.sites else None
    started = "When the node entered the epoch, or started in it"
    proposed = "Serial number of a newer one that waits to be accepted; 0: none"
    failed = "1 while changed files are not in use because of an error"
    return {
        "gosta_estimate_low": ("Lower end of the interval", now.low),
        "gosta_estimate_high": ("Upper end of the interval", now.high),
        "gosta_epoch": ("The epoch", now.epoch),
        "gosta_epoch_start_timestamp_seconds": (started, now.epoch_time),
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
        "gosta_members_missing": ("Sites whose rows do not count in the estimate", missing),
        "gosta_member_list_serial": ("Serial number of the member list", now.list_serial or None),
        "gosta_member_list_proposed": (proposed, now.proposed_list),
        "gosta_rows_own": ("Rows of this site", now.rows),
        "gosta_rows_known": ("Rows that the estimate is over", now.rows_seen),
        "gosta_rows_declared": ("Rows that all sites have declared", now.rows_declared or None),
        "gosta_reload_failed": (failed, float(bool(now.reload_error))),
    }


def _neighbours(now: Status) -> Iterator[Metric]:
    connected = {near.name: near.connected for near in now.neighbours}
    yield _by_label("gosta_neighbour_connected", "1 while connected", "neighbour", connected)
    alive = {near.name: near.alive for near in now.neighbours}
    yield _by_label("gosta_neighbour_alive", "1 while its heartbeats arrive", "neighbour", alive)
    trips = {near.name: near.round_trip_seconds for near in now.neighbours}
    text = "Time from a heartbeat to its answer"
    yield _by_label("gosta_neighbour_round_trip_seconds", text, "neighbour", trips)
    exchanges = {near.name: near.exchanges for near in now.neighbours}
    yield _counts("gosta_neighbour_exchanges", "Exchanges in this epoch", "neighbour", exchanges)


def _sums(sums: SumStatus) -> Iterator[Metric]:
    """Yield the metrics of the last release of private sums."""
    results = [result for result in sums.results if result.has_value]
    certified = [result for result in results if result.is_certified]
    for name, text, samples in (
        ("gosta_sums_value", "A result", [(result, result.value) for result in results]),
        ("gosta_sums_low", "Low end of its bracket", [(one, one.low) for one in certified]),
        ("gosta_sums_high", "High end", [(one, one.high) for one in certified]),
    ):
        labels = ["statistic", "stratum", "label"]  # the label is that of a point of a curve
        family = GaugeMetricFamily(name, f"{text}, by statistic, stratum and label", labels=labels)
        for result, numbers in samples:
            for k, number in enumerate(numbers):
                if number is None:
                    continue
                label = result.labels[k] if result.labels else str(k) if len(numbers) > 1 else ""
                family.add_metric([result.statistic, result.stratum, label], number)
        yield family
    yield from _singles(
        {
            "gosta_sums_participants": ("Sites in the last release", len(sums.participants)),
            "gosta_sums_left_out": ("Members that were not in it", len(sums.left_out)),
            "gosta_sums_release_timestamp_seconds": ("When it became known", sums.release_time),
            "gosta_sums_epsilon_spent": ("Privacy spent by all contributions", sums.spent_epsilon),
            "gosta_sums_epsilon_budget": ("Privacy that may be spent", sums.epsilon_budget),
        }
    )
    text = "Contributions of this site"
    yield CounterMetricFamily("gosta_sums_contributions", text, value=sums.contributions)
