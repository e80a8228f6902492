"""Writes down what must not be forgotten: the present table, what each guard means, logs of the present schema.

python tests/golden/write.py table|guards|logs

A log that was written once stays as it is: `logs` writes those that are not there yet.
"""

import sys
from pathlib import Path

import orjson

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from looplatch.states.record import SCHEMA
from looplatch.states.table import TABLE
from tests.golden_runs import RUNS
from tests.test_past_tables import GOLDEN, ROOT, guards, meaning

match sys.argv[1:]:
    case ["table"]:
        file = ROOT / "states" / "tables" / f"{TABLE.fingerprint}.json"
        file.write_bytes(orjson.dumps(TABLE.description, option=orjson.OPT_SORT_KEYS) + b"\n")
    case ["guards"]:
        file = GOLDEN / "guards.json"
        told = {name: meaning(*one) for name, one in guards().items()}
        file.write_bytes(orjson.dumps(told, option=orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2) + b"\n")
    case ["logs"]:
        file = GOLDEN / f"v{SCHEMA}"
        file.mkdir(exist_ok=True)
        for name, run in RUNS.items():
            if not (log := file / f"{name}.jsonl").exists():
                run(log)
    case _:
        sys.exit(__doc__)
print(f"wrote {file}")
