"""`python -m looplatch.diagrams [FOLDER]`: rewrite the rendered files in FOLDER, and the README beside it."""

import sys
from pathlib import Path

from looplatch.diagrams.files import rendered, with_diagram


def main(arguments: list[str]) -> int:
    """Write what changed and name it; 2 where the folder does not exist."""
    folder = Path(arguments[0] if arguments else "diagrams")
    if len(arguments) > 1 or not folder.is_dir():
        print(f"usage: python -m looplatch.diagrams [FOLDER]; {folder} is not a folder", file=sys.stderr)
        return 2
    wanted = {folder / name: content for name, content in rendered().items()}
    readme = folder.resolve().parent / "README.md"
    if readme.is_file():
        wanted[readme] = with_diagram(readme.read_text(encoding="utf-8"))
    for path, content in wanted.items():
        if not path.is_file() or path.read_text(encoding="utf-8") != content:
            path.write_text(content, encoding="utf-8", newline="\n")
            print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
