import pytest
from problems import quickly_compared


@pytest.fixture
def quick_comparison():
    """Compare networks after a few steps: for tests of anything but the verdict."""
    with quickly_compared():
        yield
