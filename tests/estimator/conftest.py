import pytest
from problems import quickly_compared


@pytest.fixture
def quick_comparison():
    """Compare networks after a few steps: for tests of anything but the verdict."""
    with quickly_compared():
        yield


@pytest.fixture(scope="module")
def module_quickly_compared():
    """The same in a whole module, its fixtures included."""
    with quickly_compared():
        yield
