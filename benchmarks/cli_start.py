"""CPU seconds until the command line answers: help, the list of models, and errors.

    uv run python benchmarks/cli_start.py [--repeats 5] [--beside OTHER_CLONE]

Each run is a fresh process, as the shell starts it; counted is the processor time of all that it does, with the
byte code of an earlier run. The minimum counts, since other work on the machine can only add to it. With
``--beside`` the same commands of another clone are measured in turn with these.

Target: 0.5 s each.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile

from pathlib import Path

COMMANDS = {
    "--help": 0,
    "models": 0,
    "learn nofile.csv": 2,
    "learn --model isnig": 2,
    "learn --unknown": 2,
    "learn ragged.csv": 2,
    "learn text.csv": 2,
}
TABLES = {"ragged.csv": "a,b\n1,2\n3,4,5\n", "text.csv": "a,b\nx,1\ny,2\nz,4\n"}


def seconds(script, words, status, folder):
    """CPU seconds of one command in a fresh process."""
    environment = {name: v for name, v in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [script, *words.split()], cwd=folder, env=environment, capture_output=True, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != status:
        raise RuntimeError(f"{words} ended with {done.returncode}:\n{done.stderr.decode()[-2000:]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--beside", type=Path)
    options = parser.parse_args()
    scripts = {"here": Path(sys.executable).with_name("bayesstruct")}
    if options.beside:
        scripts["beside"] = options.beside.resolve() / ".venv" / "bin" / "bayesstruct"
    print(f"{'CPU s':22s}", *(f"{name:>8s}" for name in scripts))
    with tempfile.TemporaryDirectory() as folder:
        for name, text in TABLES.items():
            Path(folder, name).write_text(text)
        for words, status in COMMANDS.items():
            rounds = [
                [seconds(script, words, status, folder) for script in scripts.values()]
                for _ in range(options.repeats + 1)
            ]
            least = map(min, zip(*rounds[1:], strict=True))  # the first writes byte code
            print(f"{words:22s}", *(f"{value:8.2f}" for value in least), flush=True)


if __name__ == "__main__":
    main()
