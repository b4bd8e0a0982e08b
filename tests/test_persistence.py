"""Saved models: whole or not at all, readable in a new process, clear about what is wrong with a damaged one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from samples import LABELS, TEXTS

import textkernels as tk
from textkernels.persistence import FORMAT, checksums


@pytest.fixture(scope="module")
def classifier() -> tk.KernelClassifier:
    return tk.KernelClassifier().fit(TEXTS, LABELS)


def test_a_new_process_predicts_the_same(classifier, tmp_path) -> None:
    classifier.save(tmp_path / "model")
    code = (
        "import sys, textkernels as tk; model = tk.load(sys.argv[1]); "
        "print(repr(model.predict_proba(['a fine film', 'dull']).tolist()))"
    )
    output = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "model")], capture_output=True, text=True, check=True
    ).stdout
    np.testing.assert_allclose(json.loads(output), classifier.predict_proba(["a fine film", "dull"]), atol=1e-12)


def test_nothing_in_the_folder_is_a_pickle(classifier, tmp_path) -> None:
    classifier.save(tmp_path / "model")
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == [
        "config.json",
        "encoder.safetensors",
        "latent.safetensors",
    ]


def test_saving_replaces_a_model_and_nothing_else(classifier, tmp_path) -> None:
    classifier.save(tmp_path / "model")
    classifier.save(tmp_path / "model")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "to-a-friend.txt").write_text("dear friend")
    with pytest.raises(ValueError, match="something else"):
        classifier.save(tmp_path / "letters")
    assert (tmp_path / "letters" / "to-a-friend.txt").exists()


FOREIGN = {
    "of another program": (
        {"config.json": '{"model_type": "bert"}', "model.onnx": "weights"},
        "config.json, model.onnx",
    ),
    "with our format number": ({"config.json": f'{{"format": {FORMAT}}}'}, "config.json"),
    "not JSON": ({"config.json": "{"}, "config.json"),
    "a list": ({"config.json": "[]"}, "config.json"),
    "hidden": ({".git": ""}, ".git"),
}


@pytest.mark.parametrize("files", FOREIGN)
def test_a_folder_of_something_else_is_left_alone(classifier, tmp_path, files) -> None:
    contents, named = FOREIGN[files]
    for name, text in contents.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=rf"something else is there \({named}\)"):
        classifier.save(tmp_path)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == contents


def test_a_model_with_other_files_beside_it_is_left_alone(classifier, tmp_path) -> None:
    folder = tmp_path / "model"
    classifier.save(folder)
    (folder / "runs").mkdir()
    (folder / "notes.txt").write_text("mine")
    before = (folder / "config.json").stat()
    with pytest.raises(ValueError, match=r"something else is there \(notes.txt, runs\); give another name"):
        classifier.save(folder)
    assert (folder / "config.json").stat() == before
    assert (folder / "notes.txt").read_text() == "mine"


def link(place: Path, target: str) -> Path:
    place.symlink_to(target)
    return place


# Made in an empty folder, which is also the current one; the last holds the model afterwards.
PLACES = {
    "current folder": lambda here: (".", here),
    "folder above": lambda here: ((here / "a").mkdir() or "a/../b", here / "b"),
    "new folders": lambda here: ("a/b/c", here / "a" / "b" / "c"),
    "link to an empty folder": lambda here: ((here / "real").mkdir() or link(here / "l", "real"), here / "real"),
    "link to nothing": lambda here: (link(here / "l", "real"), here / "real"),
}


@pytest.mark.parametrize("place", PLACES)
def test_places_for_a_model(classifier, tmp_path, monkeypatch, place) -> None:
    monkeypatch.chdir(tmp_path)
    given, written = PLACES[place](tmp_path)
    for _ in range(2):
        classifier.save(given)
        assert sorted(os.listdir(written)) == ["config.json", "encoder.safetensors", "latent.safetensors"]
        assert os.path.samefile(".", tmp_path)
        np.testing.assert_array_equal(tk.load(given).predict(TEXTS), classifier.predict(TEXTS))


def test_a_link_stays_and_its_model_is_replaced(classifier, tmp_path) -> None:
    classifier.save(tmp_path / "model")
    old = json.loads((tmp_path / "model" / "config.json").read_text())
    link(tmp_path / "current", "model")
    tk.KernelClassifier(architecture="gap").fit(TEXTS, LABELS).save(tmp_path / "current")
    assert (tmp_path / "current").is_symlink()
    new = json.loads((tmp_path / "model" / "config.json").read_text())
    assert new["architecture"] != old["architecture"]


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (lambda here: "", "expected the name of a folder"),
        (lambda here: link(here / "l", "l"), "leads back to itself"),
        (lambda here: (here / "f").write_text("x") and here / "f", "got a file"),
        (lambda here: (here / "f").write_text("x") and here / "f" / "m", "expected a place that can be written to"),
    ],
)
def test_places_for_no_model(classifier, tmp_path, place, words) -> None:
    given = place(tmp_path)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(ValueError, match=words):
        classifier.save(given)
    assert sorted(tmp_path.iterdir()) == before


def test_options_may_be_numbers_of_numpy(tmp_path) -> None:
    options = {"max_tokens": np.int64(5), "random_state": np.int32(3), "diag_reg": np.float32(0.5)}
    classifier = tk.KernelClassifier(**options).fit(TEXTS, LABELS)
    classifier.save(tmp_path / "model")
    loaded = tk.load(tmp_path / "model")
    assert loaded.get_params()["max_tokens"] == 5
    assert (type(loaded.random_state), type(loaded.diag_reg)) == (int, float)
    np.testing.assert_allclose(loaded.predict_proba(TEXTS), classifier.predict_proba(TEXTS), atol=1e-12)


def test_all_files_can_be_read_by_the_same_people(classifier, tmp_path) -> None:
    classifier.save(tmp_path / "model")
    (tmp_path / "plain").touch()
    modes = {path.stat().st_mode for path in (tmp_path / "model").iterdir()}
    assert modes == {(tmp_path / "plain").stat().st_mode}


def test_a_failed_save_leaves_the_old_model(classifier, tmp_path, monkeypatch) -> None:
    classifier.save(tmp_path / "model")
    monkeypatch.setattr("safetensors.numpy.save_file", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        classifier.save(tmp_path / "model")
    monkeypatch.undo()
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert len(list((tmp_path / "model").iterdir())) == 3
    np.testing.assert_array_equal(tk.load(tmp_path / "model").predict(TEXTS), classifier.predict(TEXTS))


def test_a_failed_save_leaves_nothing_new(classifier, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("safetensors.numpy.save_file", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        classifier.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_an_unfitted_classifier_cannot_be_saved(tmp_path) -> None:
    with pytest.raises(ValueError, match="call fit"):
        tk.KernelClassifier().save(tmp_path / "model")


def edit_config(folder, **changes) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def flip(path) -> None:
    """Change one byte in the middle of the numbers."""
    content = bytearray(path.read_bytes())
    content[-len(content) // 4] ^= 1
    path.write_bytes(bytes(content))


def edit_architecture(folder) -> None:
    text = json.loads((folder / "config.json").read_text())["architecture"]
    assert "w_std = 1.0" in text
    edit_config(folder, architecture=text.replace("w_std = 1.0", "w_std = 1.5"))


EDITED = "config.json: damaged or edited"
DAMAGES = {
    "classes": (lambda folder: edit_config(folder, classes="pos"), EDITED),
    "classes of another type": (lambda folder: edit_config(folder, classes=[0, {}]), EDITED),
    "encoder": (lambda folder: edit_config(folder, encoder=5), EDITED),
    "encoder of a list": (lambda folder: edit_config(folder, encoder=["static"]), EDITED),
    "parameters": (lambda folder: edit_config(folder, parameters=["nngp"]), EDITED),
    "parameter of another name": (lambda folder: edit_config(folder, parameters={"kernels": "nngp"}), EDITED),
    "residual variance": (lambda folder: edit_config(folder, residual_variance="0.1"), EDITED),
    "architecture": (edit_architecture, EDITED),
    "checksums of another type": (lambda folder: edit_config(folder, checksums=5), "config.json: damaged"),
    "weights": (lambda folder: flip(folder / "latent.safetensors"), "latent.safetensors: damaged or edited"),
    "other weights": (
        lambda folder: (folder / "encoder.safetensors").write_bytes((folder / "latent.safetensors").read_bytes()),
        "encoder.safetensors: damaged or edited",
    ),
    "nested without end": (lambda folder: (folder / "config.json").write_text("[" * 100_000), "not valid JSON"),
    "no folder": (lambda folder: folder.rename(folder.parent / "elsewhere"), "textkernels fit"),
    "other format": (lambda folder: edit_config(folder, format=99), f"format {FORMAT}, got 99"),
    "not JSON": (lambda folder: (folder / "config.json").write_text("{"), "not valid JSON"),
    "cut short": (
        lambda folder: (folder / "latent.safetensors").write_bytes((folder / "latent.safetensors").read_bytes()[:100]),
        "latent.safetensors",
    ),
    "file gone": (lambda folder: (folder / "encoder.safetensors").unlink(), "encoder.safetensors"),
    "key gone": (
        lambda folder: (folder / "config.json").write_text(json.dumps({"format": FORMAT})),
        "incomplete",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_model_says_what_is_wrong(classifier, tmp_path, damage) -> None:
    classifier.save(tmp_path / "model")
    break_it, message = DAMAGES[damage]
    break_it(tmp_path / "model")
    with pytest.raises(ValueError, match=message):
        tk.load(tmp_path / "model")


@pytest.mark.parametrize(
    "changes",
    [{"classes": "pos"}, {"encoder": 5}, {"parameters": ["nngp"]}, {"architecture": 5}, {"class_shares": {}}],
    ids=str,
)
def test_wrong_types_are_damage_even_with_right_checksums(classifier, tmp_path, changes) -> None:
    folder = tmp_path / "model"
    classifier.save(folder)
    edit_config(folder, **changes)
    edit_config(folder, checksums=checksums(folder, json.loads((folder / "config.json").read_text())))
    with pytest.raises(ValueError, match=r"config\.json: damaged"):
        tk.load(folder)


def test_only_the_place_of_a_token_encoder_may_be_edited(classifier, tmp_path) -> None:
    classifier.save(tmp_path / "model")
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    model = {"source": "old/place", "checksum": "abc"}
    config["encoder"] = {"kind": "contextual", "model": model}
    sums = checksums(tmp_path / "model", config)
    config["encoder"]["model"] = {**model, "source": "new/place"}
    assert checksums(tmp_path / "model", config) == sums
    config["encoder"]["model"] = {**model, "checksum": "def"}
    assert checksums(tmp_path / "model", config) != sums


def test_the_order_of_keys_and_white_space_do_not_matter(classifier, tmp_path) -> None:
    classifier.save(tmp_path / "model")
    path = tmp_path / "model" / "config.json"
    path.write_text(json.dumps(dict(reversed(json.loads(path.read_text()).items()))))
    np.testing.assert_array_equal(tk.load(tmp_path / "model").predict(TEXTS), classifier.predict(TEXTS))


def test_a_model_that_an_older_version_saved_gives_its_probabilities() -> None:
    # Written by the last version with format 2, which had one residual variance for all lengths.
    texts = ["good", "the film is dull", "a great story of the warm film", "zzz"]
    saved = [[0.006374489728598017, 0.993625510271402], [0.9359870361369539, 0.06401296386304614]]
    saved += [[0.0320760135875979, 0.9679239864124021], [0.5, 0.5]]
    loaded = tk.load(Path(__file__).parent / "models" / "format-2")
    np.testing.assert_allclose(loaded.predict_proba(texts), saved, atol=1e-10)
