"""Write the lists that follow from the catalogue of models: `uv run python docs/make_lists.py`.

These are the table of models in the README, and the names of `bayesstruct.models` for type checkers.
"""

from pathlib import Path

from bayesstruct.models import catalogue

ROOT = Path(__file__).parents[1]
README, STUB = ROOT / "README.md", ROOT / "models" / "__init__.pyi"
BEGIN = "<!-- models: written by docs/make_lists.py from models/catalogue.py -->"
END = "<!-- end of models -->"


def table():
    """Return the table of models as Markdown."""
    lines = ["| `bs.models.` | for | `prior=` | table |", "|---|---|---|---|"]
    for model in catalogue():
        priors = ", ".join(f"`{prior}`" for prior in model.priors)
        lines.append(f"| `{model.name}` | {model.purpose} | {priors} | {model.table} |")
    return "\n".join(lines)


def readme():
    """Return the README with the table as it has to be."""
    text = README.read_text(encoding="utf-8")
    head, rest = text.split(BEGIN)
    _, tail = rest.split(END)
    return f"{head}{BEGIN}\n{table()}\n{END}{tail}"


def stub():
    """Return the stub of `bayesstruct.models`."""
    names = sorted(["catalogue", *(model.name for model in catalogue())])
    imports = (
        f"from bayesstruct.models.{name} import (\n    {name} as {name},\n)" for name in names
    )
    head = '"""The public names of bayesstruct.models, written by docs/make_lists.py."""'
    return "\n".join([head, "", *imports, ""])


def main():
    """Write both."""
    README.write_text(readme(), encoding="utf-8")
    STUB.write_text(stub(), encoding="utf-8")


if __name__ == "__main__":
    main()
