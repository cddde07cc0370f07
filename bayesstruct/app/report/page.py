"""The report of a run, block by block: settings, results, convergence and fit, methods, and how to repeat the run."""

import shlex

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bayesstruct.app.report.fit import Fit
from bayesstruct.app.report.methods import data_sentence, methods
from bayesstruct.app.report.options import Described, Options
from bayesstruct.app.report.parts import (
    ERROR,
    ESS_PER_CHAIN,
    MARK,
    MAX_R_HAT,
    Drawing,
    Finding,
    Result,
)
from bayesstruct.app.report.text import (
    Block,
    Bullets,
    Code,
    Heading,
    Paragraph,
    Picture,
    Table,
    Text,
    plain,
    prose,
)
from bayesstruct.app.values import command_words
from bayesstruct.data.errors import count

__all__ = ["Page", "command"]


@dataclass(frozen=True)
class Page:
    """What a report is made of.

    Attributes
    ----------
    folder : Path
    result : Result
    described : Described
        The model in words.
    findings : list of Finding
    fit : Fit
    pictures : dict
        Drawings that were made of each part, by its file, and of the fit, by ``""``.
    partial : bool
        Whether the run was interrupted.
    """

    folder: Path
    result: Result
    described: Described
    findings: list[Finding]
    fit: Fit
    pictures: dict[str, list[Drawing]]
    partial: bool

    @property
    def title(self) -> str:
        """Title of the report."""
        return f"Structure of {Path(self.result.job.options['source']).name}"

    @property
    def headlines(self) -> list[str]:
        """The result in a few lines."""
        found = [
            line for finding in self.findings for line in finding.part.headlines(finding.table)
        ]
        return [*found, repr(self.result.check).splitlines()[0], *self.fit.sentences]

    def blocks(self) -> list[Block]:
        """Return the whole report."""
        return [
            Heading(plain(self.title), 1),
            *self._interrupted(),
            *self._asked(),
            *self._found(),
            *self._trust(),
            *self._methods(),
            *self._again(),
        ]

    def _interrupted(self) -> list[Block]:
        if not self.partial:
            return []
        return [
            Paragraph(
                prose("**Interrupted before its end: the numbers are based on fewer draws.**")
            )
        ]

    # ---- what was asked

    def _asked(self) -> list[Block]:
        result, options = self.result, self.result.job.options
        given = Options(result).changed
        items = [
            prose("Table: {}, {}.", options["source"], data_sentence(result)),
            prose("Model: `{}`: {}", options["model"], self.described.question),
            *(prose("{}", sentence) for sentence in self.described.sentences),
            *([prose("Options: {}.", _listed(given))] if given else []),
            prose(
                "Draws: {} of {}, after {} each.",
                count(result.sizes["chain"], "chain"),
                f"{result.sizes['draw']:,}",
                count(options["tune"], "warm-up iteration"),
            ),
            *(prose("Note: {}", note) for note in options["notes"]),
        ]
        return [Heading(plain("What was asked")), Bullets(items)]

    # ---- what was found

    def _found(self) -> list[Block]:
        blocks: list[Block] = [Heading(plain("What was found"))]
        for finding in self.findings:
            blocks += [Heading(plain(finding.part.title), 3), *self._part(finding)]
        return blocks

    def _part(self, finding: Finding) -> Iterator[Block]:
        part, table = finding.part, finding.table
        if headlines := part.headlines(table):
            yield Paragraph(prose("**{}**", " ".join(headlines)))
        yield from self._drawn(part.file)
        header, rows, marked = finding.rows()
        if rows:
            yield Table(header, rows, part.words)
        else:
            yield Paragraph(plain("There is nothing to show."))
        if part.shown < len(table):
            yield Paragraph(
                prose(
                    "The first {} of {} rows; all are in `{}`.",
                    len(rows),
                    f"{len(table):,}",
                    part.file,
                )
            )
        if marked:
            yield Paragraph(prose(_MARKED, ESS_PER_CHAIN * self.result.sizes["chain"]))
        yield Paragraph(_run_on(part.explanation(table)))
        if notes := [note for note in finding.notes if note not in self._noted_before(finding)]:
            yield Bullets([plain(note) for note in notes])

    def _noted_before(self, finding: Finding) -> set[str]:
        """Return the remarks on the tables before."""
        before = self.findings[: self.findings.index(finding)]
        return {note for one in before for note in one.notes}

    def _drawn(self, file: str) -> Iterator[Block]:
        for drawing in self.pictures.get(file, []):
            yield Picture(self.folder / drawing.file, prose(drawing.caption))

    # ---- can it be trusted

    def _trust(self) -> list[Block]:
        check = self.result.check
        rows = [
            [r.quantity, _number(r.r_hat, 3), _number(r.ess_bulk), _number(r.ess_tail), r.verdict]
            for r in check.rows
        ]
        header = ["quantity", "R-hat", "ESS (bulk)", "ESS (tail)", "verdict"]
        return [
            Heading(plain("Can it be trusted?")),
            Paragraph(prose("**{}**", repr(check).splitlines()[0])),
            Table(header, rows, frozenset({0, 4})),
            *(Paragraph(plain(note)) for note in check.notes),
            *self._fit(),
        ]

    def _fit(self) -> Iterator[Block]:
        yield Paragraph(
            (*prose("**Posterior predictive check.** "), *plain(" ".join(self.fit.sentences)))
        )
        if self.fit.worst:
            yield Bullets([plain(line) for line in self.fit.worst])
        yield from self._drawn("")
        if self.fit.call:
            yield Paragraph(
                prose(
                    "In Python, with replicated tables from `pm.sample_posterior_predictive(idata, extend_inferencedata=True)`: `{}`.",
                    self.fit.call,
                )
            )

    # ---- methods, and how to repeat the run

    def _methods(self) -> list[Block]:
        return [
            Heading(plain("For the methods section of a paper")),
            *methods(self.result, self.described, self.findings, self.fit),
        ]

    def _again(self) -> list[Block]:
        options = self.result.job.options
        versions = ", ".join(f"{name} {number}" for name, number in options["versions"].items())
        return [
            Heading(plain("Repeat and continue")),
            Code(
                [
                    f"{command(options)} --out again/   # the same draws",
                    f"bayesstruct learn --resume {shlex.quote(str(self.folder))}   # after an interruption, or to write this page again",
                ]
            ),
            Paragraph(prose("Seed {}; {}.", options["seed"], versions)),
            Paragraph(
                prose(
                    'In Python: `xarray.open_datatree("posterior.nc", engine="h5netcdf")`, then `bayesstruct.summary(...)` and all other functions.'
                )
            ),
        ]


_MARKED = (
    f"{MARK}: the chains do not agree on this probability (R-hat above {MAX_R_HAT}), or it rests on fewer than {{}} effective draws, and its Monte "
    f"Carlo error is {ERROR} or more: do not rely on its digits."
)


def _run_on(sentences: list[str]) -> Text:
    return tuple(span for sentence in sentences for span in (*prose(sentence), *plain(" ")))


def _listed(given: dict) -> str:
    return ", ".join(f"{name} = {_value(value)}" for name, value in given.items())


def _value(value) -> str:
    text = str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _number(value: float, digits: int = 0) -> str:
    return f"{value:,.{digits}f}" if np.isfinite(value) else "-"


def command(options: dict) -> str:
    """Return the command that makes the same draws."""
    return shlex.join(command_words(options))
