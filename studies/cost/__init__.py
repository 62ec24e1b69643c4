"""What it costs: steps, verdicts, growth, memory."""
