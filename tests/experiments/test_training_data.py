"""What models are trained and scored on: CIFAR as it comes, shares, corruptions, the recipe."""

import io
import tarfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import torch
from PIL import Image

from oversmoothing import main, open_model
from oversmoothing.experiments.digits import data as module
from oversmoothing.experiments.digits.corruptions import (
    KINDS,
    PUBLISHED,
    SEVERITIES,
    corrupted,
    kinds_for,
    published,
)
from oversmoothing.experiments.digits.data import (
    SIZES,
    DataParts,
    LabelledImages,
    Sizes,
    cifar,
    digits,
)
from oversmoothing.experiments.digits.training import new_model, trained
from oversmoothing.experiments.digits.training_config import (
    TrainConfig,
    configurations,
    recipe,
    recipes,
)
from oversmoothing.experiments.digits.training_loop import drawn_from, training_batch
from oversmoothing.experiments.inspection.extract import extract
from tests.support.cases import cases
from tests.support.refusals import refuses

CPU = torch.device("cpu")
# Of each class: 4 training images, of which one is for validation, and 2 test images.
SMALL = Sizes(32, 3, 10, 30, 10, 20)


@pytest.fixture
def small(monkeypatch):
    """CIFAR-10 in small: as many images as a test can hold."""
    monkeypatch.setitem(SIZES, "cifar10", SMALL)
    monkeypatch.setattr(module, "OFFICIAL", (40, 20))
    module.cifar.cache_clear()
    rng = np.random.default_rng(0)
    yield {
        f"{part}_{what}": value
        for part, count in (("train", 40), ("test", 20))
        for what, value in (
            ("pixels", rng.integers(0, 256, (count, 3, 32, 32), dtype=np.uint8)),
            ("labels", rng.permutation(np.arange(count) % 10).astype(np.uint8)),
        )
    }
    module.cifar.cache_clear()


def png(pixels: np.ndarray) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(pixels.transpose(1, 2, 0)).save(stream, "PNG")
    return stream.getvalue()


def write_parquet(folder: Path, data: dict[str, np.ndarray]) -> None:
    folder.mkdir(parents=True)
    for part in ("train", "test"):
        images = [{"bytes": png(one), "path": None} for one in data[f"{part}_pixels"]]
        table = pa.table({"img": images, "label": data[f"{part}_labels"].astype(np.int64)})
        half = len(images) // 2
        for number, shard in enumerate((table[:half], table[half:])):
            pa.parquet.write_table(shard, folder / f"{part}-0000{number}-of-00002.parquet")


def binary(data: dict[str, np.ndarray], part: str) -> bytes:
    pixels, labels = data[f"{part}_pixels"], data[f"{part}_labels"]
    return np.concatenate([labels[:, None], pixels.reshape(len(pixels), -1)], 1).tobytes()


def write_archive(folder: Path, data: dict[str, np.ndarray]) -> None:
    train = binary(data, "train")
    share = len(train) // 5
    files = {f"data_batch_{k + 1}.bin": train[k * share : (k + 1) * share] for k in range(5)}
    with tarfile.open(folder / "cifar-10-binary.tar.gz", "w:gz") as archive:
        for name, content in {**files, "test_batch.bin": binary(data, "test")}.items():
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def same_parts(one: DataParts, other: DataParts) -> None:
    for name in ("train", "validation", "test"):
        a, b = getattr(one, name), getattr(other, name)
        assert torch.equal(a.pixels, b.pixels) and torch.equal(a.labels, b.labels)


def test_parquet_archive_and_hub_give_the_same_images(small, tmp_path, monkeypatch):
    write_parquet(tmp_path / "a" / "cifar10", small)
    (tmp_path / "b").mkdir()
    write_archive(tmp_path / "b", small)
    found = cifar("cifar10", tmp_path / "a", progress=False)
    same_parts(found, cifar("cifar10", tmp_path / "b", progress=False))
    asked = []
    import huggingface_hub

    def fetched(repo, **given):
        asked.append((repo, given))
        return str(tmp_path / "a" / "cifar10")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fetched)
    same_parts(found, cifar("cifar10", None, hub=True, progress=False))
    assert asked == [("uoft-cs/cifar10", {"repo_type": "dataset", "allow_patterns": "*.parquet"})]
    assert [len(part) for part in (found.train, found.validation, found.test)] == [30, 10, 20]
    assert torch.bincount(found.validation.labels).tolist() == [1] * 10
    assert torch.equal(found.test.pixels, torch.from_numpy(small["test_pixels"]))
    both = torch.cat([found.train.pixels, found.validation.pixels]).flatten(1)
    wanted = torch.from_numpy(small["train_pixels"]).flatten(1)
    assert torch.equal(torch.unique(both, dim=0), torch.unique(wanted, dim=0))


@cases(
    "damage, message",
    ("none", "holds none of it: give --data-dir"),
    ("shard", r"images of \d+ classes were found, 40 of 10"),
    ("garbled", "cannot be read as cifar10"),
    ("column", "cannot be read as cifar10"),
    ("archive", "cannot be read"),
    ("bytes", "no multiple of the 3073"),
)
def test_a_wrong_data_folder_is_said_in_a_sentence(small, tmp_path, damage, message):
    folder = tmp_path / "cifar10"
    if damage in ("shard", "garbled", "column"):
        write_parquet(folder, small)
        path = folder / "train-00001-of-00002.parquet"
        if damage == "shard":
            path.unlink()
        elif damage == "garbled":
            path.write_bytes(path.read_bytes()[:100])
        else:
            pa.parquet.write_table(pa.table({"other": [1]}), path)
    elif damage == "archive":
        (tmp_path / "cifar-10-binary.tar.gz").write_bytes(b"no archive")
    elif damage == "bytes":
        place = tmp_path / "cifar-10-batches-bin"
        place.mkdir()
        for each in ("test_batch.bin", *(f"data_batch_{k}.bin" for k in range(1, 6))):
            (place / each).write_bytes(b"x" * 3000)
    refuses(rf"^.*{message}.*\Z", cifar, "cifar10", tmp_path, progress=False)


def test_the_command_says_what_the_data_folder_lacks(tmp_path, capsys, told):
    command = ["train", "--recipe", "cifar100-small", "--data-dir", str(tmp_path)]
    assert "cifar100 is needed and" in told(2, *command, "--out", tmp_path / "out")
    assert main(["train", "--recipe", "nothing", "--out", str(tmp_path / "out")]) == 2
    assert "Choose cifar10-vit-ti, cifar100-small" in capsys.readouterr().err


def test_every_recipe_is_a_configuration():
    for name in recipes():
        (found,) = configurations(None, "vit-", 3, name)
        assert found.variant == "vit-" and found.seed == 3
        assert found.data == recipe(name)["data"]
    paper = configurations(None, "vit", None, "cifar100-vit-ti")[0]
    assert (paper.width, paper.heads, paper.depth, paper.patch) == (192, 3, 12, 4)
    assert paper.epochs == 300 and paper.augmentation == "deit"


def test_a_toml_file_that_is_none_is_said(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text("depth = ")
    refuses("is not TOML", lambda: configurations(str(path), None, None))
    refuses("choose one", lambda: configurations(str(path), None, None, "cifar100-small"))


def test_smaller_shares_lie_within_larger_ones_with_all_classes():
    whole = digits()
    tenth, half = whole.with_fraction(0.1), whole.with_fraction(0.5)
    count = TrainConfig(fraction=0.1).train_images
    assert len(tenth.train) == round(0.1 * len(whole.train)) == count
    rows = [{bytes(one.numpy()) for one in x.train.pixels} for x in (tenth, half, whole)]
    assert rows[0] < rows[1] < rows[2]
    for part in (tenth, half):
        own = torch.bincount(part.train.labels, minlength=10) / len(part.train)
        all_of_them = torch.bincount(whole.train.labels, minlength=10) / len(whole.train)
        assert (own - all_of_them).abs().max() <= 1 / len(part.train)
        assert part.validation is whole.validation and part.test is whole.test


def colours(count: int = 6) -> LabelledImages:
    """Smooth pictures, such that noise and blur have something to take."""
    t = torch.linspace(0, 6, 32)
    phase = torch.arange(count)[:, None, None, None] + torch.arange(3)[:, None, None]
    pixels = (torch.sin(t + phase) * torch.cos(2 * t)[:, None] + 1) * 127
    return LabelledImages(pixels.to(torch.uint8), torch.arange(count))


@pytest.mark.parametrize("kind", KINDS)
def test_corruption_repeats_keeps_its_range_and_grows_with_severity(kind):
    for images in (colours(), LabelledImages(digits().test.pixels[:40], digits().test.labels[:40])):
        if kind not in kinds_for(images):
            continue
        assert corrupted(images, kind, 0) is images
        distances = []
        for severity in SEVERITIES[1:]:
            found, again = (corrupted(images, kind, severity) for _ in "12")
            assert torch.equal(found.pixels, again.pixels)
            assert found.pixels.shape == images.pixels.shape
            assert found.pixels.dtype == images.pixels.dtype
            inputs = found.inputs()
            assert inputs.min() >= -1 and inputs.max() <= 1
            distances.append(float((inputs - images.inputs()).square().mean()))
        assert max(distances) > 0
        if kind != "saturate":  # less colour at first, then more
            assert distances[-1] >= distances[0]


def test_the_constants_are_what_the_definitions_say():
    grey = LabelledImages(torch.zeros(4, 8, 8), torch.zeros(4, dtype=torch.int64))
    assert torch.allclose(corrupted(grey, "brightness", 1).pixels, torch.full((4, 8, 8), 0.1))
    many = LabelledImages(torch.zeros(400, 8, 8), torch.zeros(400))
    noise = corrupted(many, "gaussian_noise", 3).pixels
    assert float(noise.std()) / 2 == pytest.approx(0.08, rel=0.03)  # [-1, 1] is twice [0, 1]
    hit = corrupted(many, "impulse_noise", 5).pixels
    assert float((hit != 0).float().mean()) == pytest.approx(0.07, abs=0.01)
    pictures = [each.pixels.double() for each in (colours(1), corrupted(colours(1), "contrast", 5))]
    whole, flat = ((x - x.mean((2, 3), keepdim=True)).std() for x in pictures)
    assert float(flat / whole) == pytest.approx(0.15, abs=0.01)
    # A blur keeps what is the same everywhere.
    for kind in ("gaussian_blur", "defocus_blur", "motion_blur", "zoom_blur", "pixelate"):
        assert torch.allclose(corrupted(grey, kind, 5).pixels, grey.pixels, atol=1.01 / 255)


@pytest.mark.parametrize(("severity", "sigma"), [(1, 0.4), (2, 0.6), (3, 0.7), (4, 0.8), (5, 1)])
def test_a_blur_is_the_gaussian_of_its_severity(severity, sigma):
    """A white point on black: exp(-k^2/(2 sigma^2)) along either side, which sums to 1."""
    point = torch.full((1, 15, 15), -1.0)
    point[0, 7, 7] = 1.0
    found = corrupted(LabelledImages(point, torch.zeros(1)), "gaussian_blur", severity).pixels
    k = torch.arange(-7.0, 8.0)
    weights = torch.exp(-(k**2) / (2 * sigma**2)).where(k.abs() <= int(4 * sigma + 0.5), 0.0)
    weights = weights / weights.sum()
    torch.testing.assert_close((found[0] + 1) / 2, weights.outer(weights), rtol=0, atol=1e-6)


def test_unknown_corruptions_are_refused():
    refuses("no corruption 'snow'", lambda: corrupted(colours(), "snow", 1))
    refuses("no corruption 'saturate'", lambda: corrupted(digits().test, "saturate", 1))
    refuses("severity 6", lambda: corrupted(colours(), "fog", 6))


def test_published_corruptions_are_read_where_they_lie(tmp_path, monkeypatch):
    monkeypatch.setattr("oversmoothing.experiments.digits.corruptions.TEST_IMAGES", 2)
    assert published("cifar100", tmp_path, "fog", 1) is None
    assert published("digits", tmp_path, "fog", 1) is None
    folder = tmp_path / PUBLISHED["cifar100"]
    folder.mkdir()
    pixels = np.random.default_rng(0).integers(0, 256, (10, 32, 32, 3), dtype=np.uint8)
    np.save(folder / "fog.npy", pixels)
    np.save(folder / "labels.npy", np.arange(10))
    found = published("cifar100", tmp_path, "fog", 3)
    assert found is not None and found.labels.tolist() == [4, 5]
    assert np.array_equal(found.pixels.numpy(), pixels[4:6].transpose(0, 3, 1, 2))
    for held in (pixels[:3], np.array([object()])):
        np.save(folder / "fog.npy", held, allow_pickle=True)
        refuses("cannot be read as CIFAR-100-C", published, "cifar100", tmp_path, "fog", 3)


PAPER = {"data": "cifar10", "augmentation": "deit", "depth": 2, "width": 16, "heads": 2, "patch": 8}


def test_mixed_images_carry_mixed_targets_and_global_randomness_is_left_alone():
    config, images = TrainConfig(**PAPER), LabelledImages(colours(8).pixels, torch.arange(8))
    before, seen = torch.get_rng_state(), set()
    for seed in range(8):
        (pixels, targets), (again, same) = (
            training_batch(images, torch.arange(8), config, torch.Generator().manual_seed(seed))
            for _ in "12"
        )
        assert torch.equal(pixels, again) and torch.equal(targets, same)
        assert pixels.shape == (8, 3, 32, 32) and targets.shape == (8, 10)
        assert pixels.min() >= -1 - 1e-5 and pixels.max() <= 1 + 1e-5
        torch.testing.assert_close(targets.sum(1), torch.ones(8))
        assert (targets.diagonal() >= 0).all() and bool((targets > 0).sum(1).max() <= 2)
        seen.add(len(torch.unique(targets.max(1).values)) == 1)
    assert torch.equal(torch.get_rng_state(), before)
    assert len(seen) == 2  # mixup has one share for a batch, CutMix one an image


def test_noise_in_the_pass_follows_its_generator_alone():
    def drawn(seed):
        with drawn_from(torch.Generator().manual_seed(seed), CPU):
            return torch.rand(4)

    torch.manual_seed(1)
    first = drawn(0)
    torch.manual_seed(2)
    assert torch.equal(drawn(0), first) and not torch.equal(drawn(1), first)


def test_stochastic_depth_keeps_the_mean_and_rests_in_evaluation():
    layer = new_model(TrainConfig(**{**PAPER, "drop_path": 0.5})).blocks()[-1]
    branch = torch.ones(4000, 1, 1)
    layer.train()
    with drawn_from(torch.Generator().manual_seed(0), CPU):
        found = layer._kept(branch)
    assert set(found.flatten().tolist()) == {0.0, 2.0}
    assert float(found.mean()) == pytest.approx(1, abs=0.1)
    assert layer.eval()._kept(branch) is branch


def test_a_model_of_pictures_trains_in_bfloat16_is_stored_and_inspected(small, tmp_path):
    write_parquet(tmp_path / "cifar10", small)
    config = TrainConfig(
        **{**PAPER, "variant": "vit-shared-band", "precision": "bfloat16", "drop_path": 0.1,
           "epochs": 2, "batch_size": 10, "log_every": 1, "probe_images": 2}
    )  # fmt: skip
    found = trained(config, tmp_path / "out", progress=False, data_dir=tmp_path)
    assert found.run.folder.name.startswith("cifar10-vit-shared-band-")
    assert {value.dtype for value in found.run.weights.values()} == {torch.float32}
    assert found.run.metrics["test_count"] == 20
    assert (found.run.log["region"] == "inside").all()
    pictures = cifar("cifar10", tmp_path, progress=False).test.inputs()[:3]
    seen = extract(open_model(found.model), pictures)
    assert max(seen.av_error) < 1e-4
    # A picture is read as the tensor is.
    own = open_model(found.model).prepare
    image = Image.fromarray(small["test_pixels"][0].transpose(1, 2, 0))
    torch.testing.assert_close(own([image])[0], pictures[0])
