"""Encodings are told by the letters of a text."""

from __future__ import annotations

from pathlib import Path

import pytest

import gosta
from gosta.datasets import load
from gosta.datasets.encodings import likely

WESTERN = ["Größe;Geschlecht;männlich", "âge;décès;état à un an", "idade;óbito;não;sim", "età;sì"]
CENTRAL = ["zmarł;żyje;płeć;wiek", "wiek;płeć;zgon", "muž;žena;úmrtí;věk;příjmení"]


@pytest.mark.parametrize(
    ("encoding", "texts"),
    [
        ("latin-1", [*WESTERN, "Körperoberfläche in m²", "KOF (m²)"]),
        ("cp1252", ["Größe – cm", "âge €"]),
        ("mac-roman", WESTERN[:3]),
        ("cp1250", CENTRAL),
        ("iso8859-2", ["zmarł;śmierć"]),
        ("utf-8", [*WESTERN, *CENTRAL, "age,died"]),
        ("utf-16", ["age;died"]),
        ("utf-16-le", CENTRAL),
        ("utf-16-be", CENTRAL),
    ],
)
def test_likely_encodings(encoding: str, texts: list[str]) -> None:
    assert [likely(text.encode(encoding)) for text in texts] == [encoding] * len(texts)


@pytest.mark.parametrize("encoding", ["cp1250", "utf-16", "utf-16-le", "mac-roman"])
def test_the_encoding_of_a_file_is_suggested(tmp_path: Path, encoding: str) -> None:
    names = "größe;männlich" if encoding == "mac-roman" else "płeć;zmarł"
    (tmp_path / "a.csv").write_text(f"{names}\n1;0\n2;1\n", encoding=encoding)
    with pytest.raises(gosta.DataError, match=f"such as --encoding {encoding}"):
        load(tmp_path / "a.csv")
    assert list(load(tmp_path / "a.csv", encoding=encoding).columns) == names.split(";")


def test_ascii_is_the_same_in_every_encoding(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x;y\n1;2\n")
    for given in ("utf-8", "latin-1", "cp1250"):
        assert load(tmp_path / "a.csv", encoding=given).doubts == ()


def test_letters_of_another_encoding_are_a_doubt(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x;stan\n1;zmarł\n2;żyje\n", encoding="cp1250")
    for given in ("utf-8", "latin-1", "cp1252"):
        doubts = load(tmp_path / "a.csv", encoding=given).doubts
        assert doubts == (f"some letters are not those of {given}; say --encoding cp1250",)
    assert load(tmp_path / "a.csv", encoding="cp1250").doubts == ()
    (tmp_path / "a.csv").write_text("ryzyko;wiek;płeć\n1;2;K\n2;3;M\n", encoding="cp1250")
    hint = r"unknown column of .* 'płeć'.*; some letters .*; say --encoding cp1250"
    with pytest.raises(gosta.InputError, match=hint):
        load(tmp_path / "a.csv", encoding="latin-1").select(label="płeć")
    with pytest.raises(gosta.InputError, match=hint):
        load(tmp_path / "a.csv", encoding="latin-1", harmonise={"columns": {"sex": "płeć"}})
    (tmp_path / "a.csv").write_text("x;стан\n1;0\n", encoding="cp1251")
    assert load(tmp_path / "a.csv", encoding="cp1251").doubts == ()
    (tmp_path / "a.csv").write_text("x;état\n1;0\n")
    assert load(tmp_path / "a.csv", encoding="latin-1").doubts[0].endswith("--encoding utf-8")
