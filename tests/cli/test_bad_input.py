"""Input errors: one line that names the argument, its value and what to do."""

from __future__ import annotations

import gzip
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import gosta
from gosta.runtime import machine
from gosta.statistics import STATISTICS

LABELLED = {"a": [1.0, 2.0, 3.0], "b": [3.0, 2.0, 5.0], "label": ["x", "y", "x"]}


def assert_rejected(message: str, *args: Any, **kwargs: Any) -> None:
    with pytest.raises(gosta.GostaError) as caught:
        gosta.exact(*args, **kwargs)
    assert "\n" not in str(caught.value)
    assert re.search(message, str(caught.value)), str(caught.value)


def test_names() -> None:
    assert_rejected("unknown statistic 'acu'; did you mean 'auc'", LABELLED, "acu")
    assert_rejected(
        "unknown data set or file 'breast-cancr'; did you mean 'breast-cancer'",
        "breast-cancr",
        "auc",
    )
    assert_rejected("no such file: nowhere.csv", "nowhere.csv", "auc")
    assert_rejected("suffix '.xls' is none of .csv", "table.xls", "auc")
    assert_rejected(
        "unknown column of the data 'c'; there are: a, b, label", LABELLED, "variance", columns="c"
    )
    assert_rejected("column 7 requested, the data has 3", LABELLED, "variance", columns=7)
    assert_rejected(
        "unknown statistic 'gini'; did you mean 'gini-mean-difference' or 'gini-index'",
        LABELLED,
        "gini",
    )
    assert_rejected(
        "gosta.exact has no parameter 'lable'; did you mean 'label'", LABELLED, "auc", lable="label"
    )
    assert_rejected(
        "kendall-tau has no option 'kind'; its options are: variant='a'",
        LABELLED,
        "kendall-tau",
        kind="b",
    )
    assert_rejected(
        "variant = 'c' must be 'a' or 'b'", LABELLED, "kendall-tau", columns=["a", "b"], variant="c"
    )
    assert_rejected("neither a name nor a statistic", LABELLED, max)
    assert_rejected("normalisation = 'W'", LABELLED, "variance", columns="a", normalisation="W")


def test_a_file_beside_a_missing_one_is_suggested(tmp_path: Path) -> None:
    (tmp_path / "patients.csv").write_text("a\n1\n2\n")
    missing = tmp_path / "patient.csv"
    assert_rejected(
        f"no such file: {missing}; did you mean {tmp_path / 'patients.csv'}", missing, "variance"
    )


def test_shapes() -> None:
    assert_rejected("needs at least two complete rows, the data has 1", [1.0], "variance")
    assert_rejected("has no rows", np.empty((0, 2)), "kendall-tau")
    assert_rejected("different lengths", [[1, 2], [3]], "kendall-tau")
    assert_rejected("different lengths", {"a": [1, 2], "b": [1]}, "kendall-tau")
    assert_rejected(r"shape \(2, 2, 2\)", np.zeros((2, 2, 2)), "variance")
    assert_rejected("complex", np.zeros(3, dtype=complex), "variance")
    assert_rejected(
        "variance: needs one column; the data has 2 .*columns=\\['a'\\]",
        {"a": [1, 2], "b": [3, 4]},
        "variance",
    )
    assert_rejected("needs columns for first, second", [1.0, 2.0], "kendall-tau")
    assert_rejected("give each column once", LABELLED, "kendall-tau", columns=["a", "a"])
    assert_rejected("columns is empty", LABELLED, "kendall-tau", columns=[])
    assert_rejected("split = 3", LABELLED, "distance-correlation", columns=["a", "b"], split=3)
    assert_rejected("no columns besides label and score", {"label": [0, 1, 0, 1]}, "auc")
    assert_rejected(
        "no columns besides label and score", {"score": [0, 1]}, "mean-pairwise-distance"
    )
    assert_rejected(r"values of different lengths", {"a": [[1, 2], [3]]}, "variance")
    assert_rejected(
        r"with shape \(\)", np.array((1.0, 2.0), dtype=[("a", float), ("b", float)]), "covariance"
    )
    assert_rejected(
        r"with shape \(2, 2\)", np.zeros((2, 2), dtype=[("a", float), ("b", float)]), "covariance"
    )
    assert_rejected("score has 2 values, the data has 3 rows", LABELLED, "auc", score=[1, 2])
    assert_rejected(
        "score and columns are both given: give one of the two",
        LABELLED,
        "auc",
        score="a",
        columns="b",
    )
    for columns in ([None], [1.5], 1.5, True):
        assert_rejected(
            "neither a column's name nor its position", LABELLED, "variance", columns=columns
        )
    assert_rejected("label has 2 values, the data has 3 rows", LABELLED, "auc", label=[0, 1])


def test_values() -> None:
    assert_rejected(
        "column 'a' has 'two' in row 2 where a number is needed", {"a": ["1", "two"]}, "variance"
    )
    assert_rejected(
        "column 'label' has 'x' in row 1",
        LABELLED,
        "mean-pairwise-distance",
        columns=["a", "label"],
    )
    assert_rejected(
        "'0' has 2 missing or infinite values .first in row 2.*--drop-missing",
        [1.0, np.nan, np.inf],
        "variance",
    )
    assert_rejected(
        "at least two complete rows, the data has 1", [1.0, np.nan], "variance", drop_missing=True
    )
    assert_rejected("not negative, the least is -1", [1.0, -1.0], "gini-index")
    assert_rejected("not all zero", [0.0, 0.0], "gini-index")
    for bandwidth in (-1, "wide", True):
        assert_rejected(
            f"bandwidth = {bandwidth!r} must be", LABELLED, "mmd", columns="a", bandwidth=bandwidth
        )
    assert_rejected(
        "column 'a' has 1000.* in row 2: floats round whole numbers",
        {"a": [1, 10**400]},
        "variance",
    )
    assert_rejected(
        "datetime", {"a": np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[D]")}, "variance"
    )
    assert_rejected(
        "event column must hold 1",
        {"time": [1, 2], "event": [2, 1], "score": [1, 2]},
        "concordance-index",
    )
    assert_rejected(
        "not defined here: it divides by zero", {"a": [1, 1, 1], "b": [1, 2, 3]}, "spearman-rho"
    )
    assert_rejected(
        "not defined here", {"time": [1, 2], "event": [0, 0], "score": [1, 2]}, "concordance-index"
    )
    assert_rejected(
        "centroids have 3 coordinates, the points",
        LABELLED,
        "within-cluster-scatter",
        centroids=[[1, 2, 3]],
    )


def test_labels() -> None:
    assert_rejected("auc: needs labels", {"a": [1.0, 2.0]}, "auc")
    assert_rejected("auc: needs labels", {"a": [1.0, 2.0], "name": ["x", "y"]}, "auc")
    assert_rejected(
        "within-cluster-scatter: needs labels", {"a": ["x", "y"]}, "within-cluster-scatter"
    )
    assert_rejected(
        "needs two classes, label column 'label' has 1 only", [1.0, 2.0], "auc", label=[1, 1]
    )
    assert_rejected("has 3 .*positive=", [1.0, 2.0, 3.0], "auc", label=["x", "y", "z"])
    assert_rejected(
        "unknown class of label column 'label' 'w'; there are: x, y",
        [1.0, 2.0],
        "auc",
        label=["x", "y"],
        positive="w",
    )
    assert_rejected("one only", [1.0, np.nan, 2.0], "auc", label=[0, 1, 0], drop_missing=True)


def test_numbers_too_large_to_compute_with() -> None:
    large = {"a": [1e300, 2e300, 3e300], "b": [1e300, 2e300, 1e300], "label": [0, 1, 1]}
    assert_rejected("too large for a score", large, "auc")
    assert_rejected("mmd: the numbers are too large; use larger units", large, "mmd")
    assert_rejected(
        "mmd: the numbers are too small",
        {"a": [1e-300, 3e-300, 0.0], "label": [0, 1, 1]},
        "mmd",
        columns="a",
    )
    assert_rejected(
        "give one: bandwidth=1", {"a": [1.0, 1.0, 1.0], "label": [0, 1, 1]}, "mmd", columns="a"
    )
    assert_rejected(
        "theil-sen is not finite here", [[-1e308, 1.0], [1e308, 2.0], [0.0, 1e308]], "theil-sen"
    )
    assert_rejected(
        "too far from the centroids", large, "within-cluster-scatter", centroids="class-means"
    )


@pytest.mark.parametrize("name", STATISTICS)
def test_all_rows_or_a_class_missing(name: str) -> None:
    single = {
        "variance",
        "gini-mean-difference",
        "gini-index",
        "trimmed-mean",
        "winsorised-mean",
        "ranks",
    }
    single.add("hodges-lehmann")
    several = {"concordance-index": 3, "concordance-difference": 4}
    count = 1 if name in single else several.get(name, 2)
    x, label = np.ones((4, count)), [0, 1, 0, 1]
    x[:, 0] = np.nan
    assert_rejected(
        f"{name}: needs at least two complete rows, the data has 0",
        x,
        name,
        label=label,
        drop_missing=True,
    )
    x[:, 0] = [1.0, np.nan, 2.0, np.nan]
    if STATISTICS[name].sample_index is not None:
        assert_rejected(
            f"{name}: needs two classes, the complete rows", x, name, label=label, drop_missing=True
        )


def test_options_and_rows_of_statistics_that_depend_on_all_rows() -> None:
    rows = {"a": [1.0, 2.0, 3.0, 4.0], "b": [1.0, 2.0, 2.0, 1.0], "label": [0, 1, 2, 0]}
    assert_rejected(
        "trimmed-mean: share = 0.5 must lie between 0 and 0.5",
        rows,
        "trimmed-mean",
        columns="a",
        share=0.5,
    )
    assert_rejected("there are 2 columns for 3 classes", rows, "multiclass-auc", columns=["a", "b"])
    wrong = {"columns": ["a", "b"], "label": [0, 1, 1, 0], "average": "micro"}
    assert_rejected(
        "average = 'micro' must be 'pairs', 'macro' or 'weighted'", rows, "multiclass-auc", **wrong
    )
    part = replace(
        gosta.datasets.load({**rows, "label": [0, 1, 1, 0]}),
        declared_classes=(0, 1),
        is_partial=True,
    )
    for name in ("multiclass-auc", "trimmed-mean", "winsorised-mean"):
        with pytest.raises(
            gosta.DataError, match=f"{name}: needs .*, which a site does not know; "
        ):
            STATISTICS[name].encode_rows(part, {})


NESTED = {
    "list": pa.array([[1.0], [2.0]]),
    "struct": pa.array([{"k": 1}, {"k": 2}]),
    "map": pa.array([[("k", 1)], [("k", 2)]], pa.map_(pa.string(), pa.int64())),
    "binary": pa.array([b"\xff", b"1"]),
    "large binary": pa.array([b"1", b"2"], pa.large_binary()),
    "binary of one size": pa.array([b"1", b"2"], pa.binary(1)),
}


@pytest.mark.parametrize("column", NESTED.values(), ids=NESTED)
def test_columns_of_neither_numbers_nor_text_are_rejected_on_use_only(
    column: Any, tmp_path: Path
) -> None:
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"odd": column, "x": [1.0, 2.0]}), path)
    assert gosta.exact(path, "variance", columns="x") == 0.5
    assert_rejected(
        "column 'odd' has .* in row 1 where a number is needed", path, "variance", columns="odd"
    )
    assert_rejected(
        "label column 'odd' holds neither numbers nor text", path, "auc", columns="x", label="odd"
    )


def test_messages_stay_short(tmp_path: Path) -> None:
    wide = {f"c{k}": [1, 2] for k in range(5000)}
    assert_rejected(
        r"there are: c0, c1, .*, c19, \.\.\. \(5000 in all\)$", wide, "variance", columns="zzz"
    )
    assert_rejected(
        r"unknown column .* there are: a b$", {"a\nb": [1, 2]}, "variance", columns="zzz"
    )
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"x": [1.0, 2.0] * 100}), path)
    content = path.read_bytes()
    path.write_bytes(content[:-200] + b"\xfe" * 192 + content[-8:])
    assert_rejected("cannot read .*t.parquet", path, "variance")


def test_own_copies_of_the_wrong_file(tmp_path: Path) -> None:
    path = tmp_path / "wine.csv"
    for content, message in [
        ("", "has no rows"),
        (
            ";".join("abcdefghijkl") + "\n" + ";".join("123456789012") + "\n",
            "is not winequality-red.csv",
        ),
    ]:
        path.write_text(content)
        with pytest.raises(gosta.InputError, match=message):
            gosta.datasets.load("wine-quality-red", path=path)


def test_intervals() -> None:
    assert_rejected(
        "interval = 95 must lie between 0 and 1", [1.0, 2.0, 3.0], "variance", interval=95
    )
    assert_rejected("interval = True must", [1.0, 2.0, 3.0], "variance", interval=True)
    assert_rejected("at least three rows", [1.0, 2.0], "variance", interval=0.9)
    assert_rejected("two rows of each class", [1.0, 2.0, 3.0], "auc", label=[0, 0, 1], interval=0.9)


def test_loading() -> None:
    for arguments, message in [
        ({"source": "iris", "n": 151}, "n = 151 rows requested, iris has 150"),
        ({"source": "iris", "n": 0}, "n = 0 must be a whole number, 1 or more"),
        ({"source": "iris", "n": 2.5}, "n = 2.5 must be a whole number"),
        ({"source": "iris", "n": "5"}, "n = '5' must be a whole number"),
        ({"source": "iris", "n": True}, "n = True must be a whole number"),
        ({"source": "iris", "n": np.int64(-5)}, "n = .*-5.* must be a whole number"),
        ({"source": "lognormal", "seed": -1}, "seed = -1 must be a whole number, 0 or more"),
        ({"source": "lognormal", "seed": 1.5}, "seed = 1.5 must be a whole number"),
        ({"source": "iris", "seed": 1}, "seed = 1 is for synthetic data only, not for 'iris'"),
        ({"source": "iris", "path": "x"}, "is for the data sets wine-quality-red, svmguide3 only"),
        ({"source": "svmguide3", "path": "nowhere"}, "no such file: nowhere"),
        ({"source": "lognormal", "n": 10**13}, "GiB of memory"),
    ]:
        with pytest.raises(gosta.InputError, match=message):
            gosta.datasets.load(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"a,b\n1,2\n3\n", r"a\.csv, line 3: 1 values where 2 are expected"),
        ("a.csv", b"", "is empty"),
        ("a.csv", b"a,b\n", "has no rows"),
        ("a.csv", b'"a\n1\n2\n', "first line has a quote that does not end"),
        (
            "a.csv",
            b",".join([b"name"] * 300_000) + b"\n1\n",
            "first line is longer than 1048576 bytes",
        ),
        ("a.csv", b"a,a\n1,2\n", r"has 2 \(a\.1, a\.2\)"),
        ("a.csv", b"a\n\xff\xfe\n1\n", "not text in UTF-8"),
        ("a.csv", b"\xff\xfea\n1\n", "not text in UTF-8"),
        ("a.csv", b"a\n1\nx\n2\n", "column 'a' has 'x' in line 3"),
        ("a.csv", b"a\n1\n\n\n2\nNA\n", "column 'a' has 1 missing"),
        ("a.parquet", b"PAR1 no", "cannot read .*a.parquet"),
        ("a.npy", b"nothing", "cannot read .*a.npy"),
        ("a.npy", b"", "cannot read .*a.npy"),
        ("a.npy", b"PK\x03\x04 several arrays", "cannot read .*a.npy.*save one array"),
        ("a.csv.gz", b"not gzip", "cannot read .*a.csv.gz"),
        ("a.csv.gz", gzip.compress(b"a\n1\n2\n", mtime=0)[:-9], "cannot read .*a.csv.gz"),
    ],
)
@pytest.mark.parametrize("max_plain_bytes", [-1, 1 << 30], ids=["arrow", "csv module"])
def test_broken_files(
    name: str,
    content: bytes,
    message: str,
    max_plain_bytes: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gosta.datasets.files.MAX_PLAIN_BYTES", max_plain_bytes)
    path = tmp_path / name
    path.write_bytes(content)
    assert_rejected(message, path, "variance")


def test_folders_and_files_of_objects(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    assert_rejected(
        "folder.csv has no file that can be read: .csv", tmp_path / "folder.csv", "variance"
    )
    np.save(tmp_path / "o.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    assert_rejected("cannot read .*o.npy", tmp_path / "o.npy", "variance")


def test_files_larger_than_memory(tmp_path: Path) -> None:
    path = tmp_path / "huge.npy"
    with path.open("wb") as file:  # a header and a hole: 8 TB that take no disk
        header = {"descr": "<f8", "fortran_order": False, "shape": (10**12, 1)}
        np.lib.format.write_array_header_2_0(file, header)
        file.truncate(file.tell() + 8 * 10**12)
    assert_rejected("GiB of memory and .* are free; take fewer rows", path, "variance")


def test_memory_of_compressed_files_and_synthetic_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "zeros.csv.gz"
    path.write_bytes(gzip.compress(b"a\n" + b"0" * 10**8))
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=10**7))
    assert path.stat().st_size < 10**6
    assert_rejected("reading .*zeros.csv.gz needs", path, "variance")
    (tmp_path / "commas.csv").write_bytes((b"," * 999 + b"\n") * 1000)
    assert_rejected("reading .*commas.csv needs", tmp_path / "commas.csv", "variance")
    with pytest.raises(gosta.InputError, match="50000 rows of lognormal needs"):
        gosta.datasets.load("lognormal", n=50_000)


def test_memory_is_checked_before_it_is_allocated() -> None:
    machine.require_memory(1, "nothing much")
    with pytest.raises(gosta.InputError, match="too much needs 1073741824"):
        machine.require_memory(2**60, "too much")
