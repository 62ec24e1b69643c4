"""Files, memory, processes and progress: nothing here knows about symmetries."""
