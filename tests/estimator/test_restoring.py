"""Groups of a stored model come back, however many elements they were allowed to have."""

import numpy as np

from invariantnet import Group, InvariantClassifier
from invariantnet.symmetries.group import MAX_ORDER


def test_a_matrix_group_of_more_elements_than_usual_comes_back(tmp_path, brief_comparison):
    angle = 2 * np.pi / (MAX_ORDER + 1)
    turn = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    turns = Group.from_matrices([turn], name="turns", max_order=MAX_ORDER + 1)
    x = np.random.default_rng(0).normal(size=(60, 2))
    clf = InvariantClassifier([turns], hidden=4, n_networks=1, epochs=1, tolerance=9.0, random_state=0)
    clf.fit(x, np.hypot(*x.T) > 1.2).save(tmp_path)
    assert clf.symmetry_.order == MAX_ORDER + 1
    again = InvariantClassifier.load(tmp_path)
    assert again.symmetry_.order == turns.order
    np.testing.assert_array_equal(again.predict_proba(x), clf.predict_proba(x))
