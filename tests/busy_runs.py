"""Records of runs that never were, with times: for pictures of what takes long, waits, fails and overlaps."""

import random
from typing import Any

MS = 1_000_000


class Scribe:
    """Writes the records of a run, as many fields as pictures read, at times that it is told."""

    def __init__(self, run: str = "run-1") -> None:
        self.records: list[dict[str, Any]] = []
        self.run = run
        self.now = 0
        self.epoch = 0
        self.state = "prepare"

    def write(self, kind: str, **fields: Any) -> int:
        seq = len(self.records)
        stamp = {"run": self.run, "seq": seq, "epoch": self.epoch, "mono_ns": self.now, "kind": kind}
        stamp["ts"] = f"2026-01-01T{self.epoch:02}:00:00.000000Z"
        self.records.append({**stamp, **fields})
        return seq

    def wait(self, ms: float) -> "Scribe":
        self.now += int(ms * MS)
        return self

    def move(self, event: str, target: str, guard: str = "always", **why: str) -> None:
        told = {"reason": None, "strategy": None, "terminal": None, **why}
        self.write("transition", source=self.state, event=event, target=target, guards=[[guard, True]], **told)
        self.state = target

    def begin(self, class_: str, **fields: Any) -> int:
        return self.write("effect_begin", **{"class": class_, "effect": len(self.records), **fields})

    def tool(self, name: str = "read", access: str = "read") -> int:
        return self.begin("tool", name=name, access=access, tool_use_id=f"toolu_{len(self.records)}")

    def end(self, effect: int, outcome: str = "ok", **fields: Any) -> None:
        self.write("effect_end", effect=effect, outcome=outcome, **fields)

    def taken_over(self) -> None:
        """Another process goes on."""
        self.epoch += 1
        self.now = 0
        self.write("resumed")


def three_turns() -> Scribe:
    """Two reads that begin in the stream, a failed call with its wait, an approval, and the answer."""
    scribe = Scribe()
    scribe.write("genesis")
    scribe.wait(1).move("RunStarted", "prepare")
    scribe.wait(1).move("ContextReady", "stream", "fits")
    model = scribe.begin("model", model="m", attempt=0)
    one = scribe.wait(400).tool()
    two = scribe.wait(300).tool("grep")
    scribe.wait(200).end(one, "answered")
    usage = {"input_tokens": 1_234, "output_tokens": 56}
    scribe.wait(300).end(model, stop_reason="tool_use", usage=usage)
    scribe.move("ModelResponded", "decide")
    scribe.move("ToolsRequested", "orchestrate")
    scribe.wait(600).end(two, "answered")
    scribe.move("ToolsAnswered", "prepare", "turns_left", reason="next_turn")
    scribe.wait(2).move("ContextReady", "stream", "fits")
    model = scribe.begin("model", model="m", attempt=0)
    scribe.wait(250).end(model, "overloaded_error", usage={})
    scribe.move("ModelFailed", "recover", "no_call_begun")
    scribe.move("TroubleNamed", "recover", "retry_allowed")
    sleep = scribe.begin("sleep", delay_ms=1_500)
    scribe.wait(1_500).end(sleep)
    scribe.move("BackoffElapsed", "stream", "unsealed")
    model = scribe.begin("model", model="m", attempt=1)
    scribe.wait(900).end(model, stop_reason="tool_use", usage=usage)
    scribe.move("ModelResponded", "decide")
    scribe.move("ToolsRequested", "orchestrate")
    hook = scribe.begin("hook", point="before_tool", name="guard")
    scribe.wait(40).end(hook, "Ask")
    scribe.move("ApprovalAwaited", "suspended")
    scribe.wait(3_600_000)
    scribe.write("checkpoint")
    scribe.taken_over()
    scribe.wait(20).move("RunResumed", "suspended")
    scribe.move("ApprovalGiven", "orchestrate", "all_answered")
    write = scribe.tool("deploy", "write")
    scribe.wait(800).end(write, "failed")
    scribe.move("ToolsAnswered", "prepare", "turns_left", reason="next_turn")
    summary = scribe.begin("summary", level="compact", model="s")
    scribe.wait(500).end(summary)
    scribe.move("HistoryCompressed", "prepare", "summarised")
    scribe.wait(5).move("ContextReady", "stream", "fits")
    model = scribe.begin("model", model="m", attempt=0)
    scribe.wait(1_100).end(model, stop_reason="end_turn", usage=usage)
    scribe.move("ModelResponded", "decide")
    scribe.move("AnswerGiven", "decide")
    scribe.move("StopHooksPassed", "completed", "may_complete", terminal="answered")
    scribe.write("terminal", terminal="answered")
    return scribe


def long_run(turns: int, seed: int = 7) -> Scribe:
    """Many turns of up to five calls each, some of them retried."""
    draw = random.Random(seed)
    scribe = Scribe()
    scribe.write("genesis")
    scribe.move("RunStarted", "prepare")
    for turn in range(turns):
        scribe.wait(3).move("ContextReady", "stream", "fits")
        while draw.random() < 0.04:
            model = scribe.begin("model", model="m", attempt=0)
            scribe.wait(draw.randint(100, 900)).end(model, "overloaded_error")
            scribe.move("ModelFailed", "recover", "no_call_begun")
            scribe.move("TroubleNamed", "recover", "retry_allowed")
            sleep = scribe.begin("sleep", delay_ms=2_000)
            scribe.wait(2_000).end(sleep)
            scribe.move("BackoffElapsed", "stream", "unsealed")
        model = scribe.begin("model", model="m", attempt=0)
        scribe.wait(draw.randint(200, 1_500))
        last = turn == turns - 1
        running: list[int] = []
        for _ in range(0 if last else draw.randint(1, 5)):
            running.append(scribe.tool(draw.choice(("read", "grep", "glob"))))
            scribe.wait(draw.randint(50, 500))
        scribe.wait(draw.randint(50, 300)).end(model, stop_reason="tool_use")
        scribe.move("ModelResponded", "decide")
        if last:
            break
        scribe.move("ToolsRequested", "orchestrate")
        for call in running:
            scribe.wait(draw.randint(10, 700)).end(call, "answered")
        scribe.move("ToolsAnswered", "prepare", "turns_left", reason="next_turn")
    scribe.move("AnswerGiven", "decide")
    scribe.move("StopHooksPassed", "completed", "may_complete", terminal="answered")
    scribe.write("terminal", terminal="answered")
    return scribe
