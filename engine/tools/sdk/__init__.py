"""looplatch.tools.sdk: the SDK's own tools, as they are."""

from looplatch.tools.sdk.functions import adapted_function, is_function
from looplatch.tools.sdk.toolsets import adapted_toolset, is_toolset

__all__ = ["adapted_function", "adapted_toolset", "is_function", "is_toolset"]
