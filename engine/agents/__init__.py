"""looplatch.agents: loops as tools of other loops, each run with a log of its own that is linked to its parent's."""
