"""looplatch.playback: a recorded run once more, through the caller's own loop: the regression test of an agent."""

from looplatch.playback.report import CannotReplay, Difference, Playback, RunDiffers

__all__ = ["CannotReplay", "Difference", "Playback", "RunDiffers"]
