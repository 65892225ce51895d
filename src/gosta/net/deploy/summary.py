"""Summaries of new networks, requests, member lists and changes, and the steps that come next."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from gosta.errors import shorten
from gosta.net import members
from gosta.net.addresses import OUTBOUND
from gosta.net.config import MIN_SITES, NODE_FILE, Task, is_for_one_row_each
from gosta.net.deploy import bundles, certificates
from gosta.net.deploy.bundles import Invitation, Request
from gosta.net.deploy.network import Change, Network, links_of
from gosta.net.deploy.node_folder import BUNDLES, NodeFolder
from gosta.net.deploy.plan import Plan
from gosta.net.deploy.policies import budget_words
from gosta.net.deploy.terms import declared_rows, has_bounds, row_words, terms_of
from gosta.net.members import MemberList
from gosta.net.node.rows import sums_of
from gosta.private.policy import Policy
from gosta.statistics.references import FEW_TITLES, parse_references
from gosta.views import numbers, terminal

MAX_NAMES = 12  # that are listed
# Terms of private sums that are not in the summary of a new network.
OMITTED_TERMS = ("mode", "interval", "score", "label")
MOST_TERMS = 12  # of a member list that are all shown
LONG_TERM = 160  # characters, where there are more
# Terms that are shown on request there, as are those of each column and option.
DETAILS = ("ranges", "bins", "numbers", "layout", "interval", "classes", "incomplete rows")

Entries = list[tuple[str, str]]


def network_summary(network: Network, plan: Plan, has_suggested_bins: bool) -> str:
    """Return the summary of a network with nodes."""
    nodes = network.config.nodes
    edges = f"{numbers.count(len(plan.edges), 'edge')} ({plan.graph})"
    entries = [
        *_remarks(plan, has_suggested_bins),
        *_interval(plan),
        *_rows(network, plan),
        ("addresses", _places(nodes.values())),
    ]
    if outbound := [name for name, address in nodes.items() if not address]:
        entries.append(("dial out only", shorten(outbound, MAX_NAMES)))
    key = network.folder / "authority" / "key.pem"
    entries.append(("keys", f"{key} signs new nodes: keep it safe"))
    title = f"{network.folder}: {plan.nodes} nodes, {edges}, for {_task_words(plan.task)}"
    return "\n".join([title, terminal.definitions(entries), *_next_steps(network, plan)])


def invitation_summary(
    folder: Path, plan: Plan, invited: Invitation, has_suggested_bins: bool
) -> str:
    """Return the summary of a network whose sites enrol."""
    file = folder / bundles.INVITATION_FILE
    entries = [
        *_remarks(plan, has_suggested_bins),
        ("invitation", f"{file}, for all sites; it holds no secret"),
        ("fingerprint", f"{bundles.fingerprint(invited)}, which sites compare with theirs"),
        ("keys", f"{folder / 'authority'} signs certificates and the member list: keep it safe"),
    ]
    return "\n".join(
        [
            f"{folder}: a network without sites yet, for {_task_words(plan.task)}",
            terminal.definitions(entries, wrap=True),
            "next, each site: gosta node request invitation.json FOLDER --name NAME --address "
            "HOST:PORT --data FILE",
            f"then, with the request.json of each: gosta network sign {_quoted(folder)} REQUEST...",
        ]
    )


def request_summary(folder: Path, invited: Invitation, made: Request) -> str:
    """Return the summary of a site's request."""
    task = invited.network
    declared = f"{made.rows} declared" if made.rows else "none declared"
    if task.private and made.rows:
        declared = f"declares {row_words(made.rows, is_bound=True)}, which is public"
    entries = [("statistic", _task_words(task)), ("rows", declared)]
    meanings = task.dictionary.items()
    entries += [(f"column {name}", column.describe()) for name, column in meanings]
    if budget := budget_words(task):
        entries.append(("budget", budget))
    entries += [
        (
            "invitation",
            f"{bundles.fingerprint(invited)}: compare this with the coordinator's, on the phone",
        ),
        ("request", f"{bundles.fingerprint(made)}: read this out to the coordinator"),
    ]
    page = NodeFolder(folder).read().node.status_page
    entries.append(("status page", f"{page}; another one: status_page in {NODE_FILE}"))
    return "\n".join(
        [
            f"{folder}: a request of {made.name} to join network {made.network}",
            terminal.definitions(entries),
            f"next: send {folder / bundles.REQUEST_FILE} to the coordinator; it holds no secret, "
            f"and the key stays in {folder}",
            f"then, with the bundle that comes back: gosta node join BUNDLE {_quoted(folder)}",
        ]
    )


def requests_table(network: Network, made: Sequence[Request]) -> str:
    """Return a table of requests with what they change."""
    signed = network.members()
    keys = {} if signed is None else signed.list.keys
    is_private = network.task.private is not None
    heading = ["site", "", "address", "declares" if is_private else "rows", "fingerprint"]
    rows = [heading]
    for new in made:
        change = "new site"
        if new.name in network.config.nodes:
            key = certificates.check_request(new.request.encode(), new.network, new.name)
            news = ["new key"] * (keys.get(new.name) != key)
            news += ["new address"] * (network.config.nodes[new.name] != new.address)
            change = ", ".join(news) or "renewed"
        count = row_words(new.rows, is_bound=True) if is_private else str(new.rows)
        address = new.address or OUTBOUND
        shown = count if new.rows else "-"
        rows.append([new.name, change, address, shown, bundles.fingerprint(new)])
    return terminal.columns(rows)


def list_summary(listed: MemberList, has_all: bool = False) -> str:
    """Return what a list says: what is computed, in short or with all terms, and its members."""
    is_bound = has_bounds(listed)
    rows = [["member", "declares" if is_bound else "rows", "key"]]
    for member in listed.members:
        count = row_words(member.rows, is_bound) if is_bound else f"{member.rows:,}"
        key = members.fingerprint(bytes.fromhex(member.key))
        rows.append([member.name, count if member.rows else "-", key])
    return "\n".join(
        [
            f"member list {listed.serial} of network {listed.network}, signed by its coordinator",
            f"fingerprint of the list: {members.list_fingerprint(listed)}; compare it with the "
            "coordinator's, on the phone",
            terminal.definitions(listed.policy.items() if has_all else _essential(listed.policy)),
            terminal.columns(rows, right=[1]),
        ]
    )


def _essential(terms: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the terms without the details of columns, bins and options where there are many."""
    if len(terms) <= MOST_TERMS:
        return [*terms.items()]
    details = [key for key in terms if key.startswith(("column ", "option ")) or key in DETAILS]
    shown = [(key, text) for key, text in terms.items() if key not in details]
    short = [
        (key, text if len(text) <= LONG_TERM else f"{text[:LONG_TERM].rpartition(', ')[0]}, ...")
        for key, text in shown
    ]
    return [*short, ("details", f"{len(details)} more terms, shown with --all")]


def bundle_steps(folder: Path) -> Iterator[str]:
    """Yield what has to be done with the bundles of sites that enrolled."""
    found = sorted((folder / BUNDLES).glob("*.json"))
    signed = Network.read(folder).members()
    if not found or signed is None:
        return
    fingerprint = members.list_fingerprint(signed.list)
    paths = shorten([str(path) for path in found], 3)
    yield f"  fingerprint of list {signed.list.serial}: {fingerprint}; read it out to each site"
    yield f"  send each site its bundle ({paths}); it holds no secret"
    yield "  each site runs: gosta node join BUNDLE FOLDER"


def manual_changes(folder: Path, change: Change) -> Iterator[str]:
    """Yield what has to be changed by hand where a neighbour's folder is on another machine."""
    network = Network.read(folder).config
    enrolled = {path.stem for path in (folder / BUNDLES).glob("*.json")}
    for name in change.elsewhere:
        if name in enrolled:
            continue
        for section, places in links_of(network, name)._asdict().items():
            if places:
                lines = ", ".join(f'{other} = "{where}"' for other, where in places.items())
                yield (
                    f"  {name}'s folder is on another machine; set in its node.toml, in "
                    f"[{section}]: {lines}"
                )


def removal_cost(network: Network, name: str, has_left: bool) -> Iterator[str]:
    """Yield what totals without a removed site cost those that remain of private sums."""
    private = network.task.private
    if private is None:
        return
    if len(network.config.nodes) < MIN_SITES:
        yield (
            f"  by default, sites take part in sums over {MIN_SITES} sites or more only: min_sites "
            "in policy.toml"
        )
    if private.epsilon is not None:
        yield (
            f"  the next release, without {name}, costs each site epsilon {private.epsilon:g} of "
            "its budget"
        )
    elif has_left:
        yield f"  {name} has left, so that the others need not agree to totals without it"
    else:
        yield "  sums without noise wait until each remaining site's operator runs:"
        yield f"  gosta network agree {_quoted(network.folder)} {name}"
        yield (
            f"  for the totals with and without {name} give its exact sums; none waits if it left "
            "by: gosta node leave"
        )


def _remarks(plan: Plan, has_suggested_bins: bool) -> Entries:
    """Return the terms of private sums, what was chosen for the user, and what may surprise."""
    settings = plan.task.private
    if settings is None:
        return []
    terms = terms_of(plan.task)
    found = [(key, words) for key, words in terms.items() if key not in OMITTED_TERMS]
    if has_suggested_bins and settings.epsilon is not None:
        few = f"{settings.bins}, since each has noise; --bins sets another number"
        found.append(("few bins", few))
    limit = Policy().max_bins
    if settings.bins > limit:
        text = f"sites whose policy has the default max_bins = {limit} take no part"
        found.append(("warning", f"{settings.bins:,} bins: {text}"))
    if settings.epsilon is not None:
        found.append(("budget", budget_words(plan.task)))
    if plan.ranges:
        columns = f"range{'s' * (len(plan.ranges) > 1)} of {shorten(list(plan.ranges), MAX_NAMES)}"
        text = f"outwards, the {columns}, from the data; --range declares others"
        found.append(("rounded", text))
    if plan.rounded_options:
        text = f"{', '.join(plan.rounded_options)}, from the data; --option sets another value"
        found.append(("rounded", text))
    return found


def _interval(plan: Plan) -> Entries:
    level, reason = plan.task.confidence_level, plan.no_interval
    if level is not None:
        but = f", but not of all: {reason}" if reason else ""
        return [("interval", f"{numbers.percent(level, 'g')} at every node{but}")]
    return [("interval", f"none: {reason}")] if reason else []


def _rows(network: Network, plan: Plan) -> Entries:
    """Return how many rows the nodes have, and what of that the member list says."""
    if not plan.counts:
        return []
    counts = dict(zip(network.config.nodes, plan.counts, strict=True))
    sites = plan.sites or [""] * len(counts)
    sizes = [
        f"{name} {count}" + f" of {site}" * bool(site)
        for (name, count), site in zip(counts.items(), sites, strict=True)
    ]
    entries = [("rows", f"{sum(plan.counts)}: {shorten(sizes, MAX_NAMES)}")]
    if network.task.private is not None:
        bounds = {name: declared_rows(network.task, count) for name, count in counts.items()}
        declared = [f"{name} {row_words(rows, is_bound=True)}" for name, rows in bounds.items()]
        entries.append(("declares", shorten(declared, MAX_NAMES)))
    return entries


def _places(nodes: Iterable[str]) -> str:
    reachable = [address for address in nodes if address]
    ends = dict.fromkeys((*reachable[:1], *reachable[-1:]))
    pages = "status pages on the same machine only, where node.toml says"
    return "; ".join(filter(None, [" to ".join(ends), pages]))


def _next_steps(network: Network, plan: Plan) -> Iterator[str]:
    folder, task = network.folder, plan.task
    if plan.counts:
        place = _quoted(folder)
        yield f"next:\n  gosta network up {place}\n  gosta network verify {place}"
        return
    first = folder / next(iter(network.config.nodes))
    rows = "row" if is_for_one_row_each(task.protocol) else "rows"
    yield "next, each site:"
    yield (
        f"  receives its folder ({first} for the first) over a secure channel, because it contains "
        "its key"
    )
    yield f"  puts its {rows} there as data.csv ({_data_words(task) or f'{rows} of numbers'}),"
    yield "  or names another file in node.toml, where its addresses can be changed too"
    if task.private is not None:
        yield (
            "  decides what it takes part in, in policy.toml there, and checks all: gosta check "
            f"{first}"
        )
    yield f"  starts it: gosta node {first}"
    yield (
        "or, to try it on this machine, with a data.csv in each node's folder: gosta network up "
        f"{folder}"
    )


def _data_words(task: Task) -> str:
    """Return in words which columns a site's data file has."""
    named = [
        name
        for reference in parse_references(task.statistic)
        for name in (*reference.columns, reference.weights)
        if name
    ]
    columns = list(dict.fromkeys([*task.columns, *named]))
    if task.fit is not None:
        columns = list(sums_of(task).columns)
    classes = ", ".join(map(str, task.classes))
    strata = dict(task.private.strata) if task.private is not None else {}
    if task.fit is not None:
        strata |= task.fit.levels
    words = [
        f"column{'s' * (len(columns) > 1)} {', '.join(columns)}" * bool(columns),
        f"scores in {', '.join(task.scores)}" * bool(task.scores),
        f"times in {task.time}" * (task.time is not None),
        f"events (1, or 0) in {task.event}" * (task.event is not None),
        f"classes {classes} in {task.label or 'label'}" * bool(classes),
        *(f"{shorten([*map(str, levels)])} in {column}" for column, levels in strata.items()),
    ]
    return "; ".join(filter(None, words))


def _task_words(task: Task) -> str:
    titles = [reference.title for reference in parse_references(task.statistic)]
    what = task.statistic if len(titles) <= FEW_TITLES else f"{len(titles)} statistics"
    return f"{what} by {'private sums' if task.private else task.protocol}"


def _quoted(folder: Path) -> str:
    return shlex.quote(str(folder))
