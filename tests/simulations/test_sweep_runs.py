"""Running a sweep: killed, resumed, divided in any way, it writes the same table, byte for byte."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
import psutil
import pyarrow as pa
import pytest

from oversmoothing import InputError, main
from oversmoothing.simulations.sweep import runner, store
from oversmoothing.simulations.sweep.config import Config, parse
from oversmoothing.simulations.sweep.points import Points
from oversmoothing.simulations.sweep.runner import connect, processes, run_sweep
from oversmoothing.simulations.sweep.store import Store, read_table
from oversmoothing.theory.support.errors import RequirementError
from tests.support.refusals import refuses

# Several kinds, points that fail (low > high), points that are iterated, several heads.
SMALL = """
title = "small"
measures = ["ratio", "cosine", "rank", "limits"]
[fixed]
d = 5
depth = 60
low = -0.5
[axes]
value = ["interval", "defective", "ginibre"]
heads = [1, 2]
n = [1, 6]
high = [-0.7, 0.3]
seed = [0, 1, 2, 3, 4]
"""
# Enough work to be killed in: some seconds.
LONG = """
[fixed]
n = 24
value = "interval"
low = -1.5
[axes]
high = { from = -0.9, to = 0.9, steps = 20 }
seed = { from = 0, to = 19, steps = 20 }
"""


@pytest.fixture(scope="module")
def small():
    return parse(SMALL, "small")


@pytest.fixture(scope="module")
def unbroken(small, tmp_path_factory):
    return run_sweep(small, tmp_path_factory.mktemp("unbroken"))


def same(path: Path, other: Path) -> bool:
    """The same rows, bit for bit (NaN too), of the same configuration."""

    def content(file: Path) -> tuple[bytes, dict[str, Any]]:
        table = read_table(file)
        record, plain = json.loads(table.schema.metadata[b"oversmoothing"]), pa.BufferOutputStream()
        with pa.ipc.new_stream(plain, table.schema.remove_metadata()) as stream:
            stream.write_table(table.replace_schema_metadata(None).combine_chunks())
        return plain.getvalue().to_pybytes(), record["config"]

    return content(path) == content(other)


def test_the_table_has_every_point_in_order_and_its_record(small, unbroken):
    table = read_table(unbroken)
    rows = table.to_pandas()
    points = list(Points(small))
    assert rows["point"].tolist() == list(range(len(points))) and len(points) == 80
    for name in ("value", "heads", "n", "seed", "low"):
        assert [p.get(name) for p in points] == [
            None if pd.isna(x) else x for x in rows[name].tolist()
        ]
    failed = rows[rows["status"] == "error"]
    assert set(failed["high"]) == {-0.7} and failed["note"].str.contains("exceeds high").all()
    assert failed["verdict"].isna().all() and len(failed) == 20
    assert set(rows["method"].dropna()) == {"closed form", "iteration"}
    record = json.loads(table.schema.metadata[b"oversmoothing"])
    assert record["digest"] == small.digest and record["versions"]["numpy"]
    assert record["config"]["axes"][0] == ["value", ["interval", "defective", "ginibre"]]
    assert not (unbroken.parent / "chunks").exists()


@pytest.mark.parametrize("chunk", [7, 1000])
def test_the_length_of_a_chunk_changes_no_byte(small, unbroken, tmp_path, chunk):
    assert same(run_sweep(small, tmp_path, chunk=chunk), unbroken)


def test_worker_processes_change_no_byte(small, unbroken, tmp_path):
    assert same(run_sweep(small, tmp_path, chunk=9, backend=processes(2)), unbroken)


class Stop(Exception):
    pass


def stopped_after(config: Config, folder: Path, number: int, **options: Any) -> None:
    """Run until `number` chunks are written, then break off."""
    seen = iter(range(number - 1))

    def stop(chunk: range) -> None:
        if next(seen, None) is None:
            raise Stop

    refuses("", lambda: run_sweep(config, folder, after_chunk=stop, **options), error=Stop)


def test_a_broken_run_resumes_with_what_is_missing(small, unbroken, tmp_path, capsys):
    stopped_after(small, tmp_path, 3, chunk=10)
    computed = []
    path = run_sweep(small, tmp_path, chunk=8, after_chunk=computed.append)
    assert computed[0].start == 30 and sum(map(len, computed)) == 50
    assert "30 of 80 points are there" in capsys.readouterr().err
    assert same(path, unbroken)
    run_sweep(small, tmp_path, after_chunk=computed.append)
    assert len(computed) == 7 and "nothing to do" in capsys.readouterr().err


@pytest.mark.parametrize("damage", ["flip", "empty", "foreign"])
def test_damaged_chunks_are_seen_said_and_computed_again(small, unbroken, tmp_path, capsys, damage):
    stopped_after(small, tmp_path, 3, chunk=10)
    first, second, _ = sorted((tmp_path / "chunks").glob("*.parquet"))
    data = bytearray(second.read_bytes())
    if damage == "flip":
        data[len(data) // 2] ^= 1
    elif damage == "empty":
        data = bytearray()
    else:
        data = bytearray(first.read_bytes())
    second.write_bytes(data)
    assert same(run_sweep(small, tmp_path, chunk=10), unbroken)
    said = capsys.readouterr().err
    assert f"damaged, computed again: {second}" in said and "20 of 80" in said


def test_overlapping_chunks_count_once(small, unbroken, tmp_path):
    stopped_after(small, tmp_path, 2, chunk=10)
    some = list(Points(small))[15:25]
    chunk, rows = runner.compute((range(15, 25), some, small.measures))
    Store(tmp_path, small, 80).add(chunk, some, rows)
    assert same(run_sweep(small, tmp_path), unbroken)


def test_another_configuration_or_version_is_refused_with_advice(small, unbroken, tmp_path):
    other = parse(SMALL.replace("low = -0.5", "low = -0.6"), "other")
    stopped_after(small, tmp_path, 1, chunk=10)
    refuses(r"another configuration.*--out.*--restart", run_sweep, other, tmp_path)
    manifest = tmp_path / "chunks" / "manifest.json"
    record = json.loads(manifest.read_text())
    manifest.write_text(json.dumps(record | {"numerics": record["numerics"] | {"numpy": "1.0"}}))
    refuses(r"numpy 1\.0.*--restart", run_sweep, small, tmp_path)
    manifest.write_text("{")
    refuses("damaged", run_sweep, small, tmp_path)
    assert same(run_sweep(small, tmp_path, restart=True), unbroken)
    refuses("table of another configuration", run_sweep, other, tmp_path)


def test_a_numeric_file_that_changed_refuses_the_resume(small, unbroken, tmp_path, monkeypatch):
    package = Path(store.__file__).parent.parent.parent
    copies = [tmp_path / name for name in ("simulations", "theory")]
    for copy in copies:
        shutil.copytree(package / copy.name, copy, ignore=shutil.ignore_patterns("__pycache__"))

    assert store._numerics()["source"] == store.fingerprint(copies)

    def numerics():
        return {"numpy": "2", "source": store.fingerprint(copies)}

    def append(place):
        path = tmp_path / place
        path.write_text(path.read_text("utf-8") + "\n# changed\n", "utf-8")

    monkeypatch.setattr(store, "_numerics", numerics)
    stopped_after(small, tmp_path / "out", 1, chunk=10)
    append("theory/claims/__init__.py")
    append("theory/proofs/claim.py")
    stopped_after(small, tmp_path / "out", 1, chunk=10)
    for place in ("simulations/generators/attention.py", "theory/spectra/layer_discs.py"):
        append(place)
        refuses(r"source.*--restart", run_sweep, small, tmp_path / "out")
        stopped_after(small, tmp_path / "out", 1, chunk=10, restart=True)


def test_a_damaged_table_is_computed_again(small, unbroken, tmp_path, capsys):
    path = run_sweep(small, tmp_path)
    data = bytearray(path.read_bytes())
    data[200] ^= 1
    path.write_bytes(data)
    assert same(run_sweep(small, tmp_path), unbroken)
    assert "damaged" in capsys.readouterr().err
    path.write_bytes(b"")
    assert same(run_sweep(small, tmp_path), unbroken)


def start(config: Path, out: Path, *options: str) -> subprocess.Popen[bytes]:
    """The command in a process group of its own; returns once two chunks are written."""
    command = [sys.executable, "-m", "oversmoothing", "sweep", str(config), "--out", str(out)]
    folder = out / "sweeps" / config.stem
    run = subprocess.Popen(
        [*command, "--chunk", "5", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        # A background job inherits SIGINT ignored; the run must see it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    while len(list((folder / "chunks").glob("*.parquet"))) < 2:
        assert run.poll() is None, run.communicate()
        time.sleep(0.01)
    return run


def workers_end(session: int) -> None:
    """None of the processes of a killed run is left after a while."""

    def session_of(process: psutil.Process) -> int:
        with suppress(OSError):
            return os.getsid(process.pid)
        return -1

    running = [p for p in psutil.process_iter() if session_of(p) == session]
    _, left = psutil.wait_procs(running, timeout=60)
    assert not [p for p in left if p.status() != psutil.STATUS_ZOMBIE]


def test_a_killed_run_resumes_to_the_table_of_an_unbroken_one(tmp_path):
    file = tmp_path / "long.toml"
    file.write_text(LONG)
    config = parse(LONG, "long")
    run = start(file, tmp_path, "--workers", "2")
    killed = tmp_path / "sweeps" / "long"
    run.send_signal(signal.SIGKILL)
    run.communicate()
    workers_end(run.pid)
    done = len(list((killed / "chunks").glob("*.parquet")))
    assert 2 <= done < 80
    resumed = run_sweep(config, killed, backend=processes(2))
    assert same(resumed, run_sweep(config, tmp_path / "unbroken"))


def test_an_interrupted_run_keeps_its_chunks_and_says_so(tmp_path):
    file = tmp_path / "long.toml"
    file.write_text(LONG)
    run = start(file, tmp_path / "out")
    run.send_signal(signal.SIGINT)
    _, said = run.communicate()
    assert run.returncode == 130 and b"finished parts are kept: the same command" in said
    assert len(list((tmp_path / "out" / "sweeps" / "long" / "chunks").glob("*.parquet"))) >= 2


@pytest.fixture(scope="module")
def cluster():
    pytest.importorskip("distributed")
    backend = runner.local_cluster(2)
    yield backend
    backend.close()


def test_a_dask_cluster_that_loses_a_worker_writes_the_same_table(
    cluster, small, unbroken, tmp_path
):
    killed: list[int] = []

    def kill(chunk):
        if not killed:
            pids = cluster.client.run(os.getpid)
            killed.append(next(iter(pids.values())))
            os.kill(killed[0], signal.SIGKILL)

    path = run_sweep(small, tmp_path, chunk=4, backend=cluster, after_chunk=kill)
    assert killed and same(path, unbroken)


def test_a_scheduler_is_joined_by_its_address(cluster, small, unbroken, tmp_path):
    file = tmp_path / "small.toml"
    file.write_text(SMALL)
    address = cluster.client.scheduler.address
    assert not main(["sweep", str(file), f"--out={tmp_path / 'a'}", f"--scheduler={address}"])
    assert same(tmp_path / "a" / "sweeps" / "small" / "sweep.parquet", unbroken)


def test_what_cannot_run_is_refused_with_advice(tmp_path, monkeypatch, capsys):
    file = tmp_path / "small.toml"
    file.write_text(SMALL)
    out = (file, "--out", tmp_path / "out")
    for arguments, said in [
        ((), "CONFIG.toml or --example"),
        ((file, "--example", "phase_diagram"), "CONFIG.toml or --example"),
        ((*out, "--workers", "0"), "at least 1"),
        ((*out, "--cluster", "local", "--workers", "0"), "at least 1"),
        ((*out, "--chunk", "0"), "at least 1"),
        ((*out, "--scheduler", "tcp://127.0.0.1:1", "--workers", "2"), "leave out"),
        ((tmp_path / "none.toml",), "cannot read"),
        ((file, "--out", file), "cannot write"),
        ((*out, "--figure", "seed", "heads", "sed"), "different ones, of value"),
        ((*out, "--figure", "seed", "seed"), "different ones, of value"),
    ]:
        assert main(["sweep", *map(str, arguments)]) == 2
        printed, refused = capsys.readouterr()
        assert said in refused and printed == ""
    refuses("cannot read", read_table, file)
    pd.DataFrame({"a": [1]}).to_parquet(tmp_path / "x.parquet")
    refuses("not the table of a sweep", lambda: read_table(tmp_path / "x.parquet"))
    monkeypatch.setitem(sys.modules, "distributed", None)
    refuses(r"oversmoothing\[cluster\]", connect, "tcp://127.0.0.1:1", error=RequirementError)


def test_no_scheduler_at_the_address_is_said(monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(runner, "PATIENCE", 1)
    refuses(r"no Dask scheduler answers at 'tcp://127\.0\.0\.1:1'", connect, "tcp://127.0.0.1:1")


def test_a_killed_worker_process_stops_the_run_and_keeps_its_chunks(small, unbroken, tmp_path):
    killed: list[psutil.Process] = []

    def kill(chunk):
        if not killed:
            mine = psutil.Process().children()
            killed.append(next(p for p in mine if "popen_loky" in " ".join(p.cmdline())))
            killed[0].kill()

    with pytest.raises(RequirementError, match="finished chunks are kept"):
        run_sweep(small, tmp_path, chunk=1, backend=processes(2), after_chunk=kill)
    assert list((tmp_path / "chunks").glob("*.parquet"))
    assert same(run_sweep(small, tmp_path), unbroken)


def test_the_command_says_what_came_out(unbroken, tmp_path, capsys):
    file = tmp_path / "small.toml"
    file.write_text(SMALL)
    assert main(["sweep", str(file), f"--out={tmp_path / 'a'}", "--csv"]) == 0
    out, err = capsys.readouterr()
    assert "80 points: 3 value x 2 heads" in out and "20 points failed" in out
    assert "SMOOTHING" in out and err == ""
    csv = pd.read_csv(tmp_path / "a" / "sweeps" / "small" / "sweep.csv")
    pd.testing.assert_frame_equal(csv, read_table(unbroken).to_pandas(), check_dtype=False)
    file.write_text("[fixed]\nvalue = 'interval'\nlow = 1.0\nhigh = 0.0")
    assert main(["sweep", str(file), f"--out={tmp_path / 'b'}"]) == 1
    assert "1 points failed" in capsys.readouterr().out


def test_two_sweeps_do_not_work_in_one_folder(small, tmp_path):
    def second(_):
        refuses("another program is at work in", run_sweep, small, tmp_path)

    run_sweep(small, tmp_path, after_chunk=second)
    run_sweep(small, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["sweep.parquet"]


def test_no_flipped_bit_of_a_table_changes_what_is_read(unbroken, tmp_path):
    """Names of columns, the record and the pages: what is not seen to be damaged reads the same."""
    data, path = unbroken.read_bytes(), tmp_path / "sweep.parquet"
    whole = read_table(unbroken)
    rng = random.Random(0)
    # Half of them in the footer, which no checksum of Parquet covers.
    places = [rng.randrange(len(data)) for _ in range(60)]
    places += [rng.randrange(len(data) - 6000, len(data)) for _ in range(60)]
    seen = 0
    for place in places:
        bent = bytearray(data)
        bent[place] ^= 1 << rng.randrange(8)
        path.write_bytes(bent)
        try:
            found = read_table(path)
        except InputError:
            seen += 1
            continue
        assert found.to_pandas().equals(whole.to_pandas())
        record = b"oversmoothing"
        assert found.schema.metadata[record] == whole.schema.metadata[record]
    assert seen > len(places) / 2


def test_a_folder_whose_name_is_no_text_holds_a_sweep(tmp_path):
    config = parse('[fixed]\nn = 2\nd = 1\nvalue = "interval"\n[axes]\nseed = [0]\n', "named")
    table = run_sweep(config, tmp_path / "\udcff")
    assert read_table(table).num_rows == 1
    assert run_sweep(config, tmp_path / "\udcff") == table
