"""Which columns of a table are inputs."""

import numpy as np
import pytest

from invariantnet import data as datasets
from invariantnet.data.tables import row_numbers


def test_columns_that_are_no_inputs_are_left_out(tmp_path):
    (tmp_path / "t.csv").write_text("id,name,a,label\n1,Ann,0.5,x\n2,Bob,0.7,y\n")
    data = datasets.load(tmp_path / "t.csv", without=["id", "name"])
    assert data.columns == ("a",)
    np.testing.assert_array_equal(data.x_train, np.float32([[0.5], [0.7]]))
    with pytest.raises(ValueError, match="no column 'age' to leave out: correct without"):
        datasets.load(tmp_path / "t.csv", without=["age"])
    with pytest.raises(ValueError, match="no column is left to be an input: leave fewer out"):
        datasets.load(tmp_path / "t.csv", without=["id", "name", "a"])
    with pytest.raises(ValueError, match="without does not apply to digits: leave it out"):
        datasets.load("digits", without=["id"])


def test_columns_that_count_rows_are_known_from_others(tmp_path):
    lines = [f"{7 + i},{i % 3},{2 * i},{-i},{'xy'[i % 2]}" for i in range(20)]
    (tmp_path / "t.csv").write_text("\n".join(["id,a,b,c,label", *lines]))
    assert row_numbers(datasets.load(tmp_path / "t.csv")) == ("id",)
    assert row_numbers(datasets.load("digits")) == ()


def test_one_word_among_measured_labels_is_a_slip_not_a_class(tmp_path):
    rows = [f"{i % 5},{i / 7:.3f}" for i in range(1, 20)]
    for word, why in (("n/a", "is a missing value"), ("ten", "is not a number, as most labels are")):
        (tmp_path / "t.csv").write_text("\n".join(["a,price", *rows, f"3,{word}"]))
        with pytest.raises(ValueError, match=f"line 21, column 'price': '{word}' {why}.*--task classes"):
            datasets.load(tmp_path / "t.csv", label="price")
    assert len(datasets.load(tmp_path / "t.csv", label="price", task="classes").class_names) == 20


def test_words_beside_whole_numbers_are_classes(tmp_path):
    (tmp_path / "t.csv").write_text("\n".join(["a,grade", *[f"{i},{i % 3}" for i in range(9)], "9,none"]))
    assert datasets.load(tmp_path / "t.csv", label="grade").class_names == ("0", "1", "2", "none")


def test_new_rows_are_named_by_a_column_that_the_model_does_not_read(tmp_path):
    (tmp_path / "new.csv").write_text("group,id,a,b,label\nx,p1,1,2,u\nx,p2,3,4,v\n")
    found = datasets.load_inputs(tmp_path / "new.csv", shape=(2,), columns=("b", "a"))
    assert list(found.names) == ["p1", "p2"], "groups repeat"
    np.testing.assert_array_equal(found.x, np.float32([[2, 1], [4, 3]]))
    (tmp_path / "new.csv").write_text("a,b\n1,2\n3,4\n")
    assert list(datasets.load_inputs(tmp_path / "new.csv", shape=(2,), columns=("a", "b")).names) == [0, 1]
