"""What `invariantnet reproduce` can make; known without loading what makes it."""

from typing import Literal

Target = Literal[
    "figure1",
    "figure2",
    "figure3",
    "table1",
    "ablation",
    "identity",
    "all",
    "posterior",
    "calibration",
    "schemes",
    "uncertainty",
    "learning",
]
