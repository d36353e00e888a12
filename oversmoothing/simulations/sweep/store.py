"""Where a sweep is kept: finished chunks while it runs, one Parquet table when it is done.

    DIR/chunks/manifest.json                  which sweep the chunks belong to
    DIR/chunks/0000200-0000300-<hash>.parquet points 200 to 299, hash = SHA-256 of the file
    DIR/sweep.parquet                         every point, in order, with the provenance
Every file is written whole. A chunk carries the hash of its bytes in its name: one that was damaged
is seen, removed and computed again.
"""

import fcntl
import hashlib
import io
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import scipy

from oversmoothing.simulations.running import provenance
from oversmoothing.simulations.sweep.config import PARAMETERS, Config
from oversmoothing.simulations.sweep.points import Point, columns
from oversmoothing.theory.support.errors import InputError, RequirementError
from oversmoothing.theory.support.files import output_folder, read_json, to_json, write_atomically
from oversmoothing.theory.verdict.formulas import Outcome

TABLE = "sweep.parquet"
# One size of row group whatever the chunks were: the same table is the same bytes.
_ROW_GROUP = 1 << 16
# Keys of what the footer of the table holds beside the columns.
_RECORD, _DIGEST = b"oversmoothing", b"digest"
_CHUNK = re.compile(r"\d+-\d+-[0-9a-f]{16}\.parquet")
_TYPES = {int: pa.int64(), float: pa.float64(), str: pa.string()}


def schema(config: Config) -> pa.Schema:
    """Column -> type of the table: point, the parameters (null where a point has none), outcomes.

    The outcomes are described at `simulations.sweep.points.columns`.
    """
    fields = [pa.field("point", pa.int64(), nullable=False)]
    fields += [pa.field(name, _TYPES[p.kind]) for name, p in PARAMETERS.items()]
    fields += [pa.field(name, _TYPES[kind]) for name, kind in columns(config.measures).items()]
    return pa.schema(fields)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Work in the folder alone. Raises `InputError` while another process does.

    The lock is on the folder itself: it leaves no file, and ends with the process that holds it.
    """
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(handle)
        raise InputError(
            f"another program is at work in '{folder}': wait for it, or choose another folder with "
            "--out"
        ) from error
    try:
        yield
    finally:
        os.close(handle)


class Store:
    """The folder of one sweep. `damaged` names the chunk files that were found broken."""

    def __init__(self, folder: Path, config: Config, size: int) -> None:
        self.folder, self.config, self.size = output_folder(folder), config, size
        self.chunks = self.folder / "chunks"
        self.table_path = self.folder / TABLE
        self.damaged: list[str] = []

    def open(self, *, restart: bool = False) -> bool:
        """Prepare the folder; True where the finished table of this very sweep is there.

        Raises `InputError` where the folder holds another sweep, or chunks made by another version
        of this code or of the numerical libraries: the whole would not be that of an unbroken run.
        """
        if restart:
            shutil.rmtree(self.chunks, ignore_errors=True)
            self.table_path.unlink(missing_ok=True)
        if self.table_path.exists() and self._table_is_ours():
            # What a run that was stopped between writing the table and removing them left.
            shutil.rmtree(self.chunks, ignore_errors=True)
            return True
        manifest = self.chunks / "manifest.json"
        wanted: dict[str, Any] = {"digest": self.config.digest, "numerics": _numerics()}
        if not manifest.exists():
            write_atomically(manifest, to_json(wanted | {"config": self.config.to_json_object()}))
            return False
        try:
            record = read_json(manifest)
            digest, numerics = record["digest"], dict(record["numerics"])
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"'{manifest}' is damaged, so its chunks cannot be assigned ({error}): start again "
                "with --restart"
            ) from error
        if digest != wanted["digest"]:
            raise InputError(self._other(f"'{self.chunks}' holds chunks"))
        if numerics != wanted["numerics"]:
            raise InputError(
                f"the chunks in '{self.chunks}' were made with {_words(numerics)}, this is "
                f"{_words(wanted['numerics'])}: their last digits may differ. Go on with the "
                "former versions, or start again with --restart"
            )
        return False

    def _other(self, what: str) -> str:
        return (
            f"{what} of another configuration: choose another folder with --out, or give up what "
            "is there with --restart"
        )

    def _table_is_ours(self) -> bool:
        """Raises `InputError` for the table of another sweep; a damaged one is computed again."""
        try:
            table = read_table(self.table_path)
        except InputError:
            # Its pages do not bear out their checksums, or its content its digest.
            self.damaged.append(str(self.table_path))
            return False
        record = json.loads(table.schema.metadata[_RECORD])
        if record["digest"] != self.config.digest or table.num_rows != self.size:
            raise InputError(self._other(f"'{self.table_path}' is the table"))
        return True

    def _files(self) -> list[Path]:
        return sorted(path for path in self.chunks.iterdir() if _CHUNK.fullmatch(path.name))

    def finished(self) -> list[range]:
        """The chunks that are there, in order; damaged and overlapping files are removed."""
        chunks: list[range] = []
        for path in self._files():
            start, stop, digest = path.stem.split("-")
            chunk = range(int(start), int(stop))
            whole = _digest(path.read_bytes()) == digest
            if not whole:
                self.damaged.append(str(path))
            if not whole or (chunks and chunk.start < chunks[-1].stop):
                path.unlink()
                continue
            chunks.append(chunk)
        return chunks

    def missing(self, length: int) -> list[range]:
        """What is still to compute, in chunks of at most `length` points."""
        chunks, place = [], 0
        for done in [*self.finished(), range(self.size, self.size)]:
            chunks += [
                range(start, min(start + length, done.start))
                for start in range(place, done.start, length)
            ]
            place = done.stop
        return chunks

    def add(self, chunk: range, points: Iterable[Point], rows: list[dict[str, Any]]) -> None:
        """Write one finished chunk."""
        table = pa.Table.from_pylist(
            [
                {"point": chunk.start + k, **point, **row}
                for k, (point, row) in enumerate(zip(points, rows, strict=True))
            ],
            schema=schema(self.config),
        )
        data = _parquet(table)
        name = f"{chunk.start:07d}-{chunk.stop:07d}-{_digest(data)}.parquet"
        write_atomically(self.chunks / name, data)

    def assemble(self) -> Path:
        """Write the table, in the order of the points, and remove the chunks."""
        if self.missing(self.size):
            raise RequirementError(
                "some chunks were damaged or removed while the sweep ran: run it again, and only "
                "these are computed"
            )
        record = {
            "digest": self.config.digest,
            "config": self.config.to_json_object(),
            "title": self.config.title,
            "numerics": _numerics(),
            **provenance(),
        }
        table = pa.concat_tables(pq.read_table(_stored(path)) for path in self._files())
        words = json.dumps(record, sort_keys=True).encode()
        metadata = {_RECORD: words, _DIGEST: _content_digest(table, words)}
        write_atomically(self.table_path, _parquet(table.replace_schema_metadata(metadata)))
        shutil.rmtree(self.chunks)
        return self.table_path


def read_table(path: str | Path) -> pa.Table:
    """The table of a finished sweep, its content and its record borne out by their digest.

    Raises `InputError` for anything else.
    """
    try:
        table = pq.read_table(_stored(path), page_checksum_verification=True)
        metadata = table.schema.metadata or {}
        if _RECORD in metadata:
            whole = metadata.get(_DIGEST) == _content_digest(table, metadata[_RECORD])
    except (OSError, ValueError, pa.ArrowException) as error:
        raise InputError(f"cannot read '{path}' as Parquet: {error}") from error
    if _RECORD not in metadata:
        raise InputError(f"'{path}' is not the table of a sweep: it lacks the record of one")
    if not whole:
        raise InputError(f"'{path}' is damaged: its content is not what was written")
    return table


def _content_digest(table: pa.Table, record: bytes) -> bytes:
    """SHA-256 of the record, and of every column's name, type, nulls and values.

    The checksums of Parquet cover its pages alone, not the names and the record in its footer.
    """
    total = hashlib.sha256(record)
    for field, column in zip(table.schema, table.itercolumns(), strict=True):
        total.update(f"\n{field.name}: {field.type} {field.nullable}\n".encode())
        total.update(column.is_null().to_numpy().tobytes())
        if pa.types.is_string(field.type):
            total.update("\0".join(column.fill_null("").to_pylist()).encode())
        else:
            total.update(column.fill_null(0).to_numpy().tobytes())
    return total.hexdigest().encode()


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def _stored(path: str | Path) -> pa.BufferReader:
    """A file to read; Arrow itself opens no path that is not UTF-8."""
    return pa.BufferReader(Path(path).read_bytes())


def _parquet(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer, row_group_size=_ROW_GROUP, write_page_checksum=True)
    return buffer.getvalue()


@cache
def _numerics() -> dict[str, str]:
    """What the last digits depend on: the libraries, and the source of everything that computes."""
    package = Path(__file__).parent.parent.parent
    source = fingerprint([package / "simulations", package / "theory"])
    return {"numpy": np.__version__, "scipy": scipy.__version__, "source": source}


def fingerprint(folders: Iterable[Path]) -> str:
    """A hash of every *.py file in the folders and theirs, but of what no value depends on."""
    total = hashlib.sha256()
    for folder in folders:
        for file in sorted(folder.rglob("*.py")):
            # Proofs compute nothing that a sweep holds.
            if not {"claims", "proofs", "checker"} & set(file.relative_to(folder).parts):
                total.update(hashlib.sha256(file.read_bytes()).digest())
    return total.hexdigest()[:12]


def _words(versions: dict[str, str]) -> str:
    return " and ".join(f"{name} {version}" for name, version in sorted(versions.items()))


def summary(table: pd.DataFrame) -> str:
    """How many points have which verdict, whether the runs bear it out, and what failed."""
    good = table[table["status"] != "error"]
    counts = good["verdict"].value_counts()
    lines = [", ".join(f"{number:,} {verdict}" for verdict, number in counts.items())]
    if "slope" in table:
        smoothing = good[(good["verdict"] == Outcome.SMOOTHING) & good["slope"].notna()]
        if len(smoothing):
            gap = (smoothing["slope"] - smoothing["predicted_log_rate"]).abs().median()
            lines.append(
                f"SMOOTHING points: measured slope of log HFC/LFC per layer against the predicted "
                f"log(rho_Q/rho_C), median difference {gap:.1e}"
            )
    failed = table[table["status"] == "error"]
    if len(failed):
        reasons = failed["note"].value_counts()
        lines.append(f"{len(failed):,} points failed, most often: {reasons.index[0]}")
    return "\n".join(line for line in lines if line)
