"""A catalogue of wrong options and arguments: each is refused in one line, and nothing is written."""

import numpy as np
import pytest
from bad_inputs import OPTIONS_OF_TINY, RNG, TINY, N, X, Y, npz, refused

import invariantnet as inv

OPTIONS = {
    "no hidden units": ["--hidden", "0"],
    "negative hidden units": ["--hidden", "-5"],
    "a trillion hidden units": ["--hidden", "1000000000000"],
    "more hidden units than 64 bits": ["--hidden", str(10**25)],
    "half a hidden unit": ["--hidden", "0.5"],
    "no networks": ["--n-networks", "0"],
    "no epochs": ["--epochs", "0"],
    "negative epochs": ["--epochs", "-1"],
    "no examples": ["--examples", "0"],
    "negative examples": ["--examples", "-10"],
    "one example": ["--examples", "1"],
    "all data for testing": ["--test-share", "1"],
    "more than all for testing": ["--test-share", "2"],
    "nearly all for testing": ["--test-share", "0.99"],
    "a negative share for testing": ["--test-share", "-0.1"],
    "a share that is no number": ["--test-share", "nan"],
    "negative tolerance": ["--tolerance", "-1"],
    "tolerance that is no number": ["--tolerance", "nan"],
    "negative seed": ["--seed", "-1"],
    "seed beyond 32 bits": ["--seed", str(2**40)],
    "seed beyond 64 bits": ["--seed", str(2**70)],
    "seed that is no number": ["--seed", "today"],
    "no processes": ["--n-jobs", "0"],
    "processes that are no number": ["--n-jobs", "many"],
    "numbers that are words": ["--task", "numbers"],
    "unknown task": ["--task", "ranking"],
    "unknown placement": ["--placement", "middle"],
    "weights of convolutions": ["--placement", "weights", "--backbone", "cnn"],
    "unknown pool": ["--pool", "median"],
    "joins, perhaps": ["--joins", "maybe"],
    "unknown device": ["--device", "abacus"],
    "a device that is not there": ["--device", "cuda:7"],
    "no devices": ["--devices", "0"],
    "no machines": ["--nodes", "0"],
    "a cluster without a port": ["--cluster", "nowhere"],
    "unknown precision": ["--precision", "8"],
    "unknown uncertainty": ["--uncertainty", "much"],
    "a label of no column": ["--label", "species"],
    "unknown group": ["--symmetries", "rot91"],
    "empty groups": ["--symmetries", ""],
    "only commas": ["--symmetries", ",,,"],
    "join with nothing": ["--symmetries", "hflip+"],
    "groups of control characters": ["--symmetries", "\x1b[31mred\n\r"],
    "groups for images with channels": ["--symmetries", "channels"],
    "unknown method": ["--method", "magic"],
    "unknown backbone": ["--backbone", "transformer"],
    "shape that does not fit": ["--shape", "5,5"],
    "shape of no sizes": ["--shape", ","],
    "shape of zeros": ["--shape", "0,16"],
    "negative shape": ["--shape=-4,-4"],
    "shape beyond 64 bits": ["--shape", f"{10**30},4"],
    "shape of words": ["--shape", "four,four"],
    "size of one number": ["--size", "4"],
    "unknown color": ["--color", "sepia"],
    "unknown option": ["--colour", "grey"],
    "option without its value": ["--hidden"],
    "folder that is a file": ["--out", "data.npz"],
    "folder below a file": ["--out", "data.npz/run"],
    "folder that is a device": ["--out", "/dev/null"],
    "folder with a NUL": ["--out", "a\0b"],
    "folder with too long a name": ["--out", "a" * 5000],
}

OTHERS = {
    "no command": [],
    "unknown command": ["grops"],
    "symmetries of no shape": ["symmetries", "--shape", ""],
    "symmetries of a huge shape": ["symmetries", "--shape", "1000000000,1000000000"],
    "symmetries of many axes": ["symmetries", "--shape", "2,2,2,2"],
    "a command of the studies": ["reproduce", "figure1"],
    "report of nothing": ["report", "nowhere"],
    "export of nothing": ["export", "nowhere", "model.onnx"],
    "export to another kind of file": ["export", "nowhere", "model.pt"],
    "export to a file without a name": ["export", "nowhere", ".onnx"],
}


@pytest.mark.parametrize("case", OPTIONS)
def test_options(case, here, capfd):
    data = npz(x=X, y=Y)(here)
    refused(capfd, ["fit", data, *OPTIONS_OF_TINY, "--out", here / "out", *OPTIONS[case]], here)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["fit", "data.npz", "--symetries", "hflip"], "--symetries, hflip: perhaps you meant --symmetries;"),
        (["predict", "run", "data.npz", "--outt", "a.csv"], "perhaps you meant --out;"),
        (["fit", "data.npz", "--verbose"], "Unrecognized options: --verbose: see invariantnet --help."),
        (["fits"], "invariantnet is followed by one of fit, discover, predict, report, export, symmetries."),
        (["fit", "data.npz", "--device", "gpu"], "there is no device 'gpu': pass 'auto', 'cpu' or 'cuda'."),
        (["fit", "head.csv"], "only a header: write a line per example below it."),
    ],
)
def test_a_mistake_is_told_with_what_was_meant(arguments, said, here, capfd):
    npz(x=X, y=Y)(here)
    (here / "head.csv").write_text("a,label\n")
    assert said in refused(capfd, arguments, here)


def test_a_finished_run_is_not_replaced(here, capfd, fitted):
    refused(capfd, ["fit", npz(x=X, y=Y)(here), *OPTIONS_OF_TINY, "--out", fitted], here)


def test_the_paper_has_no_numbers(here, capfd):
    data = npz(x=X, y=X.sum((1, 2)))(here)
    refused(capfd, ["fit", data, *OPTIONS_OF_TINY, "--out", here / "out", "--method", "paper"], here)


@pytest.mark.parametrize("case", OTHERS)
def test_other_commands(case, here, capfd):
    refused(capfd, OTHERS[case], here)


def classifier(**changes):
    return inv.InvariantClassifier(**{"symmetries": ["hflip"], "input_shape": (4, 4), **TINY, **changes})


PYTHON = {
    "no inputs": lambda: classifier().fit(X[:0], Y[:0]),
    "inputs in one row": lambda: classifier().fit(X[:, 0, 0], Y),
    "NaN": lambda: classifier().fit(X * np.nan, Y),
    "infinity": lambda: classifier().fit(X + np.inf, Y),
    "NaN among objects": lambda: classifier().fit((X * np.nan).astype(object).reshape(N, -1), Y),
    "words": lambda: classifier().fit(np.full((N, 16), "one"), Y),
    "complex numbers": lambda: classifier().fit(X * 1j, Y),
    "too large for single precision": lambda: classifier().fit(X.astype(float) * 1e300, Y),
    "one label short": lambda: classifier().fit(X, Y[:-1]),
    "labels in columns": lambda: classifier().fit(X, np.stack([Y, Y], 1)),
    "labels that are NaN": lambda: classifier().fit(X, np.full(N, np.nan)),
    "labels that are fractions": lambda: classifier().fit(X, RNG.random(N)),
    "no labels": lambda: classifier().fit(X, None),
    "words to predict as numbers": lambda: inv.InvariantRegressor(["sign"]).fit(X.reshape(N, -1), np.full(N, "a")),
    "permutations of two lengths": lambda: inv.Group.from_permutations([[1, 2, 0], [1, 0]]),
    "one class": lambda: classifier().fit(X, np.zeros(N)),
    "negative weights": lambda: classifier().fit(X, Y, -np.ones(N)),
    "weights that are NaN": lambda: classifier().fit(X, Y, np.full(N, np.nan)),
    "weights of nothing": lambda: classifier().fit(X, Y, np.zeros(N)),
    "weights of another length": lambda: classifier().fit(X, Y, np.ones(3)),
    "unknown group": lambda: classifier(symmetries=["rot91"]).fit(X, Y),
    "no groups": lambda: classifier(symmetries=[]).fit(X, Y),
    "a group for other inputs": lambda: classifier(symmetries=[inv.symmetry("hflip", shape=(8, 8))]).fit(X, Y),
    "groups that are numbers": lambda: classifier(symmetries=[1, 2]).fit(X, Y),
    "a shape that does not fit": lambda: classifier(input_shape=(5, 5)).fit(X, Y),
    "a shape in words": lambda: classifier(input_shape=("a", "b")).fit(X, Y),
    "a shape that is a number": lambda: classifier(input_shape=16).fit(X, Y),
    "a negative prior": lambda: classifier(prior=-1.0).fit(X, Y),
    "a prior of another length": lambda: classifier(prior=[1.0, 2.0, 3.0]).fit(X, Y),
    "a prior that is NaN": lambda: classifier(prior=float("nan")).fit(X, Y),
    "a prior of another length, held out": lambda: classifier(method="heldout", prior=[1.0] * 4).fit(X, Y),
    "a tolerance without evidence": lambda: classifier(method="heldout", tolerance=1.0).fit(X, Y),
    "a second opinion without evidence": lambda: classifier(method="heldout", second_opinion=True).fit(X, Y),
    "convolutions in the paper's layer": lambda: classifier(method="paper", backbone="cnn").fit(X, Y),
    "a paper's layer that sees nothing": lambda: classifier(method="paper", symmetries=["sign"]).fit(X, Y),
    "an infinite tolerance": lambda: classifier(tolerance=float("inf")).fit(X, Y),
    "labels of several types": lambda: classifier().fit(X, [None, *map(str, Y[1:])]),
    "nothing but zeros": lambda: inv.InvariantRegressor(["sign"]).fit(np.zeros((20, 4)), np.zeros(20)),
    "a prior where the paper has its own": lambda: classifier(method="paper", prior=[500, 1]).fit(X, Y),
    "a prior in words": lambda: classifier(prior="flat").fit(X, Y),
    "a width in words": lambda: classifier(hidden="wide").fit(X, Y),
    "a width of fractions": lambda: classifier(hidden=2.5).fit(X, Y),
    "a width of a trillion": lambda: classifier(hidden=10**12).fit(X, Y),
    "seeds in words": lambda: classifier(n_networks="two").fit(X, Y),
    "tolerance in words": lambda: classifier(tolerance="little").fit(X, Y),
    "jobs in words": lambda: classifier(n_jobs="all").fit(X, Y),
    "an unknown method": lambda: classifier(method="magic").fit(X, Y),
    "a method that is a list": lambda: classifier(method=["evidence"]).fit(X, Y),
    "an unknown placement": lambda: classifier(placement="everywhere").fit(X, Y),
    "an unknown pool": lambda: classifier(pool="median").fit(X, Y),
    "an unknown backbone": lambda: classifier(backbone="transformer").fit(X, Y),
    "a CNN for tables": lambda: classifier(symmetries=["sign"], input_shape=(16,), backbone="cnn").fit(X, Y),
    "an unknown device": lambda: classifier(device="abacus").fit(X, Y),
    "a device that is not there": lambda: classifier(device="cuda:99").fit(X, Y),
    "a random state in words": lambda: classifier(random_state="today").fit(X, Y),
    "permutations that repeat": lambda: inv.Group.from_permutations([[0, 0, 1]]),
    "permutations out of range": lambda: inv.Group.from_permutations([[0, 1, 99]]),
    "permutations of fractions": lambda: inv.Group.from_permutations([[0.5, 1]]),
    "permutations of different lengths": lambda: inv.Group.from_permutations([[0, 1], [0, 1, 2]]),
    "no permutations": lambda: inv.Group.from_permutations([]),
    "singular matrices": lambda: inv.Group.from_matrices([[[1, 0], [0, 0]]]),
    "matrices of infinite order": lambda: inv.Group.from_matrices([[[1, 1], [0, 1]]]),
    "matrices that are NaN": lambda: inv.Group.from_matrices([[[np.nan, 1], [0, 1]]]),
    "matrices that are not square": lambda: inv.Group.from_matrices([[[1, 0, 0], [0, 1, 0]]]),
    "a negative shape": lambda: inv.symmetry("hflip", shape=(-4, 4)),
    "an empty shape": lambda: inv.symmetry("hflip", shape=()),
    "a name of a group with commas": lambda: inv.register_symmetry("a,b", lambda shape: None),
    "data that is a number": lambda: inv.datasets.load("17"),
}


@pytest.mark.parametrize("case", PYTHON)
def test_python(case):
    with pytest.raises(ValueError, match=r"\w"):
        PYTHON[case]()
