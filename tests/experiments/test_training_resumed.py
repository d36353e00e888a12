"""An interrupted training goes on exactly; what is damaged or full is said, and nothing is lost."""

import errno
import os
import re
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import pandas as pd
import pytest
import torch
from safetensors.torch import load_file, save_file

from oversmoothing import main
from oversmoothing.experiments.digits.data import digits
from oversmoothing.experiments.digits.training import (
    TrainedModel,
    new_model,
    refresh_intervals,
    trained,
)
from oversmoothing.experiments.digits.training_config import TrainConfig
from oversmoothing.experiments.digits.training_loop import Loop
from oversmoothing.experiments.digits.training_state import LAST, PREVIOUS, kept, unfinished
from tests.support.refusals import refuses
from tests.support.tiny_models import tiny_config

# Eight steps an epoch, two epochs; interrupted in the middle of the second.
PER_EPOCH, STOP = 8, 13


def config(variant: str = "vit-shared-interval", **changes: object) -> TrainConfig:
    return tiny_config(variant, **{"watch_every": 6, "drop_path": 0.2, **changes})


def run(config: TrainConfig, folder: Path, every: int = 2) -> TrainedModel:
    return trained(config, folder, progress=False, every=every)


@contextmanager
def failing_at(step: int, what: Callable[[], object]) -> Iterator[None]:
    """Within it `what` is done in front of that step."""
    genuine = Loop.step

    def stepped(loop: Loop, *given: torch.Tensor) -> torch.Tensor:
        if loop.state.step == step:
            what()
        return genuine(loop, *given)

    with mock.patch.object(Loop, "step", stepped):
        yield


def step_of(folder: Path) -> int | None:
    """That of the last good checkpoint."""
    there = kept(folder)
    return None if there is None else there[2]["step"]


def died() -> None:
    raise RuntimeError("died")


def killed(number: int, times: int = 1) -> Callable[[], None]:
    """This process is sent that signal."""

    def kill() -> None:
        for _ in range(times):
            os.kill(os.getpid(), number)

    return kill


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that nothing interrupted: measured intervals have state of their own."""
    return run(config(), tmp_path_factory.mktemp("whole"), 10**6)


def same(found: TrainedModel, wanted: TrainedModel) -> None:
    for name, value in wanted.run.weights.items():
        assert torch.equal(value, found.run.weights[name]), name
    for name in ("log.csv", "watched.csv"):
        assert (found.run.folder / name).read_bytes() == (wanted.run.folder / name).read_bytes()
    for name in ("selected_epoch", "test_correct", "validation_accuracy"):
        assert found.run.metrics[name] == wanted.run.metrics[name]


def test_a_measured_interval_is_that_of_the_whole_network():
    """Stochastic depth leaves branches out in training; the interval belongs to none left out."""
    held = []
    for drop_path in (0.0, 0.9):
        net = new_model(config(depth=3, std=0.5, drop_path=drop_path))
        refresh_intervals(net, digits().validation.inputs(slice(8)))
        held.append([float(b.attention.owner.projection.form.s) for b in net.blocks()])
        assert net.training
    assert held[0] == held[1]


@pytest.mark.parametrize("stop", [1, PER_EPOCH, STOP])
def test_a_run_that_died_ends_with_the_same_weights_bit_for_bit(whole, tmp_path, stop):
    with failing_at(stop, died):
        refuses("died", run, whole.config, tmp_path, 1 if stop == 1 else 2, error=RuntimeError)
    assert [*tmp_path.iterdir()] == [unfinished(tmp_path / whole.config.folder_name())]
    seen = []
    with failing_at(stop - stop % 2 if stop > 1 else 1, lambda: seen.append("resumed")):
        found = run(whole.config, tmp_path)
    assert seen == ["resumed"]
    same(found, whole)
    assert [path.name for path in tmp_path.iterdir()] == [found.run.folder.name]


def test_a_process_killed_in_mid_epoch_is_gone_on_from(whole, tmp_path):
    """SIGKILL, which no handler sees."""
    folder = unfinished(tmp_path / whole.config.folder_name())
    with failing_at(STOP, lambda: time.sleep(600)):
        child = os.fork()
        if child == 0:
            try:
                run(whole.config, tmp_path, 1)
            finally:
                os._exit(1)
    deadline = time.monotonic() + 60
    while True:
        assert time.monotonic() < deadline
        if folder.exists() and step_of(folder) == STOP:
            break
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    same(run(whole.config, tmp_path), whole)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_keeps_the_step_and_says_so(whole, tmp_path, number):
    handler = signal.getsignal(number)
    with failing_at(STOP, killed(number)):
        said = rf"behind step {STOP + 1} of 16.*goes on"
        refuses(said, run, whole.config, tmp_path, 10**6, error=KeyboardInterrupt)
    assert signal.getsignal(number) == handler
    assert step_of(unfinished(tmp_path / whole.config.folder_name())) == STOP + 1
    same(run(whole.config, tmp_path, 10**6), whole)


def test_a_second_ctrl_c_ends_at_once(tmp_path):
    with failing_at(3, killed(signal.SIGINT, 2)):
        refuses("", run, config(), tmp_path, 2, error=KeyboardInterrupt)
    assert step_of(unfinished(tmp_path / config().folder_name())) == 2


def test_the_command_line_says_where_it_stopped(tmp_path, capsys, told):
    path = tmp_path / "run.toml"
    path.write_text('variant = "vit-"\ndepth = 2\nwidth = 16\nheads = 2\nepochs = 2\n')
    command = ["train", str(path), "--device", "cpu", "--out", str(tmp_path / "out")]
    with failing_at(20, killed(signal.SIGINT)):
        assert main(command) == 130
    assert "stopped behind step 21 of 66" in capsys.readouterr().err
    assert "test accuracy" in told(0, *command)


def test_watching_changes_no_bit_and_has_its_steps(whole, tmp_path):
    unwatched = whole.config.model_copy(update={"watch_every": 0})
    plain = trained(unwatched, tmp_path, progress=False)
    for name, value in whole.run.weights.items():
        assert torch.equal(value, plain.run.weights[name]), name
    assert plain.run.watched.empty
    watched = whole.run.watched
    assert sorted(set(watched["step"])) == [0, 6, 12]
    assert set(watched["layer"]) == {0, 1, 2} and set(watched["mode"]) == {"train"}
    layers = watched[watched["layer"] > 0]
    wanted = ["hfc_lfc", "cos_mean", "effective_rank", "h_universal_disc", "condition_V_H"]
    assert layers[wanted].notna().all(axis=None)
    # H is symmetric, so that its eigenvectors are orthonormal.
    assert layers["asymmetry"].max() < 1e-6
    assert layers["condition_V_H"].max() == pytest.approx(1, abs=1e-5)


def interrupted(config: TrainConfig, folder: Path) -> Path:
    """A run with two checkpoints, of steps 10 and 12."""
    with failing_at(STOP, died):
        refuses("died", run, config, folder, error=RuntimeError)
    place = unfinished(folder / config.folder_name())
    assert sorted(path.name for path in place.iterdir()) == sorted([LAST, PREVIOUS])
    return place


@pytest.mark.parametrize("how", ["truncated", "altered", "without its words"])
def test_a_damaged_checkpoint_is_refused_and_the_one_before_it_serves(whole, tmp_path, how):
    place = interrupted(whole.config, tmp_path)
    path = place / LAST
    content = bytearray(path.read_bytes())
    content[-1] ^= how == "altered"  # one bit of one tensor
    path.write_bytes(content[:-7] if how == "truncated" else content)
    if how == "without its words":
        save_file(load_file(path), path)
    said = rf"{re.escape(str(path))}' is damaged .*delete it and the run goes on"
    refuses(said, run, whole.config, tmp_path)
    path.unlink()
    assert step_of(place) == 10
    same(run(whole.config, tmp_path), whole)


def test_what_was_watched_is_guarded_by_the_manifest(whole, tmp_path):
    folder = tmp_path / whole.run.folder.name
    shutil.copytree(whole.run.folder, folder)
    pd.DataFrame({"step": [0]}).to_csv(folder / "watched.csv")
    refuses(r"watched.csv is not the file", run, whole.config, tmp_path)
    (folder / "watched.csv").unlink()
    refuses(r"watched.csv is missing", run, whole.config, tmp_path)


def test_a_checkpoint_of_another_configuration_is_refused(tmp_path):
    place = interrupted(config(), tmp_path)
    other = config(seed=9)
    place.rename(unfinished(tmp_path / other.folder_name()))
    refuses("of another configuration: delete that folder", run, other, tmp_path)


def test_a_full_disk_is_said_and_the_last_checkpoint_stays(tmp_path, monkeypatch):
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with (
        monkeypatch.context() as patched,
        failing_at(9, lambda: patched.setattr(os, "fsync", full)),
    ):
        refuses(r"cannot write .*No space left", run, config(), tmp_path)
    place = unfinished(tmp_path / config().folder_name())
    assert step_of(place) == 8
    assert run(config(), tmp_path).run.metrics["selected_epoch"] > 0


def test_a_diverging_run_keeps_its_last_good_checkpoint(tmp_path, monkeypatch):
    genuine = Loop.step

    def stepped(loop, *given):
        loss = genuine(loop, *given)
        return loss * float("nan") if loop.state.step == 10 else loss

    monkeypatch.setattr(Loop, "step", stepped)
    said = r"diverged in epoch 2.*last good checkpoint is kept in"
    refuses(said, run, config(watch_every=100), tmp_path, 4)
    assert step_of(unfinished(tmp_path / config(watch_every=100).folder_name())) == 8


@pytest.mark.parametrize("variant", ["vit", "vit-"])
def test_eigenvalues_drawn_too_large_are_said(variant, tmp_path):
    refuses(r"^.*lower learning_rate.*std.*\Z", run, config(variant, std=1e30), tmp_path)
    assert list(tmp_path.iterdir()) == []
