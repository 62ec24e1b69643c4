"""A catalogue of damaged and hostile models: each ends with status 2 and one line, and nothing is written."""

import json
import struct

import numpy as np
import pytest
import safetensors.torch
import torch
from bad_inputs import X, damaged, refused


def record(**changes):
    def change(run, model):
        return {**run, **changes}, model

    return change


def inside(part, **changes):
    def change(run, model):
        return {**run, part: {**run[part], **changes}}, model

    return change


def tensors(change):
    def apply(run, model):
        found = safetensors.torch.load(model)
        change(found)
        return run, safetensors.torch.save(found)

    return apply


def claims(shape, offsets, dtype="F32"):
    """A tensor file whose header promises more than there is."""
    head = json.dumps({"network.module.0.weight": {"dtype": dtype, "shape": shape, "data_offsets": offsets}})
    return struct.pack("<Q", len(head)) + head.encode()


def without(name):
    return lambda run, model: ({k: v for k, v in run.items() if k != name}, model)


def generators(values):
    return tensors(lambda t: t.update({"candidates.1": values}))


def examples(**changes):
    def change(run, model):
        changed = [{**example, **changes} for example in run["evaluation"]["examples"]]
        return {**run, "evaluation": {**run["evaluation"], "examples": changed}}, model

    return change


MODELS = {
    "no record": lambda r, m: (None, m),
    "no tensors": lambda r, m: (r, None),
    "empty record": lambda r, m: ("", m),
    "record cut off": lambda r, m: (json.dumps(r)[:-50], m),
    "record nested without end": lambda r, m: ("[" * 100_000, m),
    "record of binary bytes": lambda r, m: (b"\xff\xfe\x00\x01" * 10, m),
    "record that is a list": lambda r, m: ([r], m),
    "record that is a number": lambda r, m: ("17", m),
    "record with endless digits": lambda r, m: ('{"format": ' + "9" * 5000 + "}", m),
    "record of another program": lambda r, m: ({"a": 1}, m),
    "newer format": record(format=99),
    "format that is a list": record(format=[1]),
    "another kind": record(kind="InvariantRegressor"),
    "a classifier without classes": inside("learned", classes=None),
    "kind that is code": record(kind="__import__('os').system('true')"),
    "kind that is a list": record(kind=[]),
    "chosen group that is none": record(chosen="nonsense"),
    "chosen group that is a list": record(chosen=[]),
    "no candidates": record(candidates=[]),
    "candidates that are numbers": record(candidates=[1, 2]),
    "no posterior": without("posterior"),
    "empty posterior": record(posterior={}),
    "posterior that is a list": record(posterior=[1]),
    "posterior with more fields": inside("posterior", malice=1),
    "probabilities that are words": inside("posterior", probabilities=["much", "little"]),
    "probabilities that are one word": inside("posterior", probabilities="no"),
    "probabilities below zero": inside("posterior", probabilities=[-0.5, 1.5]),
    "probabilities above one": inside("posterior", probabilities=[0.2, 7.0]),
    "probabilities that add up to less": inside("posterior", probabilities=[0.2, 0.2]),
    "more probabilities than names": inside("posterior", probabilities=[0.2, 0.2, 0.6]),
    "names of other symmetries": inside("posterior", names=["trivial", "rot90"]),
    "evidence that is one word": inside("posterior", log_evidence="no"),
    "fewer orders than names": inside("posterior", orders=[1]),
    "names that are numbers": inside("posterior", names=[1, 2]),
    "no history": without("history"),
    "history that is text": record(history="long"),
    "no parameters": without("parameters"),
    "unknown parameters": record(parameters={"malice": 1}),
    "another width": inside("parameters", hidden=7),
    "a width of a trillion": inside("parameters", hidden=10**12),
    "a width that takes all memory": inside("parameters", hidden=2 * 10**9),
    "a negative width": inside("parameters", hidden=-4),
    "a width in words": inside("parameters", hidden="wide"),
    "another placement": inside("parameters", placement="everywhere"),
    "another backbone": inside("parameters", backbone="cnn"),
    "a backbone that is a path": inside("parameters", backbone="os.system"),
    "no learned values": without("learned"),
    "another input shape": inside("learned", input_shape=[8, 8]),
    "an input shape of a petabyte": inside("learned", input_shape=[10**8, 10**8]),
    "an input shape in words": inside("learned", input_shape=["a", "b"]),
    "an input shape that is null": inside("learned", input_shape=None),
    "more outputs": inside("learned", outputs=10**10),
    "more classes than outputs": inside("learned", classes=["a", "b", "c"]),
    "no classes": inside("learned", classes=[]),
    "classes that are lists": inside("learned", classes=[[1], [2]]),
    "a model of another name": inside("posterior", best_models=["magic", "magic"]),
    "fewer models than names": inside("posterior", best_models=["plain mlp"]),
    "models that are numbers": inside("posterior", best_models=[1, 2]),
    "learned in words": inside("posterior", learned="yes"),
    "gains that are numbers": inside("posterior", by_class=[1]),
    "learned values of other names": inside("learned", predict="malice", __class__="malice"),
    "another number of features": inside("learned", n_features_in=4),
    "an order of zero": lambda r, m: ({**r, "candidates": [{**h, "order": 0} for h in r["candidates"]]}, m),
    "an order in words": lambda r, m: ({**r, "candidates": [{**h, "order": "two"} for h in r["candidates"]]}, m),
    "an order of a googol": lambda r, m: (
        {**r, "candidates": [{**h, "order": 10**100} for h in r["candidates"]]},
        m,
    ),
    "tensors, empty file": lambda r, m: (r, b""),
    "tensors, a pickle": lambda r, m: (r, b"\x80\x04cos\nsystem\n(S'true'\ntR."),
    "tensors, cut off": lambda r, m: (r, m[:-10]),
    "tensors, header of exabytes": lambda r, m: (r, struct.pack("<Q", 2**62) + m[8:]),
    "tensors, header of binary bytes": lambda r, m: (r, struct.pack("<Q", 64) + bytes(range(64))),
    "tensors, header nested without end": lambda r, m: (r, struct.pack("<Q", 50_000) + b"[" * 50_000),
    "tensors, shape of a petabyte": lambda r, m: (r, claims([10**9, 10**6], [0, 64]) + bytes(64)),
    "tensors, offsets outside": lambda r, m: (r, claims([4, 4], [0, 10**15])),
    "tensors, negative offsets": lambda r, m: (r, claims([4, 4], [-64, 0]) + bytes(64)),
    "tensors, unknown type": lambda r, m: (r, claims([4, 4], [0, 64], "F33") + bytes(64)),
    "tensors, one missing": tensors(lambda t: t.pop("network.module.0.weight")),
    "tensors, one of another shape": tensors(lambda t: t.update({"network.module.0.weight": torch.zeros(4, 9)})),
    "tensors, one of another type": tensors(
        lambda t: t.update({"network.module.0.weight": torch.zeros(4, 16, dtype=torch.complex64)})
    ),
    "tensors, one that is NaN": tensors(lambda t: t["network.module.0.weight"].fill_(torch.nan)),
    "tensors, no units of the inputs": tensors(lambda t: t.pop("network.standardize.scale")),
    "tensors, units of other inputs": tensors(lambda t: t.update({"network.standardize.mean": torch.zeros(9)})),
    "tensors, units that are infinite": tensors(lambda t: t["network.standardize.scale"].fill_(torch.inf)),
    "tensors, more classes calibrated": tensors(lambda t: t.update({"network.calibrate.scale": torch.ones(3)})),
    "tensors, no group": tensors(lambda t: t.pop("candidates.1")),
    "generators out of range": generators(torch.full((1, 16), 10**9)),
    "generators that repeat": generators(torch.zeros(1, 16, dtype=torch.int64)),
    "generators of another length": generators(torch.arange(8)[None]),
    "generators in one row": generators(torch.arange(16)),
    "generators that are fractions": generators(torch.rand(1, 16)),
    "generators that are NaN": generators(torch.full((1, 16, 16), torch.nan, dtype=torch.float64)),
    "generators without end": generators(torch.eye(16, dtype=torch.float64)[None] * 2),
}

REPORTS = {
    "no settings": without("settings"),
    "settings that are a list": record(settings=[1]),
    "no evaluation": without("evaluation"),
    "evaluation that is text": record(evaluation="good"),
    "examples of unknown classes": examples(truth=99),
    "examples that are numbers": inside("evaluation", examples=[1, 2]),
    "examples with fewer answers": examples(chosen=[]),
    "fewer examples": inside("evaluation", examples=[]),
    "calibration in words": inside("evaluation", calibration=[{"stated": "a", "observed": "b", "count": "c"}]),
    "accuracy in words": inside("data", test_accuracy="high"),
    "race of others": inside("posterior", race=[{"examples": 1, "log_evidence": {"x": 0}, "probabilities": {}}]),
    "evidence in words": inside("posterior", log_evidence=["much", "little"]),
}


@pytest.mark.parametrize("case", MODELS)
def test_models(case, fitted, here, capfd):
    run = damaged(fitted, here / "run", MODELS[case])
    np.savez(here / "new.npz", x=X)
    refused(capfd, ["predict", run, here / "new.npz", "--out", here / "p.csv"], here)


@pytest.mark.parametrize("case", REPORTS)
def test_reports(case, fitted, here, capfd):
    refused(capfd, ["report", damaged(fitted, here / "run", REPORTS[case])], here)
