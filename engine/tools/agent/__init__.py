"""looplatch.tools.agent: the agent toolset (read, glob, grep, write, edit, bash) over one folder."""

from looplatch.tools.agent.toolset import agent_toolset

__all__ = ["agent_toolset"]
