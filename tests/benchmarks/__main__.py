"""`python tests/benchmarks`: run the benchmarks and print the table."""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[2])  # so that everything here has one name, in every process
    from tests.benchmarks.session import main

    main()
