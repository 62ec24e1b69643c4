"""The one training loop: its configuration, its processes, and what makes it fast."""
