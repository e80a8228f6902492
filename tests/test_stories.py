"""Ten stories: what the model says, the path that the run takes, the requests that it sends, and how it ends."""

import pytest

from tests.playing import play
from tests.stories import STORIES, Story

each_story = pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)


@each_story
def test_a_story_takes_its_path(story: Story) -> None:
    script, watch = story.script()
    told = play(script, watch=watch, **story.options)
    assert told.error is None
    assert told.moves == story.moves
    assert told.sent == story.sent
    assert [request.body["max_tokens"] for request in told.api.requests] == story.max_tokens
    assert told.clock.slept == story.slept
    assert told.run.messages == story.history
    assert told.result.subtype == story.subtype
    assert told.result.is_error is (story.subtype != "success")
    assert (told.result.result, told.result.error, told.result.num_turns) == (story.text, story.error, story.turns)
    told.api.check_played()


def test_there_are_ten_stories() -> None:
    assert len({story.name for story in STORIES}) == 10
