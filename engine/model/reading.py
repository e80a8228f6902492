"""Reading an answer to its end, where nothing is done with it meanwhile."""

from looplatch.model.assembly import Assembly
from looplatch.ports import ModelClient, ModelRequest
from looplatch.recovery.failure import Failure, ModelCallFailed, stream_cut
from looplatch.states.events import AnswerGiven
from looplatch.states.table import DECISIONS


async def read_answer(client: ModelClient, request: ModelRequest, assembly: Assembly) -> None:
    """Send a request and read its whole answer into `assembly`. Raises ModelCallFailed when it does not come."""
    stream = await client.open(request)
    try:
        while not assembly.complete:
            events = await stream.read()
            if not events:
                raise stream_cut()
            for event in events:
                assembly.feed(event)
    finally:
        await stream.close()


def text_of(assembly: Assembly) -> str:
    """The text of a whole answer. Raises ModelCallFailed where it was cut, or has none."""
    text = "".join(str(block["text"]) for block in assembly.content if block.get("type") == "text").strip()
    calls = sum(block.get("type") == "tool_use" for block in assembly.content)
    if DECISIONS.event(assembly.stop_reason, calls) is not AnswerGiven or not text:
        told = f"it ended with the stop reason {assembly.stop_reason}" if text else "it has no text"
        raise ModelCallFailed(Failure(type="no_text", status=200, message=told, should_retry=False))
    return text
