"""`python -m invariantnet` is the `invariantnet` command."""

from invariantnet.cli import main

main()
