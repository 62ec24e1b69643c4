"""`python -m studies`, from the root of the repository."""

from studies.cli import main

main()
