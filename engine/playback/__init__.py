"""looplatch.playback: a recorded run once more, through the caller's own loop: the regression test of an agent."""

from looplatch.playback.report import CannotReplay, Playback, PlaybackDifference, RunDiffers

__all__ = ["CannotReplay", "Playback", "PlaybackDifference", "RunDiffers"]
