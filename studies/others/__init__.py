"""Programs for libraries that need an environment of their own; they import nothing of ours."""
