"""``gosta network``: make a network of real nodes, run it on this machine, change it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gosta.cli import options
from gosta.errors import InputError, shorten

if TYPE_CHECKING:
    from gosta.net.config import NetworkFile
    from gosta.net.deploy.folders import Change
    from gosta.net.deploy.plan import Plan

INIT_EXAMPLES = """
[bold]Examples[/bold]

gosta network init my-network/ --data breast-cancer

gosta network init my-network/ --data patients.csv --statistic auc --score risk --label died --nodes 20 --deal even

gosta network init my-network/ --statistic auc --score risk --label diagnosis --classes benign,malignant --nodes 5
"""
ADD_EXAMPLES = """
[bold]Examples[/bold]

gosta network add my-network/

gosta network add my-network/ --data rows.csv --neighbours node-1,node-2
"""
CERTIFY_EXAMPLES = """
[bold]Examples[/bold]

gosta network certify my-network/

gosta network certify my-network/ node-3
"""
FORGET_EXAMPLES = """
[bold]Examples[/bold]

gosta network forget my-network/ node-3

gosta network forget my-network/ node-3 --delete
"""

Folder = Annotated[Path, typer.Argument(help="The network's folder.")]
Rate = Annotated[float, typer.Option(help="Meetings that a node begins in a second.")]


def init(
    folder: Annotated[Path, typer.Argument(help="The folder to make.")],
    data: Annotated[
        str | None,
        typer.Option(
            help="A name from 'gosta datasets', or a file: its rows are dealt to the nodes. Without it, each site "
            "brings a file of its own."
        ),
    ] = None,
    statistic: options.StatisticName = "auc",
    graph: Annotated[
        str | None,
        typer.Option(
            "--graph",
            "-g",
            help="A family of graphs ('gosta graph --help'), or an edge-list file; by default watts-strogatz, complete "
            "for fewer than 6 nodes.",
        ),
    ] = None,
    protocol: Annotated[str, typer.Option("--protocol", "-p", help="tracking or gosta-async.")] = "tracking",
    nodes: Annotated[
        int | None, typer.Option(help="How many nodes; by default 8, or as many as the edge-list file or --by has.")
    ] = None,
    deal: options.Deal = None,
    by: options.By = None,
    seed: Annotated[int, typer.Option(help="Seed of graph and deal.")] = 0,
    interval: Annotated[
        str | None,
        typer.Option(help="Level of the confidence intervals, or none; by default 95% where the statistic has them."),
    ] = None,
    columns: options.Columns = None,
    label: options.Label = None,
    score: options.Score = None,
    classes: Annotated[
        str | None, typer.Option(help="All classes of all sites, a,b: the last one is the positive one.")
    ] = None,
    option: options.Option = None,
    drop_missing: options.DropMissing = False,
    n: options.Rows = None,
    path: options.OwnFile = None,
    host: Annotated[
        list[str] | None, typer.Option(help="Where the nodes are: given once, or once for each. Default 127.0.0.1.")
    ] = None,
    port: Annotated[int, typer.Option(help="The first port; each node has two, for neighbours and status.")] = 7400,
    rate: Rate = 10.0,
    authority: Annotated[
        Path | None, typer.Option(help="A folder with cert.pem and key.pem of your own certificate authority.")
    ] = None,
) -> None:
    """Make the folders of a network: settings, keys and certificates of each node, and its data if there is any."""
    from gosta.net.deploy import folders, plan

    none = interval is not None and interval.lower() == "none"
    level = None if none else options.fraction("interval", interval or "95%", "none, or a level such as 95% or 0.95")
    graph = graph or ("complete" if nodes is not None and nodes < 6 else "watts-strogatz")
    goal = plan.Goal(statistic, protocol, options.values(option), level, insist=interval is not None)
    if data is None:
        given = {"deal": deal, "by": by, "n": n, "path": path}
        for name in (name for name, value in given.items() if value is not None):
            raise InputError(f"{name} goes with --data; without it, each site brings a file of its own")
        plain = tuple(name for text in columns or [] for name in text.split(","))
        named = tuple(name.strip() for name in classes.split(",")) if classes else ()
        made = plan.apart(goal, graph, nodes, seed, plain, label, score, named, drop_missing)
    else:
        if classes is not None:
            raise InputError("classes goes with sites' own files; the classes of --data are those that it has")
        table = options.table(data, n, path, columns, label, score, drop_missing)
        made = plan.dealt(goal, table, graph, nodes, deal, by, seed)
    network = folders.make(folder, made, host or ["127.0.0.1"], port, rate, authority)
    print("\n".join(_made(folder, made, network)))


def _made(folder: Path, plan: Plan, network: NetworkFile) -> list[str]:
    """What was made, and what to do next."""
    task, first = plan.task, next(iter(network.nodes))
    lines = [
        f"{folder}: {plan.nodes} nodes, {len(plan.edges)} edges ({plan.graph}), for {task.statistic} by {task.protocol}"
    ]
    if task.interval is not None:
        lines.append(f"  interval    {100 * task.interval:g} % at every node")
    elif plan.no_interval:
        lines.append(f"  interval    none: {plan.no_interval}")
    if plan.tables:
        sizes = [f"{name} {len(table)}" for name, table in zip(network.nodes, plan.tables, strict=True)]
        lines.append(f"  rows        {sum(map(len, plan.tables))}: {shorten(sizes, 12)}")
    where = list(network.nodes.values())
    lines.append(f"  addresses   {where[0]} to {where[-1]}; status pages one port above, for the same machine only")
    lines.append(f"  keys        {folder / 'authority' / 'key.pem'} signs new nodes: keep it safe")
    if plan.tables:
        place = shlex.quote(str(folder))
        return [*lines, "next:", f"  gosta network up {place}", f"  gosta network verify {place}"]
    wanted = [
        f"column{'s' * (len(task.columns) > 1)} {', '.join(task.columns)}" * bool(task.columns),
        f"scores in {task.score}" * (task.score is not None),
        f"classes {', '.join(map(str, task.classes))} in {task.label or 'label'}" * bool(task.classes),
    ]
    return [
        *lines,
        "next, each site:",
        f"  gets its folder ({folder / first} for the first) by a way that is safe, since it holds its key",
        f"  puts its table there as data.csv ({'; '.join(filter(None, wanted)) or 'rows of numbers'}),",
        "  or names another file in node.toml, where its addresses can be changed too",
        f"  starts it: gosta node {folder / first}",
        f"or, to try it on this machine, with a data.csv in each node's folder: gosta network up {folder}",
    ]


def add(
    folder: Folder,
    data: Annotated[Path | None, typer.Option(help="The new node's rows; without it, put them there later.")] = None,
    neighbours: Annotated[
        str | None, typer.Option(help="Names, separated by commas; by default two nodes that have the fewest.")
    ] = None,
    host: Annotated[str, typer.Option(help="Where the node is.")] = "127.0.0.1",
    port: Annotated[int | None, typer.Option(help="Its port, and the next one; by default the next free ones.")] = None,
    rate: Rate = 10.0,
) -> None:
    """Add a node to a network; nodes that are running notice."""
    from gosta.net.deploy import folders

    names = [name.strip() for name in (neighbours or "").split(",") if name.strip()]
    change = folders.add(folder, data, names, host, port, rate)
    joined = ", ".join(other for other, _ in change.edges)
    print(f"{folder / change.name}: a new node, joined to {joined}")
    _tell_away(folder, change)
    if data is None:
        print(f"next: put its rows there as data.csv, then: gosta node {folder / change.name}")
    else:
        print(f"next: gosta node {folder / change.name}; a running 'gosta network up {folder}' starts it by itself")


def forget(
    folder: Folder,
    name: Annotated[str, typer.Argument(help="The node.")],
    delete: Annotated[bool, typer.Option("--delete", help="Delete its folder; otherwise it is renamed.")] = False,
) -> None:
    """Take a node that left for good out of a network; the others, which notice, begin anew without its rows."""
    from gosta.net.deploy import folders

    change = folders.forget(folder, name, delete)
    print(f"{folder}: {name} is no part of it any more, {len(folders.overview(folder).nodes)} nodes are left")
    for a, b in change.edges:
        print(f"  {a} and {b} are neighbours now, as the rest would have fallen apart")
    _tell_away(folder, change)
    if not delete and (folder / f"{name}.forgotten").is_dir():
        print(f"  its folder is {folder / name}.forgotten now")


def certify(
    folder: Folder,
    names: Annotated[list[str] | None, typer.Argument(help="The nodes; by default all.")] = None,
) -> None:
    """Make new keys and certificates for nodes, before the old ones end; restart the nodes then."""
    from gosta.net.deploy import folders

    made = folders.certify(folder, names or [])
    print(f"{folder}: new keys and certificates for {shorten(made, 12) or 'nobody'}; restart these nodes")


def _tell_away(folder: Path, change: Change) -> None:
    """What has to be done by hand where a neighbour's folder is at its site."""
    from gosta.net.deploy.folders import neighbours_of, overview

    for name in change.away:
        wanted = ", ".join(f'{other} = "{where}"' for other, where in neighbours_of(overview(folder), name).items())
        print(f"  {name}'s folder is not here; its node.toml has to say in [neighbours]: {wanted}")
