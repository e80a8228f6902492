"""Which command lines only read: examples of each trap, and bash itself as the judge of what is let through."""

import os
import shutil
import subprocess
from collections.abc import Callable
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from looplatch.tools.shell import reads_only
from looplatch.tools.shell.lexer import simple_commands

READS = """
ls
ls -la src
cat a.txt b.txt
ls *.py
cat src/*.py | wc -l
grep -rn 'foo bar' src | head -20
grep "a\\$b" f | sort -u
grep foo\\.bar f
cd src && ls || pwd
ls; pwd;
head -5 f
head -n -5 f
tail -n +3 f
find . -name '*.py' -not -path './.git/*'
find . \\( -name a -o -name b \\) -mtime -3
find . -type f -maxdepth 2 | sort | uniq -c | sort -rn
sort -k2,3n -t, f
sort --reverse f
uniq -c f
uniq -f 1 f
sed -n '10,20p' f
sed -n '$p' f
sed 's/a/b/g' f
date
date +%F
date -u '+%H:%M'
env
hostname
diff -u a b
diff -r --brief a b
file a.txt
tree -L 2 src
rg -n 'fn \\w+' src
rg --files
git status
git status --short --branch
git log --oneline -5
git log -n 3 --format='%h %s' -- src
git --no-pager diff --stat HEAD~1
git diff --cached
git show HEAD:README.md
git branch
git branch -a -v
git branch --list 'feature/*'
git tag
git tag -l 'v*'
git remote -v
git remote get-url origin
git stash list
git config --get user.name
git config --list
git blame -L 1,5 f
git grep -n TODO
git ls-files --others --exclude-standard
git rev-parse --abbrev-ref HEAD
git cat-file -p HEAD
git --version
echo 'hi; rm x' "and > y"
echo 'ü'
jq .name package.json
which python
"""

WRITES = """
rm x
ls > f
ls >> f
ls 2> f
ls < f
ls >| f
cat <<< x
ls &> f
ls & rm x
ls &
ls && rm x
ls || rm x
ls ; rm x
ls | tee f
ls | xargs rm
ls |& tee f
|ls
ls |
ls &&
ls ;; ls
;ls
echo $(rm x)
echo `rm x`
echo "$(rm x)"
echo "`rm x`"
echo $HOME
echo "$HOME"
echo ${x:=y}
cat <(rm x)
(ls)
{ ls; }
ls {a,b}
! ls
echo !!
ls ~
ls # comment
X=1 ls
PATH=. ls
env X=1 ls
env ls
nohup ls
time ls
exec ls
eval ls
command ls
builtin echo
sudo ls
bash -c ls
sh f
. f
source f
./ls
/bin/ls
"./ls"
l\\s-x
xargs ls
tee f
dd if=a of=b
awk '{print > "f"}' a
python -c 1
test -v 'a[$(x)]'
[ -f x ]
printf -v x y
find . -delete
find . -exec rm {} +
find . -execdir rm {} +
find . -ok rm {} +
find . -okdir rm {} +
find . -fprint f
find . -fprintf f x
find . -fls f
find . -fprint0 f
find . -files0-from f
find . -name *.py
sed -i s/a/b/ f
sed -ni p f
sed -n -i 1p f
sed --in-place s/a/b/ f
sed --in s/a/b/ f
sed 's/a/b/w out' f
sed 's/a/b/e' f
sed -n '1w out' f
sed '1e touch x' f
sed -f script f
sed -e 1p f
sed p
sort -o f f
sort -of f
sort -uo f f
sort -no f f
sort f -o f
sort --output=f f
sort --outp=f f
sort --o f f
sort --compress-program=x f
sort --comp=x f
sort -T d f
sort *
uniq a b
uniq -c a b
uniq -- a b
uniq *
tree -o f
tree -R -L 1 -H .
date 01010101
date -s tomorrow
date --set=tomorrow
date --s=tomorrow
hostname evil
file -C -m magic
file -z a
diff -l a b
diff --paginate a b
rg --pre ./x foo
rg --pre=./x foo
rg --hostname-bin=./x foo
rg -z foo
git
git push
git fetch
git pull
git commit -m x
git add .
git checkout f
git restore f
git reset --hard
git clean -fd
git stash
git stash pop
git branch new
git branch -D old
git branch -m old new
git branch -- new
git branch -l new
git branch --sort --list new
git branch --edit-description
git tag v1
git tag -d v1
git tag --format -l v1
git tag --sort -l v1
git tag -- v1
git remote add x y
git remote update
git config user.name x
git config --unset --get user.name
git config --global --edit
git config alias.x '!rm x'
git -c core.pager=./x log
git -c alias.log='!rm x' log
git --exec-path=. status
git --git-dir=x status
git -C x status
git log --output=f
git diff --output f
git diff --outp=f
git diff --ext-diff
git show --textconv
git log --format=%G?
git log --format=%h%GK
git grep -O./x foo
git grep --open-files-in-pager=./x foo
git grep --open=./x foo
git reflog expire --all
git reflog delete x
git cat-file --textconv HEAD:f
git cat-file --filters HEAD:f
git rev-parse --parseopt
git bisect start
git worktree add x
git submodule update
git notes add
git gc
git difftool
git archive -o f HEAD
git bundle create f
git format-patch HEAD~1
git am f
git apply f
git lsx
man ls
less f
vim f
curl http://x
make
xxd f g
split f
shuf -o f f
"""


def lines(told: str) -> list[str]:
    return told.strip().splitlines()


@pytest.mark.parametrize("command", lines(READS))
def test_what_only_reads_is_known(command: str) -> None:
    assert reads_only(command)


@pytest.mark.parametrize(
    "command",
    [
        *lines(WRITES),
        "",
        "   ",
        "ls\nrm x",
        "ls\rrm x",
        "ls \\\nrm",
        "ls \x00 x",
        "ls\\",
        "ls 'open",
        'ls "open',
        'echo "open\\"',
        "ls\u00a0-la",
        "ls ü",
        "ls " + "x" * 20_000,
    ],
)
def test_what_may_change_anything_is_a_write(command: str) -> None:
    assert not reads_only(command)


@pytest.mark.parametrize(
    ("line", "read"),
    [
        ("ls -l  'a b'\t\"c d\"", [["ls", "-l", "a b", "c d"]]),
        ('echo "a\\.b" "\\$x \\` \\" \\\\"', [["echo", "a\\.b", '$x ` " \\']]),
        ("echo a\\ b \\; 'c'\"d\"e", [["echo", "a b", ";", "cde"]]),
        ("echo '' \"\"", [["echo", "", ""]]),
        ("a|b||c&&d;e;", [["a"], ["b"], ["c"], ["d"], ["e"]]),
        ("git show HEAD~1 a=b~", [["git", "show", "HEAD~1", "a=b~"]]),
        ("ls x=~", None),
        ("ls x:~", None),
        ("ls ~/x", None),
        ("a ; ; b", None),
        ("a | ", None),
    ],
)
def test_a_line_is_read_as_words(line: str, read: list[list[str]] | None) -> None:
    found = simple_commands(line)
    assert (None if found is None else [[word.text for word in command] for command in found]) == read


def test_a_word_with_a_pattern_is_marked() -> None:
    [command] = simple_commands("ls *.py '*' \\* a[b]") or [[]]
    assert [word.expands for word in command] == [False, True, False, False, True]


QUOTED: tuple[Callable[[str], str], ...] = (
    lambda text: text,
    lambda text: f"'{text}'",
    lambda text: f'"{text}"',
    lambda text: "".join(f"\\{char}" for char in text),
)
PLAIN = """
a b f g -o -i -c -n -exec -delete -ok -fprint --output=f --pre=./evil -of -ni --in-place -D -d -l -- - 1p 1w w
{} {a,b} f=g X=1 touch ./evil evil > 2>&1 HEAD~ ~ =~ s/a/b/ ä
"""
SPECIAL = "$`!\\'\";|&<>()[]*?~#=,%:^@+\t\n "
PIECES = [
    *PLAIN.split(),
    *SPECIAL,
    "||",
    "&&",
    ">>",
    "<<",
    "$(touch evil)",
    "`touch evil`",
    "${x}",
    "$'a'",
    "1w evil",
    "",
]
PROGRAMS = """
ls cat echo sort uniq sed find git grep head date touch rm tee xargs env ./evil rg diff tree file cd
""".split()  # noqa: SIM905 -- a list of words reads best as words
GIT = """
status log diff show branch tag config stash remote grep commit add checkout rev-parse
""".split()  # noqa: SIM905 -- the same


def quoted(piece: str, quote: Callable[[str], str]) -> str:
    return quote(piece)


def joined(parts: list[str], joints: list[str]) -> str:
    return "".join(part + joint for part, joint in zip(parts, joints, strict=False)).rstrip(";&|<> ")


words = st.builds(quoted, st.sampled_from(PIECES), st.sampled_from(QUOTED))
commands = st.tuples(
    st.sampled_from(PROGRAMS).map(lambda program: [program]),
    st.lists(st.sampled_from(GIT), max_size=1),
    st.lists(words, max_size=5),
).map(lambda parts: " ".join(chain(*parts)))
hostile = st.builds(
    joined,
    st.lists(commands, min_size=1, max_size=3),
    st.lists(st.sampled_from([" | ", " && ", "; ", " || ", "|", ";", "&", "\n", " > "]), min_size=3, max_size=3),
)


@pytest.fixture(scope="module")
def playground(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a program that must never run, and files named like options."""
    place = tmp_path_factory.mktemp("playground")
    for name, text in {"a": "1\n2\n2\n", "b": "b\n", "f": "f\n", "g": "g\n", "-o": "", "-delete": ""}.items():
        (place / name).write_text(text)
    (place / "evil").write_text("#!/bin/sh\ntouch ran\n")
    (place / "evil").chmod(0o755)
    os.utime(place / "a", (1, 1))
    git = ["git", "-c", "user.name=n", "-c", "user.email=e"]
    for step in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "first"]):
        subprocess.run([*git, *step], cwd=place, check=True, capture_output=True)
    return place


def state(place: Path) -> dict[str, tuple[int, int, int]]:
    """Everything in a folder: when and how it was last changed. Git's index is refreshed by looking."""
    found: dict[str, tuple[int, int, int]] = {}
    for folder, folders, files in os.walk(place):
        for name in [*folders, *files]:
            if name == "index" or name == ".git":
                continue
            status = os.lstat(os.path.join(folder, name))
            if os.path.basename(folder) != ".git" or not name.endswith(".lock"):
                found[os.path.join(folder, name)] = (status.st_mtime_ns, status.st_size, status.st_mode)
    return found


@pytest.mark.skipif(shutil.which("git") is None, reason="it judges by a repository")
@given(hostile)
@example("sort -o f f")
@example("find . -name a -o -delete")
@example("cat * | sort")
@example("git branch --list; git tag")
def test_bash_changes_nothing_by_what_is_let_through(playground: Path, command: str) -> None:
    assume(reads_only(command))
    before = state(playground)
    environment = {"PATH": os.environ["PATH"], "HOME": str(playground), "GIT_OPTIONAL_LOCKS": "0"}
    subprocess.run(
        ["bash", "--noprofile", "--norc", "-c", command],
        cwd=playground,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert state(playground) == before


@given(st.lists(words, max_size=6).map(" ".join))
def test_the_words_are_those_that_bash_reads(line: str) -> None:
    """What is read at all is read as bash reads it; names that patterns stand for are left aside."""
    read = simple_commands(f"show {line}")
    assume(read is not None)
    assert read is not None
    assume(len(read) == 1)
    assume(not any(word.expands for word in read[0]))
    shown = subprocess.run(
        ["bash", "--noprofile", "--norc", "-c", f'show() {{ printf \'%s\\0\' "$#" "$@"; }}; show {line}'],
        env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
        cwd="/",
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert shown.returncode == 0
    count, *seen = shown.stdout.decode().split("\0")[:-1]
    wanted = [word.text for word in read[0][1:]]
    assert (int(count), seen if wanted else []) == (len(wanted), wanted)


@given(st.sampled_from(lines(READS)), st.sampled_from("$`<>(){}&!#\n"), st.data())
def test_one_special_character_anywhere_outside_of_quotes_makes_a_write(
    command: str, special: str, data: st.DataObject
) -> None:
    assume(not set(command) & set("'\"\\"))
    at = data.draw(st.integers(0, len(command)))
    assume(special != "&" or "&" not in command)
    assert not reads_only(command[:at] + special + command[at:])


@given(st.text(max_size=40))
def test_any_text_is_judged_without_an_error(text: str) -> None:
    reads_only(text)
    reads_only(f"ls {text}")
    reads_only(f"git {text}")
