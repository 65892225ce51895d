"""What a site that goes and comes back costs a network of private sums: 20 real nodes and journals
in virtual time.

One of 20 sites is killed every 30 s, for 5 s, and an epoch is requested every 4 s, so that it is
killed at every moment of an epoch. Each epoch needs all 20 sites: what has been sent without a site
would show its sums when it is back, so that an epoch waits for the site, which sends again what its
journal has. Counted are the epochs that gave a result, how long they took, and what they cost:
agreements of an operator (none may be needed), and epsilon (that of one release).

Run with: python benchmarks/dropouts.py [--smoke]
"""

from __future__ import annotations

import sys
from itertools import combinations
from typing import NamedTuple

import common
import numpy as np
from sum_network import SumNetwork
from virtual_network import Fault

from gosta.net.protocol import statements
from gosta.private.policy import MODES, Policy
from gosta.private.settings import PrivateSettings

SITES, ROWS, FLAPPING = 20, 40, "node-7"
EVERY_SECONDS, DOWN_SECONDS, EPOCH_SECONDS = 30.0, 5.0, 4.0
DEADLINE_SECONDS = 600.0  # the default
# that any result may take: until the site is back, has connected and resumed
MOST_SECONDS = DOWN_SECONDS + 6.0
STEP_SECONDS = 0.02


class Found(NamedTuple):
    """What one network did."""

    epochs: int
    seconds: list[float]  # from the request of an epoch to the result at all nodes
    needs: int  # times that an agreement was asked for
    epsilon: float  # spent by a site


def run(sites: int, seconds: float, epsilon: float | None, flaps: bool) -> Found:
    """Run a network; check every total that is known without noise."""
    rng = np.random.default_rng(3)
    settings = PrivateSettings(
        bins=16, ranges={"": (0.0, 1.0)}, epsilon=epsilon, deadline_seconds=DEADLINE_SECONDS
    )
    parts = [np.column_stack([rng.random(ROWS), np.arange(ROWS) % 2]) for _ in range(sites)]
    times = np.arange(7.0, seconds, EVERY_SECONDS) + rng.uniform(
        0, EPOCH_SECONDS, len(np.arange(7.0, seconds, 30.0))
    )
    faults = [Fault("crash", float(time), FLAPPING, DOWN_SECONDS) for time in times if flaps]
    network = SumNetwork(
        parts, list(combinations(range(sites), 2)), faults, statistic="auc", score="score",
        label="label",
        classes=(0, 1), settings=settings,
        policies={f"node-{k}": Policy(modes=MODES) for k in range(sites)},
    )  # fmt: skip
    network.clock.run(6.0)
    needs, found, epochs, asked = 0, [], 1, network.clock.now
    while network.clock.now < seconds:
        if network.nodes["node-0"].request_epoch():
            network.clock.run(network.clock.now + 1.0)
            continue
        epochs, asked = epochs + 1, network.clock.now
        peers = network.sum_peers
        while network.clock.now < asked + 2 * MOST_SECONDS and not is_done(network):
            network.clock.run(network.clock.now + STEP_SECONDS)
        peers = network.sum_peers
        needs += sum(bool(peer.needed_agreements) for peer in peers.values())
        if is_done(network):
            found.append(network.clock.now - asked)
            report = peers["node-0"].report
            assert report is not None
            if epsilon is None:
                assert report.vector == statements.pack(network.plain_sums(network.names)), (
                    "the total is wrong"
                )
        network.clock.run(max(network.clock.now, asked + EPOCH_SECONDS))
    spent = sum(
        one.spent.epsilon for one in network.sum_peers["node-0"].history() if one.spent is not None
    )
    return Found(epochs - 1, found, needs, spent)


def is_done(network: SumNetwork) -> bool:
    """Return whether all nodes, of which none is down, have the total of one epoch, over all
    sites.
    """
    peers = network.sum_peers.values()
    reports = {(peer.report.epoch, peer.report.origin) if peer.report else None for peer in peers}
    is_complete = all(
        peer.is_complete and len(peer.current.participants) == len(peers) for peer in peers
    )
    return len(reports) == 1 and is_complete and len(network.nodes) == len(network.names)


def main() -> None:
    arguments = common.parser(__doc__).parse_args()
    common.print_machine()
    sites, seconds = (9, 60.0) if arguments.smoke else (SITES, 600.0)
    print(f"{sites} sites, {seconds:.0f} virtual seconds; {FLAPPING} is killed every 30 s, for 5 s")
    print(
        f"{'':<34} {'epochs':>7} {'results':>8} {'median':>8} "
        f"{'longest':>8} {'agreements':>11} {'epsilon':>8}"
    )
    is_ok = True
    for epsilon in (None, 1.0):
        for flaps in (False, True):
            one = run(sites, seconds, epsilon, flaps)
            noise = "no noise" if epsilon is None else "epsilon 1"
            title = f"{noise}, {'a site flaps' if flaps else 'no faults'}"
            longest = max(one.seconds, default=float("inf"))
            is_right = len(one.seconds) == one.epochs and longest <= MOST_SECONDS and not one.needs
            is_right &= one.epsilon <= (epsilon or 0.0)
            is_ok &= is_right
            print(
                f"{title:<34} {one.epochs:>7} {len(one.seconds):>8} {np.median(one.seconds):>6.2f} "
                f"s {longest:>6.2f} s "
                f"{one.needs:>11} {one.epsilon:>8g} {'' if is_right else 'WRONG'}",
                flush=True,
            )
    sys.exit(not is_ok)


if __name__ == "__main__":
    main()
