"""looplatch.compressing: performs what looplatch.recovery.compression decides, in the history and the log."""
