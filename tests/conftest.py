"""Every shape annotation of the package is checked while the tests run."""

import os

from hypothesis import settings
from jaxtyping import install_import_hook

install_import_hook("invariantnet", "beartype.beartype")

# One thread per worker: two under contention cost several times the CPU time of one.
os.environ.setdefault("OMP_NUM_THREADS", "1")

settings.register_profile("laws", deadline=None, max_examples=30, print_blob=True)
settings.load_profile("laws")
