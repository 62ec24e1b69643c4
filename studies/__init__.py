"""Studies with InvariantNet: the paper, reproduced; what was measured beyond it; its cost; its reliability."""
