"""What all tests share: the Hypothesis profiles, and the recorded traffic where it is there."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

# No deadlines: nothing here is timed. In CI every run draws the same examples.
settings.register_profile("dev", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    """The folder of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The folder of recorded API traffic: LOOPLATCH_CORPUS, or `shared/corpus` beside the repository."""
    folder = Path(os.environ.get("LOOPLATCH_CORPUS") or ROOT.parent / "shared" / "corpus")
    if not folder.is_dir():
        pytest.skip(f"no recorded traffic in {folder}")
    return folder
