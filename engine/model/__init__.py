"""The model side of a run: requests out, stream events in, and the answer that they make."""

from looplatch.model.assembly import ANSWER_LIMIT, Assembly
from looplatch.model.blocks import FinishedBlock, ParsedCall
from looplatch.model.sdk import AsyncClient, SdkClient, default_client

__all__ = [
    "ANSWER_LIMIT",
    "Assembly",
    "AsyncClient",
    "FinishedBlock",
    "ParsedCall",
    "SdkClient",
    "default_client",
]
