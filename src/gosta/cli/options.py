"""Options that several commands share, their validation, and their conversion to values."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

import typer

from gosta.errors import InputError, shorten
from gosta.runtime.extras import require_extra
from gosta.views import terminal

if TYPE_CHECKING:
    import socket

    from gosta.datasets import Data
    from gosta.private.settings import PrivateSettings
    from gosta.sketches import Bins
    from gosta.statistics import Statistic

PAGE_ADDRESS = "127.0.0.1:7399"  # of live pages; below the ports of nodes, which begin at 7400
DATA_HELP = (
    "A name from 'gosta datasets', a file (.csv, .tsv, .csv.gz, .parquet, .feather, .jsonl, "
    ".xlsx, .npy), a folder of "
    "files, or - for the standard input."
)
DataName = Annotated[str, typer.Argument(help=DATA_HELP)]
DataNames = Annotated[
    list[str] | None, typer.Argument(help=f"{DATA_HELP} Several files are read as one table.")
]
StatisticName = Annotated[
    str,
    "A name from 'gosta statistics', or FILE.py:NAME for your own; several separated by commas, "
    "each with its columns if you like: auc,kendall-tau:age+risk.",
    "-s",
]
StatisticOptions = Annotated[list[str] | None, "An option of the statistic, as name=value.", "-o"]
Separator = Annotated[
    str | None, "Character between the values of a text file, tab for tabs; by default found."
]
Decimal = Annotated[str, "Decimal sign of a text file: . or ,"]
Encoding = Annotated[str, "Encoding of a text file, such as latin-1."]
Header = Annotated[
    str, "Whether the first line holds names: yes, no, or auto: no, if it is all numbers."
]
Sheet = Annotated[str | None, "Sheet of an Excel file; by default the first."]
Skip = Annotated[
    int | None, "Lines above the names of columns, such as a title; by default found if certain."
]
SkipEnd = Annotated[
    int | None, "Rows at the end that are left out; by default one of totals, if it is certain."
]
RenamedColumns = Annotated[
    list[str] | None,
    "A column by another name than in the file, NAME=NAME_IN_FILE, as died=verstorben.",
]
RenamedValues = Annotated[
    list[str] | None, "Values by other names, COLUMN:IN_FILE=NAME, as died:ja=yes,nein=no."
]
Scale = Annotated[
    list[str] | None,
    "A factor that makes another unit, COLUMN=FACTOR, as risk=0.01; cells may carry their unit.",
]
MissingCodes = Annotated[
    list[str] | None,
    'Values that mean "missing": k.A.,-9, or one value of a column, age:-9 or risk:104,2%.',
]
DropMissing = Annotated[bool, "Leave out rows with missing or infinite values."]
PageAddress = Annotated[
    str | None, f"Where: host:port, by default {PAGE_ADDRESS}, or another free port."
]
NetworkFolder = Annotated[Path, typer.Argument(help="The network's folder.")]
GraphName = Annotated[
    str | None,
    "A family of graphs ('gosta graph --help'), as watts-strogatz:k=8,p=0.1 with parameters, or "
    "an edge-list file; by default watts-strogatz, complete for fewer than 6 nodes.",
    "-g",
]
Runs = Annotated[int, "Independent runs."]
Seed = Annotated[int, "Seed of the graph and of the runs."]
Interval = Annotated[str | None, "Confidence level of an interval: 95% or 0.95."]
Json = Annotated[bool, "Print JSON, one object per line.", "--json"]
Plot = Annotated[
    Path | None,
    "File of the plot, .png, .svg or .pdf; none: no plot. With --json there is one only if a file "
    "is given.",
]
BinCount = Annotated[int | None, "Bins of each column; by default 64, or with --epsilon 16 to 64."]
Ranges = Annotated[
    list[str] | None,
    "Lowest and highest value, COLUMN=LOW:HIGH, or LOW:HIGH for columns not named.",
    "--range",
]
Edges = Annotated[
    list[str] | None, "Edges between bins, COLUMN=A,B,C, instead of bins of equal width."
]
FindEdges = Annotated[bool, "A first sum finds edges, so that bins hold equally many rows."]
Strata = Annotated[
    list[str] | None,
    "Results for each value of a column, COLUMN=A,B; with data in one place also COLUMN,COLUMN.",
]
DEFAULT_PROTOCOL = "carried-means"  # as `gosta.protocols.DEFAULT`, which takes longer to import
RULES = ("column", "value", "scale", "na_values")  # options of harmonisation
# Values that `fraction` takes.
ERROR = "an error such as 1% or 0.01"
LEVEL = "a level such as 95% or 0.95"


@dataclass(frozen=True)
class Reading:
    """How a site's data file is read."""

    TITLE: ClassVar = "Reading the data file"
    sep: Separator = None
    decimal: Decimal = "."
    encoding: Encoding = "utf-8"
    header: Header = "auto"
    sheet: Sheet = None
    skip: Skip = None
    skip_end: SkipEnd = None
    column: RenamedColumns = None
    value: RenamedValues = None
    scale: Scale = None
    na_values: MissingCodes = None

    def settings(self) -> dict[str, Any]:
        """Return those that are not the default."""
        given = {
            one.name: getattr(self, one.name)
            for one in fields(self)
            if getattr(self, one.name) != one.default
        }
        rules = {name: given.pop(name) for name in RULES if name in given}
        if rules:
            from gosta.datasets.harmonise import parse

            given["harmonise"] = parse(**rules)
        return given | ({"sep": "\t"} if self.sep in ("tab", "\\t") else {})


@dataclass(frozen=True)
class Rows:
    """Which rows and columns of the data are used."""

    TITLE: ClassVar = "Rows and columns"
    columns: Annotated[list[str] | None, "Columns to use: a,b or given several times.", "-c"] = None
    label: Annotated[str | None, "Column of classes."] = None
    score: Annotated[
        str | None,
        "Column of scores, or those of two models, a,b; by default rows are projected on the "
        "difference of the class means.",
    ] = None
    time: Annotated[str | None, "Column of times to an event."] = None
    event: Annotated[
        str | None, "Column that says whether the event was seen then (1) or not (0)."
    ] = None
    weights: Annotated[
        str | None, "Column of row weights: a pair of rows counts by the product of its weights."
    ] = None
    positive: Annotated[
        str | None,
        "The positive class; by default yes of yes and no (ja, oui, dead, case, ...), or the last.",
    ] = None
    drop_missing: DropMissing = False
    n: Annotated[
        int | None, "Number of rows: the first n, or how many to generate of synthetic data."
    ] = None
    path: Annotated[Path | None, "Your copy of the file behind wine-quality-red or svmguide3."] = (
        None
    )
    sep: Separator = None
    decimal: Decimal = "."
    encoding: Encoding = "utf-8"
    header: Header = "auto"
    sheet: Sheet = None
    skip: Skip = None
    skip_end: SkipEnd = None
    column: RenamedColumns = None
    value: RenamedValues = None
    scale: Scale = None
    na_values: MissingCodes = None

    def load(self, data: str | Sequence[str], seed: int | None = None) -> Data:
        """Load data by name, file or several files."""
        return load_files(data, n=self.n, seed=seed, path=self.path, **self.reading())

    def reading(self) -> dict[str, Any]:
        """Return how a file is to be read, where that is not the default."""
        return Reading(*(getattr(self, one.name) for one in fields(Reading))).settings()

    def reading_words(self) -> list[str]:
        """Return the words of a command that say which rows are read, and how."""
        words = []
        for name in ("weights", "n", "path", *(one.name for one in fields(Reading))):
            value = getattr(self, name)
            given = value if isinstance(value, list) else [value]
            if value != getattr(type(self), name):
                words += [w for one in given for w in (f"--{name.replace('_', '-')}", str(one))]
        return words

    def select(self, data: Data) -> Data:
        """Select the columns.

        A text such as "a,b" that is itself the name of a column is that column.
        """
        names = [
            name
            for text in self.columns or []
            for name in ([text] if text in data.columns else text.split(","))
        ]
        score = self.score if self.score in data.columns else self.scores()
        return data.select(
            names or None, self.label, score, self.drop_missing, self.time, self.event
        )

    def scores(self) -> str | tuple[str, ...] | None:
        """Return the column of scores, or several as a tuple."""
        if self.score is None or "," not in self.score:
            return self.score
        return tuple(name.strip() for name in self.score.split(","))

    def refuse_weights(self, what: str) -> None:
        """Raise an error if rows are to have weights, which something has not."""
        if self.weights is not None:
            raise InputError(f"weights = {self.weights!r}: {what} have none; leave it out")

    def weighted(self, statistics: str) -> str:
        """Return the text that names statistics, of rows with weights if a column was given."""
        from gosta.statistics.references import parse_references

        if self.weights is None:
            return statistics
        return ",".join(
            f"{one.name}@{self.weights}{one.title[len(one.name) :]}"
            for one in parse_references(statistics)
        )

    def statistic_options(self, texts: Sequence[str] | None) -> dict[str, Any]:
        """Return options of a statistic: those given as name=value, and the positive class."""
        given = statistic_options(texts)
        if self.positive is not None:
            if "positive" in given:
                raise InputError("positive is given twice: leave out --option positive=...")
            given["positive"] = self.positive
        return given


@dataclass(frozen=True)
class Simulation:
    """What is estimated on which graph, and how often."""

    TITLE: ClassVar = "Simulation"
    statistic: StatisticName = "auc"
    option: StatisticOptions = None
    protocol: Annotated[str, "Names from 'gosta protocols', separated by commas.", "-p"] = (
        DEFAULT_PROTOCOL
    )
    graph: GraphName = None
    iterations: Annotated[
        int | None,
        "Edges drawn in a run; by default 100 times the number of nodes: 200 exchanges a node.",
    ] = None
    runs: Runs = 10
    seed: Seed = 0

    def __post_init__(self) -> None:
        from gosta.statistics.references import parse_references

        titles = [one.title for one in parse_references(self.statistic)]
        object.__setattr__(self, "statistic", ",".join(titles))  # no other names of statistics

    def settings(self, rows: Rows) -> dict[str, Any]:
        """Return arguments of `gosta.simulate`."""
        settings = {name: getattr(self, name) for name in ("graph", "iterations", "runs", "seed")}
        return settings | {"options": rows.statistic_options(self.option)}


@dataclass(frozen=True)
class Placement:
    """How rows are distributed to nodes."""

    TITLE: ClassVar = "Placement of rows"
    nodes: Annotated[
        int | None, "Number of nodes to distribute the rows to; by default one node per row."
    ] = None
    deal: Annotated[
        str | None, "zipf (default): a few nodes have many rows; even: all have equally many."
    ] = None
    by: Annotated[
        str | None,
        "A column: rows with equal values are at one node; with --nodes, rows with close values.",
    ] = None


@dataclass(frozen=True)
class Binning:
    """Bins of sums over rows in one place."""

    TITLE: ClassVar = "From sums in bins, as private networks compute it"
    bins: BinCount = None
    range_: Ranges = None
    edges: Edges = None
    find_edges: FindEdges = False
    strata: Strata = None

    def settings(self) -> Bins | None:
        """Return the bins, or None if none of the options is given."""
        from gosta.sketches import Bins

        if self == Binning():
            return None
        return Bins(
            64 if self.bins is None else self.bins,
            dict(map(parse_range, self.range_ or [])),
            dict(map(_edges, self.edges or [])),
            self.find_edges,
            dict(pair for text in self.strata or [] for pair in parse_strata(text)),
        )


@dataclass(frozen=True)
class Private:
    """Sums over the rows of all sites, of which no site shows its own."""

    TITLE: ClassVar = "Private sums"
    private: Annotated[
        bool, "No row leaves a site: only masked sums do, from which the statistic follows."
    ] = False
    bins: BinCount = None
    range_: Ranges = None
    edges: Edges = None
    find_edges: FindEdges = False
    strata: Strata = None
    epsilon: Annotated[
        float | None, "Differential privacy of one release; by default there is no noise."
    ] = None
    delta: Annotated[float | None, "Its second parameter, such as 1e-6; by default 0."] = None
    colluding: Annotated[
        int | None, "Sites that may combine what they know without weakening it; by default 1."
    ] = None
    deadline: Annotated[
        str | None, "Time for a site to join or contribute, as 90s, 10m (default) or 2h."
    ] = None

    def settings(self) -> PrivateSettings | None:
        """Return the settings of private sums, in which strata may lack their values.

        Without --private there are none.
        """
        from gosta.private.settings import PrivateSettings

        given = {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name != "private"
        }
        given = {
            name: value for name, value in given.items() if value is not None and value is not False
        }
        if not self.private:
            for name in given:
                raise InputError(
                    f"{name.strip('_')} is for private sums; add --private, or leave it out"
                )
            return None
        texts = {
            "ranges": given.pop("range_", []),
            "edges": given.pop("edges", []),
            "strata": given.pop("strata", []),
        }
        if "deadline" in given:
            given["deadline_seconds"] = seconds("deadline", given.pop("deadline"))
        return PrivateSettings(
            ranges=dict(map(parse_range, texts["ranges"])),
            edges=dict(map(_edges, texts["edges"])),
            strata=dict(pair for text in texts["strata"] for pair in parse_strata(text)),
            **given,
        )


@dataclass(frozen=True)
class Cluster:
    """Where jobs are computed."""

    TITLE: ClassVar = "Where to compute"
    backend: Annotated[str, "local (processes on this machine), dask or ray."] = "local"
    scheduler: Annotated[
        str | None, "The cluster's address, such as tcp://head:8786 (Dask) or auto (Ray)."
    ] = None
    workers: Annotated[
        int | None, "Processes on this machine; by default one per core, or one with --engine gpu."
    ] = None
    engine: Annotated[str, "compiled, or gpu; what the engine cannot simulate is compiled."] = (
        "compiled"
    )


def load_files(data: str | Sequence[str], **reading: Any) -> Data:
    """Load data by name, file or several files."""
    from gosta.datasets import load

    names = [data] if isinstance(data, str) else data
    return load(names[0] if len(names) == 1 else [Path(file) for file in names], **reading)


def load_site(place: Path, reading: Reading) -> Data:
    """Return the rows of a file, or those of a site's folder as its node reads them."""
    from gosta.datasets import load
    from gosta.net.deploy.node_folder import NodeFolder
    from gosta.net.node.rows import load_table

    site = NodeFolder(place)
    if not site.is_here:
        return load(str(place), **reading.settings())
    node = site.read().node
    return load_table(place / node.data, node.format)


def site_of(place: Path) -> str:
    """Return the name of a site's node, or that of a file."""
    from gosta.net.deploy.node_folder import NodeFolder
    from gosta.studies.pooled import site_name

    site = NodeFolder(place)
    return site.read().node.name if site.is_here else site_name(place)


def check_writable(name: str, file: Path) -> None:
    """Reject a path that cannot be written, before the computation begins."""
    if not file.parent.is_dir():
        raise InputError(f"{name} = {str(file)!r}: there is no folder {file.parent}")
    if file.is_dir() or not os.access(file.parent, os.W_OK):
        raise InputError(
            f"{name} = {str(file)!r} cannot be written; name a file in a folder that you can write "
            "to"
        )


def check_picture(name: str, file: Path | None) -> None:
    """Reject a picture's path that cannot be written or whose ending is not a known format.

    With None there is no picture.
    """
    if file is None:
        return
    if file.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise InputError(f"{name} = {str(file)!r} must end in .png, .svg or .pdf; none for no plot")
    require_extra("plot", purpose="drawing plots")
    check_writable(name, file)


def choose_picture(plot: Path | None, default: Path, as_json: bool) -> Path | None:
    """Return the file of a plot, or None for no plot, given --plot, its default and --json."""
    if plot == Path("none") or (plot is None and as_json):
        return None
    if (
        plot is None
    ):  # nobody asked for one: that its folder is read-only is no reason to compute nothing
        try:
            check_writable("plot", default)
        except InputError:
            print(
                f"gosta: no plot, as {default} cannot be written; name another file with --plot",
                file=sys.stderr,
            )
            return None
    return plot or default


def fraction(name: str, text: str | None, expected: str, may_be_zero: bool = False) -> float | None:
    """Parse a number between 0 and 1, or a percentage."""
    if text is None:
        return None
    try:
        value = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 1 and not (may_be_zero and value == 0):
        raise InputError(f"{name} = {text!r} must be {expected}")
    return value


def seconds(name: str, text: str) -> float:
    """Parse a duration such as 90s, 10m, 2h or 1d; a plain number is seconds."""
    unit = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}.get(text[-1:], 0.0)
    try:
        return float(text[:-1]) * unit if unit else float(text)
    except ValueError:
        raise InputError(f"{name} = {text!r} must be a time such as 90s, 10m or 2h") from None


def parse_range(text: str) -> tuple[str, tuple[float, float]]:
    column, _, ends = text.rpartition("=")
    try:
        low, high = map(float, ends.split(":"))
    except ValueError:
        raise InputError(f"range = {text!r} must be COLUMN=LOW:HIGH, such as risk=0:1") from None
    return column, (low, high)


def _edges(text: str) -> tuple[str, tuple[float, ...]]:
    column, _, numbers = text.rpartition("=")
    try:
        edges = tuple(map(float, numbers.split(",")))
    except ValueError:
        column = ""
    if not column:
        raise InputError(f"edges = {text!r} must be COLUMN=A,B,C, such as risk=0.1,0.5")
    return column, edges


def parse_terms(texts: Sequence[str], names: Collection[str] = ()) -> list[str]:
    """Return the terms in texts such as "a,b"; a comma in parentheses separates none."""
    parts = [
        part.strip()
        for text in texts
        for part in ([text] if text in names else re.split(r",(?![^()]*\))", text))
    ]
    if not all(parts):
        raise InputError(f"columns = {','.join(texts)!r}: a name is empty")
    return parts


def parse_strata(text: str) -> list[tuple[str, tuple[str, ...]]]:
    column, equals, levels = text.rpartition("=")
    if not equals:
        return [(name.strip(), ()) for name in text.split(",")]
    return [(column, tuple(level.strip() for level in levels.split(",")))]


def confirm(question: str, yes: bool) -> None:
    """Ask a question at the terminal, unless it is answered already.

    Any answer but yes raises `InputError`.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise InputError(f"not confirmed: {question} Run it in a terminal, or with --yes if so")
    if input(f"{question} [y/N] ").strip().lower() not in ("y", "yes"):
        raise InputError("not confirmed; nothing was changed")


def find_statistic(text: str) -> Statistic:
    """Find one statistic by name; FILE.py:NAME executes the file first."""
    from gosta.statistics.references import load_statistic

    if "," in text:
        raise InputError(f"statistic = {text!r}: theory and sweeps are of one at a time; name one")
    return load_statistic(text)


def check_pairwise(statistics: str) -> None:
    """Reject statistics that exchanges of rows cannot estimate: functions of sums only."""
    from gosta.measures import MEASURES
    from gosta.statistics.references import parse_references

    for one in parse_references(statistics):
        name = one.name.partition("@")[0]
        if name in MEASURES:
            where = "private sums have it (--private), and gosta exact over rows in one place"
            raise InputError(
                f"statistic = {one.title!r} is no mean over pairs of rows, which nodes exchange; "
                f"{where}"
            )


class Assumptions(NamedTuple):
    """What is assumed about data for statistics of pairs of rows, and doubts about it."""

    assumed: dict[str, Any]  # of several statistics by title
    warnings: list[str]
    lines: list[str]  # both in words


def find_assumptions(
    data: Data,
    statistic: str,
    given: dict[str, Any],
    values: Mapping[str, float] = MappingProxyType({}),
) -> Assumptions:
    """Find what is assumed about data for one or several statistics.

    `values` are exact ones by title, if known.
    """
    from gosta.statistics import assumptions
    from gosta.statistics.joint import choose, encode

    members, assumed_by_title, doubts = choose(statistic), {}, dict[str, None]()
    lines: dict[str, list[str]] = {}
    rows = len(encode(members, data.select(), given).x)
    for title, chosen, columns in members:
        table, own_options = data.select(columns or None), chosen.own_options(given)
        encoded = chosen.encode_complete_rows(table, own_options)
        assumed = assumed_by_title[title] = assumptions.collect(
            table, encoded, chosen, own_options, rows
        )
        doubts |= dict.fromkeys(assumptions.doubts(table, chosen, assumed, values.get(title, 1.0)))
        shown = assumed if len(members) == 1 else {**assumed, "columns_left_out": []}
        read = (
            [f"from {shorten(list(encoded.columns))}"] if len(members) > 1 and not columns else []
        )
        for line in [*read, *assumptions.text(shown)]:
            lines.setdefault(line, []).append(title)
    words = (
        list(lines)
        if len(members) == 1
        else [f"{', '.join(titles)}: {line}" for line, titles in lines.items()]
    )
    words = [terminal.printable(f"  {line}") for line in words]
    words += [terminal.printable(f"warning: {doubt}") for doubt in doubts]
    return Assumptions(assumed_by_title if len(members) > 1 else assumed, list(doubts), words)


def statistic_options(texts: Sequence[str] | None) -> dict[str, Any]:
    """Parse options of a statistic such as "variant=b": numbers where they look like numbers."""
    return dict(map(_name_and_value, texts or []))


def _name_and_value(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise InputError(f"option {text!r} must be written name=value")
    for kind in (int, float):
        try:
            return name, kind(value)
        except ValueError:
            continue
    return name, value


def listen_for_page(address: str | None, option: str) -> tuple[socket.socket, str]:
    """Return a socket for a live page, and the host in its address."""
    from gosta.net import addresses

    place = address or PAGE_ADDRESS
    listener = addresses.listen_for_page(place, option, or_any_port=address is None)
    host = addresses.parse(place).host
    if not addresses.is_loopback(host):
        print(
            "gosta: the page has no password: whoever can connect to it can read it",
            file=sys.stderr,
        )
    return listener, host
