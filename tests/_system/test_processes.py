"""Worker processes are renewed without a word."""

import threading
import warnings
from pathlib import Path

from joblib.externals.loky import process_executor

from invariantnet._system.processes import quiet_renewal

RENEWED = "A worker stopped while some jobs were given to the executor. This can be caused by a memory leak."


def test_a_renewed_worker_is_no_reason_to_warn(recwarn):
    def warn():
        warnings.warn(RENEWED, UserWarning, stacklevel=1)
        warnings.warn("something else", UserWarning, stacklevel=1)

    with quiet_renewal():
        manager = threading.Thread(target=warn)  # joblib warns from a thread, too
        manager.start()
        manager.join()
    assert [str(w.message) for w in recwarn] == ["something else"]


def test_joblib_still_says_it_in_these_words():
    source = Path(process_executor.__file__).read_text()
    assert RENEWED[:46] in " ".join(source.replace('"', " ").split())
