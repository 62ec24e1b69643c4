"""The recipes of a study on a dask cluster."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[2]
STUDY = textwrap.dedent(
    """
    import os, sys
    from dataclasses import dataclass
    from pathlib import Path
    from distributed import LocalCluster
    from studies import cli
    from studies.framework import Part, Study

    OUT = Path(sys.argv[1])

    @dataclass(frozen=True)
    class Recipe:
        n: int
        seed: int

    def run(recipe):
        if recipe.n == 2 and not (OUT / "died").exists():
            (OUT / "died").touch()
            os._exit(1)
        return [recipe]

    if __name__ == "__main__":
        parts = {"all": Part(lambda seed: [Recipe(n, seed) for n in range(6)])}
        study = Study(file=__file__, question="", record=Recipe, run=run, parts=parts)
        with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
            cli._run([study], OUT, cluster.scheduler_address, n_jobs=2)
    """
)


def test_a_run_on_a_cluster_survives_the_death_of_a_worker(tmp_path):
    """Without the cluster, a process that dies ends the run."""
    script = tmp_path / "study.py"
    script.write_text(STUDY)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    command = [sys.executable, script, tmp_path]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "died").exists()
    stored = json.loads((tmp_path / "study.json").read_text())
    assert sorted(piece["recipe"]["n"] for piece in stored) == list(range(6))
