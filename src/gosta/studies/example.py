"""Files of made-up patients of three hospitals, each as such a hospital would write it."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gosta.errors import InputError
from gosta.runtime.arrays import Floats
from gosta.runtime.extras import require

SEED = 1


class Patient(NamedTuple):
    """A made-up patient, and the risk of a death within a year that two models predict."""

    age: int
    is_female: bool
    risk: float
    new_risk: float
    has_died: bool  # within a year
    days: int  # of observation
    has_event: bool  # whether the patient died on the last of these days
    lacks_age: bool
    lacks_risk: bool


def make_patients(n: int, severity: float, rng: np.random.Generator) -> list[Patient]:
    """Return made-up patients of a hospital with illnesses of some severity.

    >>> [patient.has_died for patient in make_patients(3, 0.0, np.random.default_rng(1))]
    [True, False, False]
    """
    age = np.clip(np.rint(rng.normal(66, 12, n)), 18, 97).astype(np.int64)
    marker, known = rng.normal(size=n), rng.normal(size=n)
    logit = severity - 1.6 + 0.05 * (age - 66) + 0.8 * marker + 0.7 * known
    # Of a death within a year the chance is that of the logit; later deaths come at the same rate.
    rate = np.log1p(np.exp(logit)) / 365
    death = np.ceil(rng.exponential(1 / rate)).astype(np.int64)
    end = rng.integers(400, 1500, n)
    columns = (
        age,
        rng.random(n) < 0.46,
        _share(severity - 1.4 + 0.05 * (age - 66) + 0.7 * known),
        _share(severity - 1.6 + 0.05 * (age - 66) + 0.7 * known + 0.75 * marker),
        death <= 365,
        np.minimum(death, end),
        death <= end,
        rng.random(n) < 0.02,
        rng.random(n) < 0.015,
    )
    return [Patient(*values) for values in zip(*(c.tolist() for c in columns), strict=True)]


def _share(logit: Floats) -> Floats:
    return np.clip(np.round(1 / (1 + np.exp(-logit)), 3), 0.001, 0.999)


def write_files(folder: Path) -> list[Path]:
    """Write a file of each hospital into a folder: German text, French text, an Excel sheet."""
    rng = np.random.default_rng(SEED)
    made = [
        (_write_german, "heidelberg.csv", make_patients(420, 0.2, rng)),
        (_write_french, "lyon.csv", make_patients(260, -0.3, rng)),
        (_write_excel, "leeds.xlsx", make_patients(330, 0.0, rng)),
    ]
    for _, name, _ in made:
        if (folder / name).exists():
            raise InputError(f"{folder / name} is there already", remedy="choose another folder")
    folder.mkdir(parents=True, exist_ok=True)
    for write, name, patients in made:
        write(folder / name, patients)
    return [folder / name for _, name, _ in made]


def _write_german(path: Path, patients: Sequence[Patient]) -> None:
    def row(k: int, one: Patient) -> list[Any]:
        return [
            f"P{1000 + k}",
            "k.A." if one.lacks_age else one.age,
            "w" if one.is_female else "m",
            "k.A." if one.lacks_risk else _comma(100 * one.risk, 1),
            _comma(100 * one.new_risk, 1),
            "ja" if one.has_died else "nein",
            one.days,
            int(one.has_event),
        ]

    names = "PatNr Alter Geschlecht Risiko_% Risiko_neu_% verstorben Tage Ereignis"
    _write_csv(path, names.split(), patients, row, "latin-1")


def _write_french(path: Path, patients: Sequence[Patient]) -> None:
    def row(k: int, one: Patient) -> list[Any]:
        return [
            f"{k + 1:04d}",
            f"{k % 28 + 1:02d}/{k % 12 + 1:02d}/2021",
            -9 if one.lacks_age else one.age,
            "F" if one.is_female else "H",
            "ND" if one.lacks_risk else _comma(one.risk, 3),
            _comma(one.new_risk, 3),
            "décédé" if one.has_died else "vivant",
            one.days,
            "oui" if one.has_event else "non",
        ]

    names = ["numéro", "date", "âge", "sexe", "risque", "risque2", "état à un an", "jours", "décès"]
    _write_csv(path, names, patients, row, "utf-8")


def _write_excel(path: Path, patients: Sequence[Patient]) -> None:
    openpyxl = require("openpyxl", "excel", "writing an Excel file")
    book = openpyxl.Workbook()
    book.active.title = "read me"
    book.active.append(["Patients of the trust; see the second sheet."])
    sheet = book.create_sheet("patients")
    sheet.append(
        ["ID", "Age (years)", "Sex", "Risk", "Risk, new model", "Dead at 1 y", "Days", "Event"]
    )
    for k, one in enumerate(patients):
        sheet.append(
            [
                7000 + k,
                None if one.lacks_age else one.age,
                "female" if one.is_female else "male",
                "n/a" if one.lacks_risk else one.risk,
                one.new_risk,
                "dead" if one.has_died else "alive",
                one.days,
                "yes" if one.has_event else "no",
            ]
        )
    book.save(path)


def _write_csv(
    path: Path,
    names: Sequence[str],
    patients: Sequence[Patient],
    row: Callable[[int, Patient], list[Any]],
    encoding: str,
) -> None:
    with path.open("w", encoding=encoding, newline="") as file:
        writer = csv.writer(file, delimiter=";")
        writer.writerow(names)
        writer.writerows(row(k, one) for k, one in enumerate(patients))


def _comma(value: float, digits: int) -> str:
    return f"{value:.{digits}f}".replace(".", ",")
