"""The program: runs in folders, and the command line."""
