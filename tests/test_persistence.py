"""Saved models: whole or not at all, readable in a new process, clear about what is wrong with a damaged one."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from samples import LABELS, TEXTS

import textkernels as tk
from textkernels.persistence import FORMAT


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


def test_a_failed_save_leaves_the_old_model(classifier, tmp_path, monkeypatch) -> None:
    classifier.save(tmp_path / "model")
    monkeypatch.setattr("safetensors.numpy.save_file", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        classifier.save(tmp_path / "model")
    monkeypatch.undo()
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    np.testing.assert_array_equal(tk.load(tmp_path / "model").predict(TEXTS), classifier.predict(TEXTS))


def test_an_unfitted_classifier_cannot_be_saved(tmp_path) -> None:
    with pytest.raises(ValueError, match="call fit"):
        tk.KernelClassifier().save(tmp_path / "model")


def edit_config(folder, **changes) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


DAMAGES = {
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
