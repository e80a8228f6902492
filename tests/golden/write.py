"""Writes down what must not be forgotten: the present table, and what each guard means.

python tests/golden/write.py table|guards
"""

import sys
from pathlib import Path

import orjson

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from looplatch.states.table import TABLE
from tests.test_past_tables import GOLDEN, ROOT, guards, meaning

match sys.argv[1:]:
    case ["table"]:
        file = ROOT / "states" / "tables" / f"{TABLE.fingerprint}.json"
        file.write_bytes(orjson.dumps(TABLE.description, option=orjson.OPT_SORT_KEYS) + b"\n")
    case ["guards"]:
        file = GOLDEN / "guards.json"
        told = {name: meaning(*one) for name, one in guards().items()}
        file.write_bytes(orjson.dumps(told, option=orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2) + b"\n")
    case _:
        sys.exit(__doc__)
print(f"wrote {file}")
