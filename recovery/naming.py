"""What the API takes as the id of a call, and as the name of its tool."""

import re
from typing import Final

CALL_ID: Final = re.compile(r"[a-zA-Z0-9_-]+")
TOOL_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,128}")
