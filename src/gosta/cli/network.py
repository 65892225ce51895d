"""``gosta network init``, ``add``, ``remove``, ``certify``, ``sign``...: create a network of nodes and change it."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from gosta.cli import options
from gosta.errors import InputError, shorten
from gosta.views import numbers, terminal

if TYPE_CHECKING:
    from gosta.datasets import Data
    from gosta.net.deploy.authority import Passphrase
    from gosta.net.deploy.bundles import Request
    from gosta.net.deploy.network import Change, Network
    from gosta.net.deploy.plan import Goal, Plan
    from gosta.private.settings import PrivateSettings

PassphraseFile = Annotated[
    Path | None,
    "File with the passphrase of the authority's key; by default GOSTA_PASSPHRASE, or the terminal is asked.",
]
Rate = Annotated[float, "Exchanges that a node starts per second."]


@dataclass(frozen=True)
class Task:
    """What the network computes."""

    TITLE: ClassVar = "What is computed"
    statistic: options.StatisticName = "auc"
    option: options.StatisticOptions = None
    protocol: Annotated[
        str | None,
        "tracking (default), relay, gosta-async, or carried-means: one row at each node, no interval.",
        "-p",
    ] = None
    interval: Annotated[
        str | None,
        "Level of the confidence intervals, or none; by default 95% where the statistic has them.",
    ] = None
    classes: Annotated[
        str | None, "Classes of all sites' files, a,b: the last one is the positive class."
    ] = None
    until: Annotated[
        str | None,
        "Error, such as 1%, from which on nodes exchange no more; by default they go on.",
    ] = None

    def goal(self, rows: options.Rows) -> Goal:
        """Return the settings that all nodes share."""
        from gosta.net.deploy.plan import Goal

        text = None if (self.interval or "").lower() == "none" else self.interval or "95%"
        level = options.fraction("interval", text, f"none, or {options.LEVEL}")
        given = rows.statistic_options(self.option)
        until = options.fraction("until", self.until, options.ERROR) or 0.0
        return Goal(
            self.statistic,
            self.protocol or "tracking",
            given,
            level,
            self.interval is not None,
            until,
        )


@dataclass(frozen=True)
class Placement(options.Placement):
    """How rows are distributed to the nodes of a real network."""

    nodes: Annotated[
        int | None, "Number of nodes; by default 8, or as many as the edge-list file or --by has."
    ] = None
    graph: options.GraphName = None
    seed: Annotated[int, "Seed of the graph and of the placement."] = 0


@dataclass(frozen=True)
class Addresses:
    """Where nodes listen, and who signs their certificates."""

    TITLE: ClassVar = "Addresses and certificates"
    host: Annotated[
        list[str] | None,
        "Host where neighbours reach the nodes, or outbound: the node only dials out. Given once, or once for each "
        "node; default 127.0.0.1. Unless it is on loopback, a node listens on all interfaces.",
    ] = None
    port: Annotated[
        int,
        "Port of the nodes, and the next one for status; nodes on one machine use the following.",
    ] = 7400
    exchanges_per_second: Rate = 10.0
    authority: Annotated[
        Path | None, "A folder with cert.pem and key.pem of your own certificate authority."
    ] = None
    passphrase: Annotated[bool, "Encrypt the authority's key with a passphrase."] = False
    passphrase_file: PassphraseFile = None

    def secret(self) -> Passphrase | None:
        """Return the passphrase if keys are to be encrypted, or may be encrypted already."""
        from gosta.net.deploy.authority import Passphrase

        return Passphrase(self.passphrase_file) if self.passphrase or self.passphrase_file else None


def init(
    folder: Annotated[Path, typer.Argument(help="The folder to create.")],
    task: Task,
    placement: Placement,
    rows: options.Rows,
    private: options.Private,
    addresses: Addresses,
    data: Annotated[
        str | None,
        "A name from 'gosta datasets', or a file whose rows are distributed to the nodes. Without it, each "
        "site provides a file of its own.",
    ] = None,
    enrol: Annotated[
        bool, "Make no nodes, but an invitation: each site makes its key itself and enrols."
    ] = False,
) -> None:
    """Create the folders of a network: settings, keys and certificates of each node, and its data if given."""
    from gosta.net.deploy import plan
    from gosta.net.deploy.network import Network

    if enrol and (data is not None or placement.nodes is not None or addresses.host is not None):
        raise InputError(
            "enrol is without --data, --nodes and --host: each site brings its data and its address"
        )
    nodes, seed = placement.nodes, placement.seed
    graph = placement.graph
    if data is not None and task.classes is not None:
        raise InputError(
            "classes is for sites' own files; with --data, the classes are those in the data"
        )
    if data is None:
        needs_data = {"deal": placement.deal, "by": placement.by, "n": rows.n, "path": rows.path}
        for name in (name for name, value in needs_data.items() if value is not None):
            raise InputError(
                f"{name} requires --data; without it, each site provides a file of its own"
            )
    columns = tuple(name for text in rows.columns or [] for name in text.split(","))
    classes = tuple(name.strip() for name in task.classes.split(",")) if task.classes else ()
    roles = plan.Roles(columns, rows.label, rows.score, classes, rows.drop_missing)
    chosen = None if data is None else rows.select(rows.load(data))
    settings = _private_settings(private, chosen)
    if settings is None:
        options.check_pairwise(task.statistic)
    if settings is not None:
        for name, value in {"protocol": task.protocol, "until": task.until}.items():
            if value is not None:
                raise InputError(
                    f"{name} = {value!r} is for exchanges of rows; leave it out with --private"
                )
        made = plan.for_private(
            task.goal(rows),
            settings,
            graph,
            nodes,
            seed,
            roles,
            chosen,
            deal=placement.deal,
            by=placement.by,
        )
    elif chosen is None:
        made = plan.for_sites(task.goal(rows), graph, nodes, seed, roles)
    else:
        made = plan.for_data(
            task.goal(rows), chosen, graph, nodes, placement.deal, placement.by, seed
        )
    if data is None:
        made = dataclasses.replace(made, reading=rows.reading())
    for name in made.reading if enrol else ():
        raise InputError(
            f"{name} is not for enrol: each site says how its file is read, gosta node request --{name} ..."
        )
    if enrol:
        _invite(
            folder,
            dataclasses.replace(made, graph=placement.graph or ""),
            addresses,
            _remarks(private, made),
        )
        return
    hosts = addresses.host or ["127.0.0.1"]
    rate, ca, secret = addresses.exchanges_per_second, addresses.authority, addresses.secret()
    network = Network.create(folder, made, hosts, addresses.port, rate, ca, secret)
    print("\n".join(_made(made, network, _remarks(private, made))))
    if chosen is not None and settings is None:
        print(
            "\n".join(
                options.find_assumptions(
                    chosen, task.statistic, rows.statistic_options(task.option)
                ).lines
            )
        )


def _private_settings(private: options.Private, data: Data | None) -> PrivateSettings | None:
    """Return the settings of private sums; with noise and no number of bins, few bins."""
    from msgspec.structs import replace

    from gosta.private.settings import check_settings, suggested_bins

    settings = private.settings()
    if settings is None or private.bins is not None:
        return settings
    check_settings(replace(settings, strata={}))  # values of strata may be taken from the data
    return replace(
        settings, bins=suggested_bins(None if data is None else len(data), settings.epsilon)
    )


def _remarks(private: options.Private, plan: Plan) -> list[tuple[str, str]]:
    """Return what was chosen for the user, and what may surprise at the sites."""
    from gosta.net.deploy.policies import budget_words
    from gosta.private.policy import Policy

    settings, found = plan.task.private, []
    if settings is None:
        return []
    if private.bins is None and settings.epsilon is not None:
        found.append(
            ("few bins", f"{settings.bins}, since each has noise; --bins sets another number")
        )
    if settings.bins > Policy().max_bins:
        limit = f"sites whose policy has the default max_bins = {Policy().max_bins} take no part"
        found.append(("warning", f"{settings.bins:,} bins: {limit}"))
    if settings.epsilon is not None:
        found.append(("budget", budget_words(plan.task)))
    if plan.ranges:
        columns = f"range{'s' * (len(plan.ranges) > 1)} of {shorten(list(plan.ranges), 12)}"
        found.append(
            ("rounded", f"outwards, the {columns}, from the data; --range declares others")
        )
    if plan.rounded_options:
        found.append(
            (
                "rounded",
                f"{', '.join(plan.rounded_options)}, from the data; --option sets another value",
            )
        )
    return found


def _invite(folder: Path, made: Plan, addresses: Addresses, remarks: list[tuple[str, str]]) -> None:
    from gosta.net.deploy import bundles, enrolment

    invitation = enrolment.invite(folder, made, addresses.authority, addresses.secret())
    place, file = shlex.quote(str(folder)), folder / bundles.INVITATION_FILE
    print(f"{folder}: a network without sites yet, for {_task_words(made)}")
    entries = [
        *_private_entries(made),
        *remarks,
        ("invitation", f"{file}, for all sites; it holds no secret"),
        ("fingerprint", f"{bundles.fingerprint(invitation)}, which sites compare with theirs"),
        ("keys", f"{folder / 'authority'} signs certificates and the member list: keep it safe"),
    ]
    print(terminal.definitions(entries))
    print(
        "next, each site: gosta node request invitation.json FOLDER --name NAME --address HOST:PORT --data FILE"
    )
    print(f"then, with the request.json of each: gosta network sign {place} REQUEST...")


def _task_words(plan: Plan) -> str:
    return f"{plan.task.statistic} by {'private sums' if plan.task.private else plan.task.protocol}"


def _private_entries(plan: Plan) -> list[tuple[str, str]]:
    """Return what the member list says of private sums, in words."""
    from gosta.net.deploy.terms import terms_of

    words = terms_of(plan.task) if plan.task.private else {}
    return [
        (key, value)
        for key, value in words.items()
        if key not in ("mode", "interval", "score", "label")
    ]


def _made(plan: Plan, network: Network, remarks: list[tuple[str, str]]) -> Iterator[str]:
    folder, nodes = network.folder, network.config.nodes
    task, first = plan.task, next(iter(nodes))
    where = [address for address in nodes.values() if address]
    edges = f"{numbers.count(len(plan.edges), 'edge')} ({plan.graph})"
    yield f"{folder}: {plan.nodes} nodes, {edges}, for {_task_words(plan)}"
    entries = [*_private_entries(plan), *remarks]
    level, reason = task.confidence_level, plan.no_interval
    if level is not None:
        but = f", but not of all: {reason}" if reason else ""
        entries.append(("interval", f"{numbers.percent(level, 'g')} at every node{but}"))
    elif reason:
        entries.append(("interval", f"none: {reason}"))
    counts = plan.counts
    if counts:
        of = [f" of {site}" for site in plan.sites] or [""] * len(counts)
        sizes = [
            f"{name} {count}{site}" for name, count, site in zip(nodes, counts, of, strict=True)
        ]
        entries.append(("rows", f"{sum(counts)}: {shorten(sizes, 12)}"))
        entries += [("declares", shorten(_bounds(network, counts), 12))] * (
            task.private is not None
        )
    place = " to ".join(dict.fromkeys((*where[:1], *where[-1:])))
    entries.append(
        (
            "addresses",
            f"{place}{'; ' if place else ''}status pages on the same machine only, where node.toml says",
        )
    )
    if outbound := [name for name, address in nodes.items() if not address]:
        entries.append(("dial out only", shorten(outbound, 12)))
    entries.append(("keys", f"{folder / 'authority' / 'key.pem'} signs new nodes: keep it safe"))
    yield terminal.definitions(entries)
    if counts:
        place = shlex.quote(str(folder))
        yield f"next:\n  gosta network up {place}\n  gosta network verify {place}"
        return
    strata = {} if task.private is None else task.private.strata
    from gosta.net.config import is_for_one_row_each
    from gosta.statistics.references import parse_references

    named = [
        name
        for one in parse_references(task.statistic)
        for name in (*one.columns, one.weights)
        if name
    ]
    columns = list(dict.fromkeys([*task.columns, *named]))
    wanted = [
        f"column{'s' * (len(columns) > 1)} {', '.join(columns)}" * bool(columns),
        f"scores in {task.score}" * (task.score is not None),
        f"classes {', '.join(map(str, task.classes))} in {task.label or 'label'}"
        * bool(task.classes),
        *(f"{shorten([*map(str, levels)])} in {column}" for column, levels in strata.items()),
    ]
    yield "next, each site:"
    yield f"  receives its folder ({folder / first} for the first) over a secure channel, because it contains its key"
    rows = "row" if is_for_one_row_each(task.protocol) else "rows"
    yield f"  puts its {rows} there as data.csv ({'; '.join(filter(None, wanted)) or f'{rows} of numbers'}),"
    yield "  or names another file in node.toml, where its addresses can be changed too"
    if task.private is not None:
        yield f"  decides what it takes part in, in policy.toml there, and checks all: gosta check {folder / first}"
    yield f"  starts it: gosta node {folder / first}"
    yield f"or, to try it on this machine, with a data.csv in each node's folder: gosta network up {folder}"


def _bounds(network: Network, counts: Sequence[int]) -> list[str]:
    """Return what the member list says of the rows of each node of private sums."""
    from gosta.net.deploy.terms import declared_rows, row_words

    declared = [declared_rows(network.task, count) for count in counts]
    return [
        f"{name} {row_words(rows, is_bound=True)}"
        for name, rows in zip(network.config.nodes, declared, strict=True)
    ]


def add(
    folder: options.NetworkFolder,
    reading: options.Reading,
    data: Annotated[
        Path | None, "File of the new node's rows; without it, put them there later."
    ] = None,
    neighbours: Annotated[
        str | None,
        "Names, separated by commas; by default the two nodes with the fewest neighbours.",
    ] = None,
    host: Annotated[
        str, "Host where neighbours reach the node, or outbound: it only dials out."
    ] = "127.0.0.1",
    port: Annotated[int | None, "Its port, of two in a row; by default the next free ones."] = None,
    exchanges_per_second: Rate = 10.0,
    passphrase_file: PassphraseFile = None,
) -> None:
    """Add a node to a network; running nodes reload their settings."""
    from gosta.net.deploy.authority import Passphrase
    from gosta.net.deploy.network import Network

    names = [name.strip() for name in (neighbours or "").split(",") if name.strip()]
    secret, form = Passphrase(passphrase_file), reading.settings()
    change = Network.read(folder).add(data, names, host, port, exchanges_per_second, secret, form)
    joined = ", ".join(other for other, _ in change.new_edges)
    print(f"{folder / change.name}: a new node, with neighbours {joined}")
    _print_remote_changes(folder, change)
    _print_bundles(folder)
    start = f"gosta node {folder / change.name}"
    later = f"put its rows there as data.csv, then: {start}"
    print(
        "next:",
        later
        if data is None
        else f"{start}; a running 'gosta network up {folder}' starts it automatically",
    )


def remove(
    folder: options.NetworkFolder,
    name: Annotated[str, typer.Argument(help="The node.")],
    delete: Annotated[bool, "Delete its folder; otherwise it is renamed."] = False,
    passphrase_file: PassphraseFile = None,
) -> None:
    """Remove a node from a network and revoke its key; the others, also while running, go on without its rows."""
    from gosta.net.agreements import read_agreements
    from gosta.net.deploy.authority import Passphrase
    from gosta.net.deploy.network import Network

    has_left = read_agreements(folder / name).leaves
    change = Network.read(folder).remove(name, delete, Passphrase(passphrase_file))
    print(f"{folder}: removed {name}, {len(Network.read(folder).config.nodes)} nodes are left")
    for a, b in change.new_edges:
        print(f"  {a} and {b} are neighbours now, to keep the network connected")
    _print_remote_changes(folder, change)
    _print_bundles(folder)
    if not delete and (folder / f"{name}.removed").is_dir():
        print(f"  its folder was renamed to {folder / name}.removed")
    _print_cost(folder, name, has_left)


def _print_cost(folder: Path, name: str, has_left: bool) -> None:
    """Print what it costs the sites that remain of private sums to release totals without a site."""
    from gosta.net.config import MIN_SITES
    from gosta.net.deploy.network import Network

    network = Network.read(folder)
    private = network.task.private
    if private is None:
        return
    if len(network.config.nodes) < MIN_SITES:
        print(
            f"  by default, sites take part in sums over {MIN_SITES} sites or more only: min_sites in policy.toml"
        )
    if private.epsilon is not None:
        print(
            f"  the next release, without {name}, costs each site epsilon {private.epsilon:g} of its budget"
        )
        return
    if has_left:
        print(f"  {name} has left, so that the others need not agree to totals without it")
        return
    print("  sums without noise wait until each remaining site's operator runs:")
    print(f"  gosta network agree {shlex.quote(str(folder))} {name}")
    print(
        f"  for the totals with and without {name} give its exact sums; none waits if it left by: gosta node leave"
    )


def agree(
    folder: Annotated[
        Path, typer.Argument(help="A node's folder; or the network's, for all nodes that are here.")
    ],
    sites: Annotated[
        list[str], typer.Argument(help="Sites whose exact sums may be computed.", metavar="SITE...")
    ],
    yes: Annotated[bool, "Agree without being asked."] = False,
) -> None:
    """Agree that a site's exact sums may be computed, from totals with and without it; there is no way back.

    Sums without noise wait for that when a site is removed, or does not answer any more. With the name of a node's own
    site, its operator agrees that its own sums may be computed. Sums with noise wait where a site let so many epochs
    fail that each further one would waste epsilon. A running node sees it within seconds.
    """
    from gosta.net.agreements import add_agreement, check_sites
    from gosta.net.deploy.leaving import find_nodes, strangers

    check_sites(sites)
    found = find_nodes(folder)
    nodes = found.nodes
    print(*map(found.consequence, sites), "There is no way back.", sep="\n")
    for name in strangers(nodes, sites):
        print(f"note: {name} is in no member list here: it was removed, or its name is another one")
    who = shorten(list(nodes.values()), 6)
    options.confirm(f"Do you agree, for {who}?", yes)
    for place in nodes:
        add_agreement(place, sites)
    print(f"{folder}: {who} agreed about {', '.join(sites)}; running nodes see it by themselves")


def certify(
    folder: options.NetworkFolder,
    names: Annotated[list[str] | None, typer.Argument(help="The nodes; by default all.")] = None,
    passphrase_file: PassphraseFile = None,
) -> None:
    """Create new keys and certificates for nodes whose folders are here; running nodes reload them."""
    from gosta.net.deploy.authority import Passphrase
    from gosta.net.deploy.network import Network

    made = Network.read(folder).certify(names or [], Passphrase(passphrase_file))
    print(
        f"{folder}: new keys and certificates for {shorten(made, 12) or 'no node'}; running nodes reload them"
    )
    _print_bundles(folder)


def sign(
    folder: options.NetworkFolder,
    requests: Annotated[
        list[Path] | None, typer.Argument(help="request.json of sites; none: only renew.")
    ] = None,
    certificate: Annotated[
        list[Path] | None,
        "A certificate (PEM) that an authority elsewhere issued for a request.csr.",
    ] = None,
    yes: Annotated[bool, "Do not ask whether the fingerprints are right."] = False,
    passphrase_file: PassphraseFile = None,
) -> None:
    """Make sites members: issue certificates for their keys, sign the member list, write a bundle for each site."""
    from gosta.net.deploy import enrolment
    from gosta.net.deploy.authority import Passphrase

    found = enrolment.read_requests(folder, requests or [])
    if found:
        _show_requests(folder, found)
        options.confirm("Did each site read out the same fingerprint?", yes)
    enrolled = enrolment.sign(folder, found, certificate or [], Passphrase(passphrase_file))
    count = len(enrolled.members.members)
    print(f"{folder}: member list {enrolled.members.serial}, {count} member{'s' * (count > 1)}")
    _print_bundles(folder)


def _show_requests(folder: Path, found: list[Request]) -> None:
    from gosta.net.addresses import OUTBOUND
    from gosta.net.deploy import bundles, certificates
    from gosta.net.deploy.network import Network
    from gosta.net.deploy.terms import row_words

    network, rows = Network.read(folder), []
    task, nodes, signed = network.task, network.config.nodes, network.members()
    listed = {} if signed is None else signed.list.keys
    for one in found:
        key = certificates.check_request(one.request.encode(), one.network, one.name)
        news = ["new key"] * (listed.get(one.name) != key) + ["new address"] * (
            nodes.get(one.name) != one.address
        )
        change = "new site" if one.name not in nodes else ", ".join(news) or "renewed"
        count = row_words(one.rows, is_bound=True) if task.private else str(one.rows)
        rows.append(
            [
                one.name,
                change,
                one.address or OUTBOUND,
                count if one.rows else "-",
                bundles.fingerprint(one),
            ]
        )
    heading = ["site", "", "address", "declares" if task.private else "rows", "fingerprint"]
    print(terminal.columns([heading, *rows]))


def rotate_authority(
    folder: options.NetworkFolder,
    authority: Annotated[
        Path | None,
        "A folder with cert.pem and key.pem of the new authority, in the first step; by default one is made.",
    ] = None,
    passphrase_file: PassphraseFile = None,
) -> None:
    """Replace the network's authority while nodes run, in three steps: each call does the next one."""
    from gosta.net.deploy.authority import Passphrase
    from gosta.net.deploy.network import Network

    step = Network.read(folder).rotate_authority(authority, Passphrase(passphrase_file))
    done = ("all members trust the new authority too", "all certificates are of the new authority")
    print(
        f"{folder}: step {step} of 3: {(*done, 'the old authority is no longer trusted')[step - 1]}"
    )
    _print_bundles(folder)
    if step < 3:
        print(
            f"next, once every node has reloaded this: gosta network rotate-authority {shlex.quote(str(folder))}"
        )


def _print_bundles(folder: Path) -> None:
    """Print where the bundles of sites are, for sites that enrolled."""
    from gosta.net.deploy.network import BUNDLES
    from gosta.net.members import MEMBERS_FILE, list_fingerprint, read_list

    found = sorted((folder / BUNDLES).glob("*.json"))
    if found:
        listed = read_list(folder / MEMBERS_FILE).list
        print(
            f"  fingerprint of list {listed.serial}: {list_fingerprint(listed)}; read it out to each site"
        )
        print(
            f"  send each site its bundle ({shorten([str(path) for path in found], 3)}); it holds no secret"
        )
        print("  each site runs: gosta node join BUNDLE FOLDER")


def _print_remote_changes(folder: Path, change: Change) -> None:
    """Print what has to be changed by hand where a neighbour's folder is on another machine."""
    from gosta.net.deploy.network import BUNDLES, Network, forwarders_of, neighbours_of

    network = Network.read(folder).config
    enrolled = {path.stem for path in (folder / BUNDLES).glob("*.json")}
    for name in (name for name in change.elsewhere if name not in enrolled):
        for section, places in (("neighbours", neighbours_of), ("forwarders", forwarders_of)):
            if wanted := ", ".join(
                f'{other} = "{where}"' for other, where in places(network, name).items()
            ):
                print(
                    f"  {name}'s folder is on another machine; set in its node.toml, in [{section}]: {wanted}"
                )
