"""What several methods share: schedules, graph statistics, mixtures. Only methods call these."""
