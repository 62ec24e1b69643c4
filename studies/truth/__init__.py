"""Is the verdict right on data that nobody tuned to? Problems whose symmetry is known beforehand."""
