"""The paper's figures and tables, and readings of its text."""
