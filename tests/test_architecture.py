"""Architectures and layer parameters: every check with its message, TOML there and back, the named ones."""

from __future__ import annotations

import math

import numpy as np
import pytest
from cases import CASES, names

from textkernels import (
    Activation,
    Architecture,
    Conv,
    Dense,
    GlobalAveragePool,
    LayerNorm,
    Positions,
    Residual,
    SelfAttention,
    named_architecture,
)

POOL = GlobalAveragePool()
RELU = Activation("relu")


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        ([], r"expected at least GlobalAveragePool\(\), got no layers"),
        ([Dense()], "exactly one GlobalAveragePool, got 0; add one after the token layers"),
        ([POOL, Dense(), POOL], "exactly one GlobalAveragePool, got 2; keep one"),
        ([Dense(), "relu", POOL], "layer 1: expected one of Dense, Conv, .*; got 'relu'"),
        ([Dense, POOL], "layer 0: expected one of Dense, Conv, .*; got <class"),
        ([POOL, Conv(3)], r"layer 1: Conv acts on tokens.*GlobalAveragePool \(layer 0\); move it before"),
        ([Dense(), POOL, SelfAttention()], r"layer 2: SelfAttention acts on tokens.*\(layer 1\)"),
        ([POOL, Residual([Dense()])], "layer 1: Residual acts on tokens"),
        ([RELU, POOL], "layer 0: an Activation needs a Dense, Conv or SelfAttention between it and the input"),
        ([Dense(), RELU, RELU, POOL], "layer 2: an Activation needs"),
        ([Conv(3), RELU, LayerNorm(), Activation("erf"), POOL], "layer 3: an Activation needs"),
        ([Dense(), RELU, POOL, RELU], "layer 3: an Activation needs"),
        ([Residual([Dense()]), RELU, POOL], "layer 1: an Activation needs"),
        ([Dense(), RELU, Residual([RELU, Dense()]), POOL], "layer 2, branch layer 0: an Activation needs"),
        ([Dense(), Residual([POOL, Dense()]), POOL], "layer 1, branch layer 0: expected a token layer, got Global"),
        ([Dense(), Residual(["relu", Dense()]), POOL], "layer 1, branch layer 0: expected a token layer, got 'relu'"),
        ([Dense(), Residual([Dense(), RELU]), POOL], "layer 1: expected the branch .* to end in Dense, Conv or Self"),
        ([Dense(), Residual([LayerNorm()]), POOL], "independent of its input; got LayerNorm"),
    ],
)
def test_stack_that_no_network_has(layers, message):
    with pytest.raises(ValueError, match=message):
        Architecture(layers)


@pytest.mark.parametrize(
    "layers",
    [
        [POOL],
        [Dense(), POOL, RELU],
        [Conv(3), LayerNorm(), RELU, POOL],
        [Dense(), Residual([RELU, Dense()]), RELU, POOL],
        [Dense(), Residual([Residual([Conv(3)]), Dense()]), POOL],
        [Dense(), RELU, Residual([SelfAttention()]), POOL],
    ],
)
def test_stack_that_a_network_has(layers):
    assert Architecture(layers).layers == tuple(layers)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Dense(-1.0), "Dense: expected w_std to be a finite number >= 0, got -1.0"),
        (lambda: Dense(1.0, math.nan), "Dense: expected b_std to be a finite number >= 0, got nan"),
        (lambda: Dense("1"), "Dense: expected w_std to be a finite number >= 0, got '1'"),
        (lambda: Dense(True), "Dense: expected w_std to be a finite number >= 0, got True"),
        (lambda: Dense(None), "Dense: expected w_std to be a finite number >= 0, got None"),
        (lambda: Conv(4), "Conv: expected width to be odd, so that SAME padding has a middle; got 4"),
        (lambda: Conv(-3), "Conv: expected width to be an integer >= 1, got -3"),
        (lambda: Conv(2.5), "Conv: expected width to be an integer >= 1, got 2.5"),
        (lambda: Conv(True), "Conv: expected width to be an integer >= 1, got True"),
        (lambda: Conv(3, math.inf), "Conv: expected w_std to be a finite number >= 0, got inf"),
        (lambda: Conv(3, 1.0, -0.1), "Conv: expected b_std to be a finite number >= 0, got -0.1"),
        (lambda: Activation("gelu"), "Activation: expected kind to be one of relu, erf; got 'gelu'"),
        (lambda: SelfAttention("max"), "SelfAttention: expected scores to be one of softmax, identity, relu, abs"),
        (lambda: SelfAttention(scaling="log"), "SelfAttention: expected scaling to be one of linear, sqrt; got 'log'"),
        (lambda: SelfAttention(w_query_std=-2), "SelfAttention: expected w_query_std to be a finite number >= 0"),
        (lambda: SelfAttention(b_std=-2), "SelfAttention: expected b_std to be a finite number >= 0, got -2"),
        (lambda: SelfAttention(positions="relative"), "expected positions to be a Positions or None, got 'relative'"),
        (lambda: Conv(None), "Conv: expected width to be an integer >= 1, got None"),
        (lambda: Conv("a"), "Conv: expected width to be an integer >= 1, got 'a'"),
        (lambda: SelfAttention(samples="x"), "SelfAttention: expected samples to be an integer >= 2, got 'x'"),
        (lambda: SelfAttention(seed=-1), "SelfAttention: expected seed to be an integer >= 0, got -1"),
        (lambda: Positions(in_values="false"), "Positions: expected in_values to be True or False, got 'false'"),
        (lambda: Positions("absolute", scale="5"), "Positions: expected scale to be a finite number >= 0, got '5'"),
        (lambda: Residual(Dense()), r"Residual: expected a list of layers, got Dense.*Residual\(\[layer\]\)"),
        (lambda: SelfAttention(samples=1), "SelfAttention: expected samples to be an integer >= 2, got 1"),
        (lambda: SelfAttention(samples=2.5), "SelfAttention: expected samples to be an integer >= 2, got 2.5"),
        (lambda: Positions("rotary"), "Positions: expected kind to be one of relative, absolute; got 'rotary'"),
        (
            lambda: Positions("absolute"),
            r"Positions: expected scale > 0 \(in tokens\) for absolute positions, got None",
        ),
        (lambda: Positions("absolute", scale=0), r"expected scale > 0 \(in tokens\) for absolute positions, got 0"),
        (lambda: Positions(combine="concat"), "Positions: expected combine to be one of append, sum; got 'concat'"),
        (lambda: Positions(content_share=1.5), r"Positions: expected content_share in \[0, 1\], got 1.5"),
        (lambda: Positions(decay=-1), "Positions: expected decay to be a finite number >= 0, got -1"),
        (lambda: Positions(amplitude=-1), "Positions: expected amplitude to be a finite number >= 0, got -1"),
        (lambda: Residual([]), "Residual: expected at least one layer in the branch, got none"),
        (lambda: Residual([Dense()], share=-0.5), r"Residual: expected share in \[0, 1\], got -0.5"),
    ],
)
def test_layer_parameter_out_of_range(build, message):
    with pytest.raises(ValueError, match=message):
        build()


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
def test_toml_there_and_back(case):
    text = case.architecture.to_toml()
    again = Architecture.from_toml(text)
    assert again == case.architecture
    assert hash(again) == hash(case.architecture)
    assert again.name == case.architecture.name
    assert again.to_toml() == text


def test_toml_of_every_parameter_away_from_its_default():
    positions = Positions("absolute", 1.5, 0.4, 20.0, True, "sum", 0.3)
    attention = SelfAttention("abs", "sqrt", 1.1, 1.2, 1.3, 1.4, 0.5, positions, samples=99, seed=7)
    architecture = Architecture([Dense(1.5, 0.5), Residual([Conv(5, 1.1, 0.2), attention], 0.2), POOL], "mine")
    again = Architecture.from_toml(architecture.to_toml())
    assert again.layers[1].layers[1] == attention
    assert again == architecture


def test_toml_takes_numpy_scalars_and_integers():
    positions = Positions("absolute", decay=np.float32(2.5), scale=np.int64(7), in_values=np.bool_(True))
    architecture = Architecture(
        [Conv(np.int64(3), np.float64(1.5)), SelfAttention(positions=positions), POOL, Dense(2, 0)]
    )
    assert Architecture.from_toml(architecture.to_toml()) == architecture


def test_toml_written_by_hand_may_leave_out_format_name_and_defaults():
    architecture = Architecture.from_toml(
        '[[layers]]\ntype = "GlobalAveragePool"\n[[layers]]\ntype = "Dense"\nw_std = 2\n'
    )
    assert architecture == Architecture([POOL, Dense(2.0)])
    assert architecture.name == "custom"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("layers = [", "architecture: not valid TOML"),
        ("format = 2\nlayers = []", "expected format = 1, got 2; it was written by another version"),
        ("layer = []", r"expected the keys format, name and \[\[layers\]\] tables, got layer"),
        ("name = 'x'", r"expected the keys format, name and \[\[layers\]\] tables"),
        ("layers = 3", r"expected the keys format, name and \[\[layers\]\] tables"),
        ("layers = []", "got no layers"),
        ("layers = ['Dense']", "layer 0: expected type to be one of Dense, Conv, .*; got 'Dense'"),
        ("layers = [{type = 'Dense'}, {type = 'Pool'}]", "layer 1: expected type to be one of .*; got 'Pool'"),
        ("layers = [{w_std = 1.0}]", "layer 0: expected type to be one of .*; got None"),
        ("layers = [{type = 'Dense', std = 1}]", "layer 0: Dense: expected parameters among w_std, b_std; got std"),
        ("layers = [{type = 'LayerNorm', axis = 1}]", "layer 0: LayerNorm: expected parameters among none; got axis"),
        ("layers = [{type = 'Dense', w_std = -1}]", "layer 0: Dense: expected w_std to be a finite number"),
        ("layers = [{type = 'Conv'}]", "layer 0: Conv: expected a value for width, got none"),
        ("layers = [{type = [1]}]", r"layer 0: expected type to be one of .*; got \[1\]"),
        ("layers = [{type = 'Dense', w_std = 1e200}]", "layer 0: Dense: expected w_std to be at most 1,000,000"),
        ("layers = [{type = 'SelfAttention', positions = 3}]", "layer 0: .*expected positions to be a Positions"),
        (
            "layers = [{type = 'SelfAttention', positions = {phi = 1}}]",
            "layer 0: positions: expected parameters among kind, decay, .*; got phi",
        ),
        (
            "layers = [{type = 'SelfAttention', positions = {kind = 'absolute'}}]",
            "layer 0: Positions: expected scale > 0",
        ),
        (
            "layers = [{type = 'Residual', layers = 3}]",
            "layer 0: Residual: expected layers to be a list of tables, got 3",
        ),
        ("layers = [{type = 'Residual', layers = [{type = 'Max'}]}]", "layer 0, branch layer 0: expected type"),
        ("layers = [{type = 'Dense'}]", "exactly one GlobalAveragePool, got 0"),
    ],
)
def test_bad_toml(text, message):
    with pytest.raises(ValueError, match=message):
        Architecture.from_toml(text)


def test_save_load_and_the_file_in_the_message(tmp_path):
    architecture = Architecture([Dense(1.5), POOL], "größer")
    architecture.save(tmp_path / "net.toml")
    assert Architecture.load(tmp_path / "net.toml") == architecture
    assert Architecture.load(str(tmp_path / "net.toml")).name == "größer"
    (tmp_path / "bad.toml").write_text("layers = [")
    with pytest.raises(ValueError, match=r"bad\.toml: architecture: not valid TOML"):
        Architecture.load(tmp_path / "bad.toml")
    (tmp_path / "latin.toml").write_bytes(b"name = '\xe9'")
    with pytest.raises(ValueError, match=r"latin\.toml: .*utf-8"):
        Architecture.load(tmp_path / "latin.toml")


def test_parts_of_a_stack():
    attention, head = SelfAttention(positions=Positions()), (LayerNorm(), Dense(1.4), RELU, Dense())
    struct = Architecture([attention, POOL, *head])
    assert (struct.pooling, struct.token_layers, struct.document_layers) == (1, (attention,), head)
    assert (struct.linear_layers, struct.linear_tokens, struct.linear) == (4, True, False)
    assert Architecture([Residual([attention]), POOL, Dense()]).linear
    convolution = Architecture([Dense(), Residual([Conv(3)]), POOL])
    assert (convolution.linear_layers, convolution.linear_tokens) == (1, False)
    assert not Architecture([SelfAttention("identity", "sqrt"), POOL]).linear_tokens
    assert not Architecture([Dense(), RELU, POOL]).linear_tokens


def test_trained_means_any_weights():
    assert not Architecture([LayerNorm(), POOL, LayerNorm()]).trained
    assert all(
        Architecture([layer, POOL]).trained for layer in (Dense(), Conv(3), SelfAttention(), Residual([Conv(1)]))
    )


def test_equality_is_of_layers():
    one, same, other = (Architecture([Dense(w_std), POOL], name) for w_std, name in ((1, "a"), (1.0, "b"), (2, "a")))
    assert one == same
    assert hash(one) == hash(same)
    assert one != other
    assert one != "a"
    assert repr(one) == "Architecture([Dense(w_std=1, b_std=0.0), GlobalAveragePool()], name='a')"


RELU_STDS, ERF_STDS = (math.sqrt(2), 0.1), (math.sqrt(1.7562), math.sqrt(0.1841))
READOUT = Dense(1.0, 0.0)


def struct_attention(stds):
    positions = Positions("relative", 2.5, 1.0, None, False, "append", 0.75)
    return SelfAttention("softmax", "linear", stds[0], stds[0], 1.0, 1.0, 0.0, positions)


@pytest.mark.parametrize(
    ("name", "parameters", "layers"),
    [
        ("gap", {}, [POOL, READOUT]),
        ("gap-fcn", {"hidden": 0}, [POOL, READOUT]),
        ("gap-fcn", {}, [POOL, Dense(*RELU_STDS), RELU, READOUT]),
        ("gap-fcn", {"hidden": 2, "layer_norm": True}, [POOL, LayerNorm(), *[Dense(*RELU_STDS), RELU] * 2, READOUT]),
        ("gap-fcn", {"activation": "erf"}, [POOL, Dense(*ERF_STDS), Activation("erf"), READOUT]),
        ("struct", {}, [struct_attention(RELU_STDS), POOL, READOUT]),
        ("struct-fcn", {}, [struct_attention(RELU_STDS), POOL, Dense(*RELU_STDS), RELU, READOUT]),
        (
            "struct-fcn",
            {"activation": "erf", "layer_norm": True},
            [struct_attention(ERF_STDS), POOL, LayerNorm(), Dense(*ERF_STDS), Activation("erf"), READOUT],
        ),
        ("cnn-gap", {"depth": 0}, [POOL, READOUT]),
        ("cnn-gap", {"depth": 2}, [*[Conv(9, *RELU_STDS), RELU] * 2, POOL, READOUT]),
        (
            "cnn-gap",
            {"activation": "erf", "hidden": 1},
            [Conv(9, *ERF_STDS), Activation("erf"), POOL, Dense(*ERF_STDS), Activation("erf"), READOUT],
        ),
    ],
)
def test_named_architecture_layer_by_layer(name, parameters, layers):
    assert named_architecture(name, **parameters) == Architecture(layers)


@pytest.mark.parametrize(
    ("depth", "attention", "pattern"),
    [
        (0, 1, "A"),
        (0, 2, "AA"),
        (1, 1, "CA"),
        (1, 2, "ACA"),
        (2, 1, "CCA"),
        (2, 2, "CACA"),
        (4, 2, "CCCACA"),
        (8, 1, "CCCCCCCCA"),
        (8, 2, "CCCCCCCACA"),  # the paper's own example: 7 convolutions, attention, convolution, attention
        (8, 3, "CCCCCCACACA"),
        (1, 3, "AACA"),
    ],
)
def test_interleaving_of_convolutions_and_attention(depth, attention, pattern):
    letters = {"Conv": "C", "SelfAttention": "A"}

    def read(architecture):
        return "".join(letters.get(type(layer).__name__, "") for layer in architecture.layers)

    plain = named_architecture("cnn-struct", depth=depth, attention=attention)
    assert read(plain) == pattern
    assert plain.layers[plain.pooling - 1] == struct_attention(RELU_STDS)
    assert sum(isinstance(layer, Activation) for layer in plain.layers) == depth
    normed = named_architecture("cnn-struct", depth=depth, attention=attention, attention_layer_norm=True)
    assert read(normed) == pattern
    after = [normed.layers[i + 1] for i, layer in enumerate(normed.layers) if isinstance(layer, SelfAttention)]
    assert after == [LayerNorm()] * attention


def test_cnn_struct_in_erf_has_erf_stds_everywhere():
    architecture = named_architecture("cnn-struct", activation="erf", hidden=1, layer_norm=True)
    erf = Activation("erf")
    body = [Conv(9, *ERF_STDS), erf, struct_attention(ERF_STDS), POOL, LayerNorm(), Dense(*ERF_STDS), erf, READOUT]
    assert architecture == Architecture(body)


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("lstm", {}, r"expected an architecture among gap, gap-fcn, .* \(or a .toml file\); got 'lstm'"),
        ("gap", {"hidden": 1}, "gap: expected parameters among none; got hidden"),
        ("gap-fcn", {"depth": 1}, "gap-fcn: expected parameters among hidden, layer_norm, activation; got depth"),
        ("gap-fcn", {"hidden": -1}, "expected hidden to be an integer >= 0, got -1"),
        ("gap-fcn", {"hidden": 1.5}, "expected hidden to be an integer >= 0, got 1.5"),
        ("gap-fcn", {"hidden": "2"}, "expected hidden to be an integer >= 0, got '2'"),
        ("gap-fcn", {"hidden": math.nan}, "expected hidden to be an integer >= 0, got nan"),
        ("gap-fcn", {"activation": "gelu"}, "expected activation to be one of relu, erf; got 'gelu'"),
        ("cnn-gap", {"depth": -1}, "expected depth to be an integer >= 0, got -1"),
        ("cnn-struct", {"depth": 0.5}, "expected depth to be an integer >= 0, got 0.5"),
        (
            "cnn-gap(depth=4",
            {},
            r"expected an architecture as name or name\(parameter=value, ...\).*got 'cnn-gap\(depth=4'",
        ),
        ("cnn-gap(4)", {}, "such as cnn-gap"),
        ("cnn-gap(depth=x)", {}, "such as cnn-gap"),
        ("gap-fcn(hidden=1, hidden=2)", {}, "such as cnn-gap"),
        ("gap-fcn", {"layer_norm": "False"}, "expected layer_norm to be True or False, got 'False'"),
        ("cnn-struct", {"attention_layer_norm": 3}, "expected attention_layer_norm to be True or False, got 3"),
        ("gap(hidden=1)", {}, "gap: expected parameters among none; got hidden"),
        (
            "cnn-struct",
            {"attention": 0},
            "expected attention to be an integer >= 1, got 0; without attention it is cnn-gap",
        ),
    ],
)
def test_named_architecture_refuses(name, parameters, message):
    with pytest.raises(ValueError, match=message):
        named_architecture(name, **parameters)


def test_named_architecture_says_its_parameters_and_reads_them():
    deep = named_architecture("cnn-struct", depth=8, attention=2, activation="erf")
    assert deep.name == "cnn-struct(depth=8, attention=2, activation='erf')"
    assert named_architecture(deep.name) == deep
    assert named_architecture("gap-fcn(hidden=2)", layer_norm=True) == named_architecture(
        "gap-fcn", hidden=2, layer_norm=True
    )
    assert named_architecture("gap-fcn").name == "gap-fcn"
    assert named_architecture("gap-fcn", hidden=2, layer_norm=True).name == "gap-fcn(hidden=2, layer_norm=True)"
