"""``gosta network init``, ``add``, ``remove``, ``sign`` and others: make and change networks."""

from __future__ import annotations

import dataclasses
import itertools
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from gosta.cli import options
from gosta.errors import InputError, shorten

if TYPE_CHECKING:
    from gosta.datasets import Data
    from gosta.net.deploy.authority import Passphrase
    from gosta.net.deploy.fit_plan import FitGoal
    from gosta.net.deploy.plan import Goal, Roles
    from gosta.private.settings import PrivateSettings

PassphraseFile = Annotated[
    Path | None,
    "File with the passphrase of the authority's key; by default GOSTA_PASSPHRASE, or the terminal "
    "is asked.",
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
        "tracking (default), relay, gosta-async, or carried-means: one row at each node, no "
        "interval.",
        "-p",
    ] = None
    interval: Annotated[
        str | None,
        "Level of the confidence intervals, or none; by default 95% where the statistic has them.",
    ] = None
    classes: Annotated[
        str | None, "Classes of all sites' files, a,b: the last one is the positive class."
    ] = None
    dictionary: Annotated[
        Path | None,
        "A TOML file with a section [columns.NAME] for each column, such as a study.toml: ranges, "
        "classes and strata are taken from it, and all sites see it.",
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
            rows.weighted(self.statistic),
            self.protocol or "tracking",
            given,
            level,
            self.interval is not None,
            until,
        )

    def roles(self, rows: options.Rows) -> Roles:
        """Return which columns of sites' files are read, and what their classes are."""
        from gosta.net.deploy.plan import Roles

        columns = tuple(name for text in rows.columns or [] for name in text.split(","))
        classes = tuple(name.strip() for name in self.classes.split(",")) if self.classes else ()
        roles = (rows.label, rows.scores(), classes, rows.drop_missing, rows.time, rows.event)
        return Roles(columns, *roles)


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
        "Host where neighbours reach the nodes, or outbound: the node only dials out. Given once, "
        "or once for each node; default 127.0.0.1. Unless it is on loopback, a node listens on all "
        "interfaces.",
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


@dataclass(frozen=True)
class Model:
    """A regression model over all sites' rows, by private sums."""

    TITLE: ClassVar = "A regression model, in place of a statistic"
    fit: Annotated[
        str | None, "logistic, linear, poisson, cox or auc, by private sums: no row leaves a site."
    ] = None
    outcome: Annotated[str | None, "Column that the model explains."] = None
    formula: Annotated[
        str | None, "In place of outcome and columns: 'died ~ age * sex + bs(bmi, df=4)'."
    ] = None
    levels: Annotated[
        list[str] | None, "Values of a factor at all sites, the reference first: stage=II,I,III."
    ] = None
    penalty: Annotated[
        float | None, "Half of it times the squares of standardised coefficients is added (ridge)."
    ] = None

    def goal(self, task: Task, rows: options.Rows) -> FitGoal | None:
        """Return the model; None if a statistic is computed."""
        from gosta.net.deploy.fit_plan import FitGoal

        given = {"outcome": self.outcome, "penalty": self.penalty}
        if self.fit is None:
            for name in (field.name for field in dataclasses.fields(self)):
                if getattr(self, name) is not None:
                    raise InputError(f"{name} is for models; add --fit, such as --fit logistic")
            return None
        if self.formula is not None and rows.columns is not None:
            raise InputError("formula and columns are both given: give one of the two")
        goal = task.goal(rows)
        given |= {"time": rows.time, "event": rows.event, "positive": rows.positive}
        levels = [pair for text in self.levels or [] for pair in options.parse_strata(text)]
        return FitGoal(
            self.fit,
            self.formula or options.parse_terms(rows.columns or []),
            {**(goal.options or {}), **given},
            dict(levels),
            goal.confidence_level,
        )


def init(
    folder: Annotated[Path, typer.Argument(help="The folder to create.")],
    task: Task,
    placement: Placement,
    rows: options.Rows,
    private: options.Private,
    model: Model,
    addresses: Addresses,
    data: Annotated[
        str | None,
        "A name from 'gosta datasets', or a file whose rows are distributed to the nodes. Without "
        "it, each site provides a file of its own.",
    ] = None,
    enrol: Annotated[
        bool, "Make no nodes, but an invitation: each site makes its key itself and enrols."
    ] = False,
    study: Annotated[
        Path | None, "A study.toml, or its folder: private sums of all that the study asks."
    ] = None,
) -> None:
    """Create a network's folders: each node's settings, key, certificate, and data if given."""
    from gosta.datasets.dictionary import read_dictionary
    from gosta.net.deploy import enrolment, plan, summary
    from gosta.net.deploy.network import Network

    if enrol and (data is not None or placement.nodes is not None or addresses.host is not None):
        raise InputError(
            "enrol is without --data, --nodes and --host: each site brings its data and its address"
        )
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
    chosen = None if data is None else rows.load(data)
    fitted = model.goal(task, rows)
    if fitted is not None:
        private = dataclasses.replace(private, private=True)
    elif chosen is not None:
        chosen = rows.select(chosen)
    if study is None:
        settings = _private_settings(private, chosen) if fitted is None else private.settings()
        goal, roles = task.goal(rows), task.roles(rows)
        if task.dictionary is not None:
            roles, settings = plan.with_dictionary(
                read_dictionary(task.dictionary), roles, settings
            )
    else:
        settings, goal, roles = _of_study(study, task, rows, private)
    graph, nodes, seed = placement.graph, placement.nodes, placement.seed
    deal, by = placement.deal, placement.by
    if settings is not None:
        for name, value in {"protocol": task.protocol, "until": task.until}.items():
            if value is not None:
                raise InputError(
                    f"{name} = {value!r} is for exchanges of rows; leave it out with --private"
                )
        where = (settings, graph, nodes, seed, roles, chosen, deal, by)
        made = plan.for_private(goal, *where) if fitted is None else plan.for_fit(fitted, *where)
    else:
        options.check_pairwise(task.statistic)
        if chosen is None:
            made = plan.for_sites(goal, graph, nodes, seed, roles)
        else:
            made = plan.for_data(goal, chosen, graph, nodes, deal, by, seed)
    if data is None:
        made = dataclasses.replace(made, reading=rows.reading())
    ca, secret = addresses.authority, addresses.secret()
    has_suggested_bins = private.bins is None and study is None and fitted is None
    if enrol:
        for name in made.reading:
            own = "column, --value, --scale, --na-values" if name == "harmonise" else name
            raise InputError(
                f"{name} is not for enrol: each site says how its file is read, gosta node request "
                f"--{own} ..."
            )
        made = dataclasses.replace(made, graph=graph or "")
        invitation = enrolment.invite(folder, made, ca, secret)
        print(summary.invitation_summary(folder, made, invitation, has_suggested_bins))
        return
    hosts = addresses.host or ["127.0.0.1"]
    rate = addresses.exchanges_per_second
    network = Network.create(folder, made, hosts, addresses.port, rate, ca, secret)
    print(summary.network_summary(network, made, has_suggested_bins))
    if chosen is not None and settings is None:
        found = options.find_assumptions(
            chosen, goal.statistic, rows.statistic_options(task.option)
        )
        print("\n".join(found.lines))


def _of_study(
    place: Path, task: Task, rows: options.Rows, private: options.Private
) -> tuple[PrivateSettings, Goal, Roles]:
    """Return what a study says of a network; an error if options say it too."""
    from gosta.net.deploy.plan import Goal, Roles
    from gosta.studies.definition import read_study

    kept = ("n", "path", *(field.name for field in dataclasses.fields(options.Reading)))
    read_only = options.Rows(**{name: getattr(rows, name) for name in kept})
    if task != Task() or private != options.Private() or rows != read_only:
        raise InputError(
            f"study = {str(place)!r} says what is computed, of which columns and how: change it "
            "there, and leave these options out"
        )
    study = read_study(place)
    level = study.study.confidence_level
    goal = Goal(study.statistics, options=study.options, confidence_level=level)
    roles = Roles(
        label=study.study.label, classes=study.classes, drop_missing=True, dictionary=study.columns
    )
    return study.private, goal, roles


def _private_settings(private: options.Private, data: Data | None) -> PrivateSettings | None:
    """Return the settings of private sums; with noise and no number of bins, few bins."""
    from msgspec.structs import replace

    from gosta.private.settings import check_settings, suggested_bins

    settings = private.settings()
    if settings is None or private.bins is not None:
        return settings
    check_settings(replace(settings, strata={}))  # values of strata may be taken from the data
    rows = None if data is None else len(data)
    return replace(settings, bins=suggested_bins(rows, settings.epsilon))


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
    from gosta.net.deploy import summary
    from gosta.net.deploy.authority import Passphrase
    from gosta.net.deploy.network import Network

    names = [name.strip() for name in (neighbours or "").split(",") if name.strip()]
    secret, form = Passphrase(passphrase_file), reading.settings()
    network = Network.read(folder)
    change = network.add(data, names, host, port, exchanges_per_second, secret, form)
    node, joined = folder / change.name, ", ".join(other for other, _ in change.new_edges)
    print(f"{node}: a new node, with neighbours {joined}")
    _print_lines(summary.manual_changes(folder, change), summary.bundle_steps(folder))
    if data is None:
        print(f"next: put its rows there as data.csv, then: gosta node {node}")
    else:
        print(
            f"next: gosta node {node}; a running 'gosta network up {folder}' starts it "
            "automatically"
        )


def remove(
    folder: options.NetworkFolder,
    name: Annotated[str, typer.Argument(help="The node.")],
    delete: Annotated[bool, "Delete its folder; otherwise it is renamed."] = False,
    passphrase_file: PassphraseFile = None,
) -> None:
    """Remove a node from a network and revoke its key; the others go on without its rows."""
    from gosta.net.agreements import read_agreements
    from gosta.net.deploy import summary
    from gosta.net.deploy.authority import Passphrase
    from gosta.net.deploy.network import Network

    has_left = read_agreements(folder / name).leaves
    change = Network.read(folder).remove(name, delete, Passphrase(passphrase_file))
    network = Network.read(folder)
    print(f"{folder}: removed {name}, {len(network.config.nodes)} nodes are left")
    for a, b in change.new_edges:
        print(f"  {a} and {b} are neighbours now, to keep the network connected")
    _print_lines(summary.manual_changes(folder, change), summary.bundle_steps(folder))
    if not delete and (folder / f"{name}.removed").is_dir():
        print(f"  its folder was renamed to {folder / name}.removed")
    _print_lines(summary.removal_cost(network, name, has_left))


def agree(
    folder: Annotated[
        Path, typer.Argument(help="A node's folder; or the network's, for all nodes that are here.")
    ],
    sites: Annotated[
        list[str], typer.Argument(help="Sites whose exact sums may be computed.", metavar="SITE...")
    ],
    yes: Annotated[bool, "Agree without being asked."] = False,
) -> None:
    """Agree that a site's exact sums may be computed; there is no way back.

    They follow from totals with and without the site. Sums without noise wait for that when a site
    is removed, or does not answer any more. With the name of a node's own site, its operator agrees
    that its own sums may be computed. Sums with noise wait where a site let so many epochs fail
    that each further one would waste epsilon. A running node sees it within seconds.
    """
    from gosta.net.agreements import add_agreement, check_sites
    from gosta.net.deploy.leaving import find_nodes, strangers

    check_sites(sites)
    agreeing = find_nodes(folder)
    nodes = agreeing.nodes
    print(*map(agreeing.consequence, sites), "There is no way back.", sep="\n")
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
    """Create new keys and certificates for nodes whose folders are here."""
    from gosta.net.deploy import summary
    from gosta.net.deploy.authority import Passphrase
    from gosta.net.deploy.network import Network

    made = Network.read(folder).certify(names or [], Passphrase(passphrase_file))
    print(
        f"{folder}: new keys and certificates for {shorten(made, 12) or 'no node'}; running nodes "
        "reload them"
    )
    _print_lines(summary.bundle_steps(folder))


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
    """Make sites members: issue their certificates, sign the member list, write their bundles."""
    from gosta.net.deploy import enrolment, summary
    from gosta.net.deploy.authority import Passphrase
    from gosta.net.deploy.network import Network

    new = enrolment.read_requests(folder, requests or [])
    if new:
        print(summary.requests_table(Network.read(folder), new))
        options.confirm("Did each site read out the same fingerprint?", yes)
    listed = enrolment.sign(folder, new, certificate or [], Passphrase(passphrase_file))
    count = len(listed.members)
    print(f"{folder}: member list {listed.serial}, {count} member{'s' * (count > 1)}")
    _print_lines(summary.bundle_steps(folder))


def rotate_authority(
    folder: options.NetworkFolder,
    authority: Annotated[
        Path | None,
        "A folder with cert.pem and key.pem of the new authority, in the first step; by default "
        "one is made.",
    ] = None,
    passphrase_file: PassphraseFile = None,
) -> None:
    """Replace the network's authority while nodes run, in three steps: one for each call."""
    from gosta.net.deploy import summary
    from gosta.net.deploy.authority import Passphrase
    from gosta.net.deploy.network import Network

    step = Network.read(folder).rotate_authority(authority, Passphrase(passphrase_file))
    done = ("all members trust the new authority too", "all certificates are of the new authority")
    print(
        f"{folder}: step {step} of 3: {(*done, 'the old authority is no longer trusted')[step - 1]}"
    )
    _print_lines(summary.bundle_steps(folder))
    if step < 3:
        print(
            "next, once every node has reloaded this: gosta network rotate-authority "
            f"{shlex.quote(str(folder))}"
        )


def _print_lines(*parts: Iterator[str]) -> None:
    for line in itertools.chain(*parts):
        print(line)
