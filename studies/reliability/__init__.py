"""What survives faults, hostile files and much data, and what the tests notice."""
