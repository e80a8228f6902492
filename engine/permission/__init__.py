"""Permission: who may call what, by rules, by a hook, or by someone who is asked."""
