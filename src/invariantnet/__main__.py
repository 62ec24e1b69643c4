"""`python -m invariantnet` is the `invariantnet` command."""

from invariantnet.app.cli import main

main()
