"""The page people show: one self-contained HTML file about a run."""
