"""looplatch.resuming: makes a run that goes on from what its log says; see looplatch.recovery.resume."""
